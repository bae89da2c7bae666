"""
Traces of runs, as OpenTelemetry has them: a span for the run, and one for each of its steps.

Whether, where and how they are sent is said by the environment variables that every program with
OpenTelemetry knows (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
All spans of a run are sent at its end, in one request, so a collector that is away costs a run no
more than one timeout.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from infold import __version__
from infold.core.plan import Step
from infold.core.record import COUNTS, Receipt
from infold.messages.errors import InfoldError
from infold.telling.hooks import facts_of
from infold.telling.listener import Listener, RunEnd, RunStart

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Span, Tracer

_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HTTP = "http/protobuf"

MISSING = "traces were asked for by OTEL_…, and OpenTelemetry is not there: infold[otel] has it"
OTHER_PROTOCOL = "traces are sent by http/protobuf, and OTEL_EXPORTER_OTLP_PROTOCOL says {0}"
NOT_SENT = "traces were not sent: the collector did not take them"


@dataclass
class Traces(Listener):
    """Makes spans as a run goes on, and sends them when it has ended."""

    name = "traces"
    _tracer: Tracer | None = None
    _run: Span | None = None
    _context: Context | None = None
    _open: dict[str, Span] = field(default_factory=dict)
    _made: InMemorySpanExporter | None = None
    _wrong: str = ""

    def began(self, start: RunStart) -> None:
        """The run's span begins; it is a part of the trace that ``TRACEPARENT`` names, if any."""
        self._wrong = _hindrance()
        if self._wrong:
            return
        from opentelemetry.propagate import extract
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from opentelemetry.trace import set_span_in_context

        # What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say wins.
        own = Resource({"service.name": "infold", "service.version": __version__})
        provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()))
        self._made = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._made))
        self._tracer = provider.get_tracer("infold", __version__)
        parent = {key: os.environ.get(key.upper(), "") for key in ("traceparent", "tracestate")}
        context = extract({key: text for key, text in parent.items() if text})
        about = {
            "infold.project": start.project.name,
            "infold.target": start.project.target.name,
            "infold.command": start.command,
        }
        if start.environment:
            about["infold.environment"] = start.environment
        self._run = self._tracer.start_span(f"infold {start.command}", context, attributes=about)
        self._context = set_span_in_context(self._run, context)

    def step(self, index: int, total: int | None, step: Step) -> None:
        """A step begins; one of several at a time is told again before its end."""
        del index, total
        if self._tracer is None or step.model in self._open:
            return
        self._open[step.model] = self._tracer.start_span(
            f"{step.action.value} {step.model}",
            self._context,
            attributes={"infold.model": step.model, "infold.action": step.action.value},
        )

    def done(self, step: Step, receipt: Receipt) -> None:
        """A step ended well; of its receipt, what is not zero."""
        if (span := self._open.pop(step.model, None)) is not None:
            for name, value in asdict(receipt).items():
                if value and name not in COUNTS:
                    span.set_attribute(f"infold.{name}", value)
            span.end()

    def failed(self, step: Step, error: InfoldError) -> None:
        """A step failed."""
        if (span := self._open.pop(step.model, None)) is not None:
            _fail(span, error.slug, error.what)
            span.end()

    def ended(self, end: RunEnd) -> Iterator[str]:
        """The run ended: its facts are its span's, and everything is sent."""
        if self._wrong:
            yield self._wrong
        if self._run is None or self._made is None:
            return
        for span in self._open.values():
            span.end()
        for fact, value in facts_of(end).items():
            self._run.set_attribute(f"infold.{fact}", value)
        if not end.succeeded:
            _fail(self._run, end.state, end.why)
        self._run.end()
        if not _sent(self._made.get_finished_spans()):
            yield NOT_SENT


def _hindrance() -> str:
    """Why no traces can be sent, as a note."""
    for name in _PROTOCOLS:
        said = os.environ.get(name, "").strip()
        if said:
            if said != _HTTP:
                return OTHER_PROTOCOL.format(said)
            break
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401 (both are asked for here, and used elsewhere)
    except ImportError:
        return MISSING
    return ""


def _fail(span: Span, kind: str, why: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, why))


def _sent(spans: Sequence[ReadableSpan]) -> bool:
    """Send spans, with the repeats that the exporter makes by itself; whether they arrived."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    # It would print what went wrong, with the address.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter()
    try:
        return exporter.export(spans) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
