"""
What a run tells besides: a log with a JSON object a line; metrics as Prometheus reads them, which
go on as the same series from run to run; a trace with a span for the run and one for each step.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli import sample
from tests.running.telling.receiver import Receiver, receiver
from tests.running.telling.runs import bad, end, good, project, raising

from infold.core.hooks import Sinks
from infold.core.ports import Progress
from infold.core.report import RunFailed, RunResult
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.running.telling import traces


@pytest.mark.parametrize(
    ("sinks_to", "note"),
    [
        (lambda file: Sinks(log=file), "the log failed: FileNotFoundError"),
        (lambda file: Sinks(metrics=file), "{} was not written: No such file or directory"),
    ],
    ids=["log", "metrics"],
)
def test_what_cannot_be_written_is_a_note(
    tmp_path: Path, sinks_to: Callable[[Path], Sinks], note: str
) -> None:
    """One note, however many lines there would have been; the run is as it was."""
    file, own = tmp_path / "gone" / "file", sample.result()

    result = end(project(tmp_path, ""), good, sinks_to(file))

    assert (result.steps, result.notes) == (own.steps, (*own.notes, note.format(file)))


# -- the log


def lines(file: Path) -> list[dict[str, Any]]:
    """The objects of a log, whose times grow."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    times = [datetime.fromisoformat(one.pop("time")) for one in found]
    assert times == sorted(times)
    assert {(one.pop("project"), one.pop("target")) for one in found} == {("shop", "dev")}
    return found


def in_steps(shown: Progress) -> RunResult:
    """A run that says what it does, and fails with its last step."""
    result = sample.failed()
    *well, (last, _) = result.steps
    for index, (step, receipt) in enumerate(well, 1):
        shown.step(index, 3, step)
        shown.done(step, receipt)
    shown.note("a word")
    shown.step(3, 3, last)
    shown.failed(last, result.failures[0].error)
    raise RunFailed(result)


def test_the_log_of_a_run_that_fails(tmp_path: Path) -> None:
    """Its beginning, each step, notes, and its end with the whole errors."""
    file = tmp_path / "infold.log"

    with pytest.raises(RunFailed):
        end(project(tmp_path, ""), in_steps, Sinks(log=file))

    found = lines(file)
    assert [(one["level"], one["event"], one.get("model", "")) for one in found] == [
        ("info", "run_began", ""),
        ("info", "step_began", "clicks"),
        ("info", "step_done", "clicks"),
        ("info", "step_began", "sessions"),
        ("info", "step_done", "sessions"),
        ("info", "note", ""),
        ("info", "step_began", "daily"),
        ("error", "step_failed", "daily"),
        ("warning", "note", ""),
        ("error", "run_ended", ""),
    ]
    assert found[2]["receipt"]["arrived"] == sample.RECEIPTS[0].arrived
    assert 0 not in found[2]["receipt"].values()
    assert found[7]["error"]["slug"] == "step-failed"
    assert (found[-1]["state"], found[-1]["models"]) == ("failed", "daily, users")
    assert [one["slug"] for one in found[-1]["errors"]] == ["step-failed", "protected"]


def test_the_next_run_goes_on_with_the_log(tmp_path: Path) -> None:
    """A log is added to; one that was put aside meanwhile is begun again."""
    file, shop = tmp_path / "infold.log", project(tmp_path, "")
    for _ in range(2):
        end(shop, good, Sinks(log=file))
    twice = len(lines(file))
    file.rename(tmp_path / "infold.log.1")
    end(shop, good, Sinks(log=file))

    assert twice == 2 * len(lines(file)) == 6


# -- metrics

LABELS = (("project", "shop"), ("target", "dev"))
Samples = Mapping[tuple[str, str], float]


def read(file: Path) -> Samples:
    """The samples of a file, as Prometheus' own parser reads them: by name and model."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(file.read_text()):
        assert family.type == "gauge"
        assert family.documentation.endswith(".")
        for one in family.samples:
            labels = dict(one.labels)
            model = labels.pop("model", "")
            if one.name != "infold_build_info":
                assert tuple(sorted(labels.items())) == LABELS
            assert (one.name, model) not in found
            found[one.name, model] = one.value
    return found


def test_the_metrics_of_a_run(tmp_path: Path) -> None:
    """What it did, in all and for each model. Names are as Prometheus' conventions want them: a
    prefix, the unit in the plural at the end, no unit of a part.
    """
    file = tmp_path / "infold.prom"

    result = end(project(tmp_path, ""), good, Sinks(metrics=file))

    found, own = read(file), sample.result()
    assert result == own
    assert found["infold_run_success", ""] == 1
    assert found["infold_run_steps", ""] == 3
    assert found["infold_run_failed_models", ""] == 0
    for name in ("arrived", "read", "scanned", "written", "removed", "set_aside"):
        rows = [found[f"infold_model_{name}_rows", step.model] for step, _ in own.steps]
        assert rows == [getattr(receipt, name) for _, receipt in own.steps]
    at = found["infold_run_end_timestamp_seconds", ""]
    assert found["infold_run_last_success_timestamp_seconds", ""] == at
    began = found["infold_run_start_timestamp_seconds", ""]
    assert at - began == pytest.approx(found["infold_run_duration_seconds", ""], abs=1e-3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["infold.prom"]
    units = "seconds|rows|steps|cells|models|audits|success|failed|info"
    for name, _ in found:
        assert re.fullmatch(rf"infold_(run|model|build)(_[a-z]+)*_({units})", name), name


def test_a_failure_keeps_the_time_of_the_last_success(tmp_path: Path) -> None:
    """An alert asks how long ago that was; a run that did not begin is a failure too. Before the
    first success there is none, and not the beginning of time.
    """
    file, shop = tmp_path / "infold.prom", project(tmp_path, "")
    last = ("infold_run_last_success_timestamp_seconds", "")
    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    assert last not in read(file)
    end(shop, good, Sinks(metrics=file))
    before = read(file)[last]

    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    failed = read(file)
    over = run_errors.over_budget(rows=10, max_rows=3)
    with pytest.raises(InfoldError):
        end(shop, raising(over), Sinks(metrics=file))
    found = read(file)

    assert (failed[last], failed["infold_run_success", ""]) == (before, 0)
    assert failed["infold_run_failed_models", ""] == 2
    assert failed["infold_run_waiting_models", ""] == 1
    assert [failed["infold_model_failed", one] for one in ("clicks", "daily", "users")] == [0, 1, 1]
    assert (found[last], found["infold_run_success", ""]) == (before, 0)


def test_another_environment_is_another_series(tmp_path: Path) -> None:
    """Its name is a label; hooks are production's."""
    file = tmp_path / "infold.prom"
    shop = project(tmp_path, "on_success: {command: 'touch told'}")

    end(shop, good, Sinks(metrics=file), environment="mine")

    assert 'infold_run_success{project="shop",target="dev",environment="mine"} 1\n' in (
        file.read_text()
    )
    assert not (tmp_path / "told").exists()


# -- traces


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


def test_the_trace_of_a_run_that_fails(tmp_path: Path, collector: Receiver) -> None:
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


def test_a_trace_that_cannot_be_sent_is_a_note(
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
