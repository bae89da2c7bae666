"""A trace has a span for the run and one for each step, and goes where the environment says."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.cli import sample
from tests.running.telling.receiver import Receiver, receiver
from tests.running.telling.runs import end, good, project, raising
from tests.running.telling.test_log import in_steps

from infold.core.report import RunFailed
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.running.telling import traces


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A collector at which the environment points."""
    with receiver() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
        yield found


def spans(collector: Receiver) -> list[Any]:
    """The spans of the one request that came."""
    (got,) = collector.got
    assert got.path == "/v1/traces"
    request = ExportTraceServiceRequest.FromString(got.content)
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def about(attributes: Any) -> Mapping[str, Any]:
    """Attributes as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def test_a_run_that_fails(tmp_path: Path, collector: Receiver) -> None:
    """Steps are parts of the run, with their counts; what failed says so, also a run that did not
    begin.
    """
    with pytest.raises(RunFailed):
        end(project(tmp_path, ""), in_steps)

    *steps, run = spans(collector)
    assert [one.name for one in steps] == ["ingest clicks", "fold sessions", "recompute daily"]
    assert {one.parent_span_id for one in steps} == {run.span_id}
    assert {one.trace_id for one in steps} == {run.trace_id}
    assert all(one.end_time_unix_nano >= one.start_time_unix_nano > 0 for one in (*steps, run))
    assert about(steps[0].attributes)["infold.arrived"] == 10_317
    assert [one.status.code for one in (*steps, run)] == [0, 0, 2, 2]
    assert about(run.attributes)["infold.state"] == "failed"
    assert about(run.attributes)["infold.project"] == "shop"
    assert run.name == "infold run"

    collector.got.clear()
    error = run_errors.source_changed(source="raw.clicks", path="a.json")
    with pytest.raises(InfoldError):
        end(project(tmp_path, ""), raising(error))
    (run,) = spans(collector)
    assert (run.status.code, "raw.clicks" in run.status.message) == (2, True)


def test_a_run_is_a_part_of_its_callers_trace(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler names its span by TRACEPARENT; names and attributes are the environment's."""
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    end(project(tmp_path, ""), good, environment="pr7")

    (run,) = spans(collector)
    assert (run.trace_id.hex(), run.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)
    assert about(run.attributes)["infold.environment"] == "pr7"
    request = ExportTraceServiceRequest.FromString(collector.got[0].content)
    resource = about(request.resource_spans[0].resource.attributes)
    assert resource["service.name"] == "nightly"
    assert resource["service.version"]


@pytest.mark.parametrize(
    ("variables", "note"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, traces.OTHER_PROTOCOL.format("grpc")),
    ],
)
def test_what_the_environment_says(
    tmp_path: Path,
    collector: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    variables: Mapping[str, str],
    note: str | None,
) -> None:
    """Traces are off where it says so; what it asks for and is not had is a note."""
    for name, text in variables.items():
        monkeypatch.setenv(name, text)

    result = end(project(tmp_path, ""))

    assert collector.got == []
    assert set(result.notes) - set(sample.result().notes) == ({note} if note else set())


def test_what_cannot_be_sent_is_a_note(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is as it was; the note has no address in it, or says what has to be installed."""
    collector.answer = 400
    result = end(project(tmp_path, ""))
    assert traces.NOT_SENT in result.notes
    assert result.state == sample.result().state

    collector.got.clear()
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert traces.MISSING in end(project(tmp_path, "")).notes
    assert collector.got == []
