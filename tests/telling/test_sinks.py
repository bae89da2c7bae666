"""Hooks, a log, metrics and traces tell of every end of a run, and never change what it does."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli import sample
from tests.declare.shop import INFOLD, SHOP, read, write
from tests.docs.pages import DOCS
from tests.running.commands import infold, said
from tests.running.production import TARGET, change, shop_in_production
from tests.running.standing_tables import DECLARED
from tests.telling.receiver import Receiver, receiver
from tests.telling.runs import bad, end, good, project, raising

from infold import api
from infold.api.run_and_tell import run_and_tell
from infold.core.hooks import Sinks
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import RunFailed, RunResult
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.system import signals
from infold.telling import traces

SECRET = "s3cret/part"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A server whose address is a secret in the environment."""
    with receiver() as found:
        monkeypatch.setenv("HOOK_URL", f"{found.url}/{SECRET}")
        monkeypatch.setenv("HOOK_TOKEN", SECRET)
        yield found


def failed_of(root: Path, hooks: str) -> RunResult:
    """The result of a run that failed, as it is raised."""
    with pytest.raises(RunFailed) as found:
        end(project(root, hooks), bad(sample.failed()))
    return found.value.result


def reasons(result: RunResult) -> list[str]:
    """Why models failed."""
    return [failure.reason for failure in result.failures]


class TestWebhooks:
    """A request to a URL."""

    def test_the_facts_are_the_body(self, server: Receiver, tmp_path: Path) -> None:
        """Without a template the facts are sent as JSON; a body of one text is sent as it is."""
        end(project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}'}"))
        failed_of(tmp_path, "on_failure: {webhook: '${env:HOOK_URL}', body: '{state}: {models}'}")

        got, text = server.got
        assert 0 <= got.json["seconds"] < 60
        assert got.path == f"/{SECRET}"
        assert got.headers["Content-Type"] == "application/json"
        assert got.json | {"seconds": 0} == {
            "project": "shop",
            "target": "dev",
            "command": "run",
            "run": "20240311T063000-a1b2c3",
            "state": "done",
            "error": "",
            "models": "",
            "steps": 3,
            "rows_read": sample.result().receipt.read,
            "rows_written": sample.result().receipt.written,
            "seconds": 0,
        }
        assert text.body == "failed: daily, users"
        assert text.headers["Content-Type"] == "text/plain; charset=utf-8"

    def test_a_template_is_json_whatever_a_fact_says(
        self, server: Receiver, tmp_path: Path
    ) -> None:
        """Facts are filled into the texts of a body, so quotes and line ends break nothing."""
        hooks = """\
on_failure:
  webhook: ${env:HOOK_URL}
  headers: {Authorization: 'Bearer ${env:HOOK_TOKEN}', X-State: '{state}'}
  body:
    text: '{project} {state}: {error}'
    key: ${env:HOOK_TOKEN}
    fields: [{n: 3, on: true, no: null, models: '{models} {steps}'}]
"""
        error = run_errors.step_failed(model="daily", what='a "b"\n${env:HOOK_TOKEN}', condition="")
        with pytest.raises(InfoldError):
            end(project(tmp_path, hooks), raising(error))

        [got] = server.got
        assert got.headers["Authorization"] == f"Bearer {SECRET}"
        assert got.headers["X-State"] == "failed"
        assert got.json["key"] == SECRET
        assert got.json["fields"] == [{"n": 3, "on": True, "no": None, "models": " 0"}]
        # A reference in a fact is text: nobody may read secrets by what a row or an error says.
        assert got.json["text"].endswith('a "b"\n${env:HOOK_TOKEN}')

    def test_another_answer_is_said(self, server: Receiver, tmp_path: Path) -> None:
        """The result is the run's, with a note; and no redirection is followed."""
        own = sample.result()
        server.location = f"{server.url}/elsewhere"
        for server.answer in (300, 302, 404, 500):
            result = end(project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}'}"))

            note = f"the hook on_success failed: the answer was {server.answer}"
            assert result.notes == (*own.notes, note)
            assert (result.steps, result.state) == (own.steps, own.state)
        assert [got.path for got in server.got] == [f"/{SECRET}"] * 4

    @pytest.mark.deep
    def test_who_does_not_answer_is_left(self, server: Receiver, tmp_path: Path) -> None:
        """After `timeout`; the run ends as it would have."""
        server.hang = threading.Event()
        hooks = "on_failure: {webhook: '${env:HOOK_URL}', timeout: 200 milliseconds}"
        before = time.monotonic()

        result = failed_of(tmp_path, hooks)

        assert time.monotonic() - before < 10
        assert result.notes[-1].startswith("the hook on_failure failed: no answer")
        assert reasons(result) == reasons(sample.failed())

    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:1/" + SECRET,
            "http://nowhere.invalid/" + SECRET,
            "http://[" + SECRET,
            "http://127.0.0.1:9/a b" + SECRET,
            "file:///" + SECRET,
            "http://127.0.0.1:port/" + SECRET,
        ],
    )
    def test_no_note_has_the_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
    ) -> None:
        """Whatever is wrong with it: it is a secret as a whole."""
        monkeypatch.setenv("HOOK_URL", url)

        result = end(
            project(tmp_path, "on_success: {webhook: '${env:HOOK_URL}', timeout: 5 seconds}")
        )

        assert result.notes[-1].startswith("the hook on_success failed: ")
        assert SECRET not in repr(result)

    def test_a_secret_that_is_not_there(self, tmp_path: Path) -> None:
        """Is said by its reference, and the next hook is told all the same."""
        hooks = """\
on_success:
  - {webhook: '${file:none.txt}'}
  - {command: 'echo told > told.txt'}
"""
        result = end(project(tmp_path, hooks))

        assert result.notes[-1] == (
            "the hook on_success[1] failed: ${file:none.txt}, "
            "the file cannot be read: No such file or directory"
        )
        assert (tmp_path / "told.txt").read_text() == "told\n"


class TestCommands:
    """A command of the shell."""

    def test_it_gets_the_facts(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """As variables and as JSON, in the project's folder; it prints where errors go."""
        hooks = "on_failure: {command: 'echo \"$INFOLD_STATE $INFOLD_MODELS\"; cat > b'}"

        result = failed_of(tmp_path, hooks)

        assert result.notes == sample.failed().notes
        assert reasons(result) == reasons(sample.failed())
        out, err = capfd.readouterr()
        assert (out, err) == ("", "failed daily, users\n")
        assert json.loads((tmp_path / "b").read_text())["error"] == "; ".join(reasons(result))

    def test_one_that_fails_is_said(self, tmp_path: Path) -> None:
        """By its exit code, and not for reading nothing; nor does a run without a folder fail."""
        for folder, note in (
            (tmp_path, "[1] failed: it ended with exit code 7"),
            (tmp_path / "gone", "[2] failed: No such file or directory"),
        ):
            result = end(project(folder, "on_success: [{command: 'exit 7'}, {command: 'true'}]"))

            assert result.notes[-1] == f"the hook on_success{note}"

    @pytest.mark.deep
    def test_one_that_hangs_is_ended_with_all_it_started(self, tmp_path: Path) -> None:
        """Its children as well: none goes on behind the run."""
        hooks = "on_success: {command: 'sleep 60 & echo $! > pid; wait', timeout: 400 milliseconds}"
        before = time.monotonic()

        result = end(project(tmp_path, hooks))

        assert time.monotonic() - before < 20
        assert result.notes[-1] == "the hook on_success failed: it was ended after 0.4 seconds"
        child = int((tmp_path / "pid").read_text())
        for _ in range(500):
            if not alive(child):
                break
            time.sleep(0.01)
        assert not alive(child)


def alive(process: int) -> bool:
    """Whether a process is there, and not only left to be waited for."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


class TestWhich:
    """Which hooks are told."""

    HOOKS = """\
on_success: {command: 'echo good >> told'}
on_failure: {command: 'echo "$INFOLD_STATE $INFOLD_ERROR" >> told'}
"""

    def test_a_run_that_did_not_begin(self, tmp_path: Path) -> None:
        """The same error, without a result; what could not be told is a fact of it."""
        error = run_errors.over_budget(rows=10, max_rows=3)
        raised = []
        for hooks in (self.HOOKS, "on_failure: {command: 'exit 3'}"):
            with pytest.raises(InfoldError) as found:
                end(project(tmp_path, hooks), raising(error))
            raised.append(found.value)

        assert raised[0] is error
        assert (tmp_path / "told").read_text() == f"refused over-budget: {error.what}\n"
        why = "the hook on_failure failed: it ended with exit code 3"
        assert (raised[1].exit_code, raised[1].facts[-1]) == (3, ("note", why))

    def test_an_error_after_a_signal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The run was stopped; the error came of it, as Java is gone."""
        monkeypatch.setattr(signals, "_state", state := signals._State())
        state.signal, state.printed = signal.SIGINT, True

        with pytest.raises(signals.Stopped):
            end(project(tmp_path, self.HOOKS), raising(ConnectionRefusedError(111, "refused")))
        assert (tmp_path / "told").read_text() == "stopped stopped by SIGINT\n"

    def test_a_crash(self, tmp_path: Path) -> None:
        """Is a failure like others, and goes on its way, as Ctrl-C does."""
        told = tmp_path / "told"
        with pytest.raises(KeyboardInterrupt):
            end(project(tmp_path, self.HOOKS), raising(KeyboardInterrupt()))
        assert told.read_text() == "stopped stopped by KeyboardInterrupt\n"

        with pytest.raises(ZeroDivisionError):
            end(project(tmp_path, self.HOOKS), raising(ZeroDivisionError()))
        assert told.read_text().splitlines()[1].startswith("failed ")


def test_the_run_is_shown_as_without_hooks(tmp_path: Path) -> None:
    """What a run says of its steps reaches its progress, once each and in order."""
    said = []

    class Saying(SilentProgress):
        def note(self, text: str) -> None:
            said.append(text)

    def run(shown: Progress) -> RunResult:
        shown.note("one")
        shown.note("two")
        return sample.result()

    run_and_tell(project(tmp_path, "on_success: {command: 'true'}"), "run", Saying(), run)

    assert said == ["one", "two"]


@pytest.mark.parametrize(
    ("number", "hooks", "lineage"),
    [(0, ["on_failure[1]", "on_failure[2]", "on_success"], False), (1, [], True)],
)
def test_the_examples_of_the_page(number: int, hooks: list[str], lineage: bool) -> None:
    """`docs/notifications.md` shows keys as they are declared."""
    page = (DOCS / "notifications.md").read_text(encoding="utf-8")
    example = re.findall(r"```yaml\n(targets:.*?)```", page, re.DOTALL)[number]

    found, errors = read({**SHOP, "infold.yml": INFOLD[: INFOLD.index("targets:")] + example})

    assert errors == []
    assert found is not None
    assert [hook.name for hook in found.targets["prod"].hooks] == hooks
    assert (found.targets["prod"].lineage is not None) == lineage


# -- every end of a command that runs is told of once, also where no run came of it


GOOD = "'echo $INFOLD_COMMAND $INFOLD_STATE >> told'"
BAD = "'echo $INFOLD_COMMAND $INFOLD_STATE ${INFOLD_ERROR%%:*} >> told'"
HOOKS = f"on_success: {{command: {GOOD}}}, on_failure: {{command: {BAD}}}"
WITH_HOOKS = ("infold.yml", "protected: true}", f"protected: true, {HOOKS}}}")
COMMENT = ("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
BROKEN = ("models/daily.sql", "GROUP BY 1", "GROUP BY")


def told_of(with_hooks: Project) -> list[str]:
    """What the hooks were told since the last time."""
    file = with_hooks.root / "told"
    found = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


@pytest.fixture
def with_hooks(tmp_path: Path) -> Project:
    """The shop in production, with hooks."""
    found = shop_in_production(tmp_path / "shop")
    change(found, WITH_HOOKS)
    return found


@pytest.mark.parametrize(
    ("words", "code", "end"),
    [
        ("run", 0, "run done"),
        ("run nowhere", 2, "run failed unknown-model"),
        ("run --start 2024-03-04T01:00", 2, "run failed window-unaligned"),
        ("apply", 3, "apply refused apply-not-confirmed"),
        ("apply daily --yes", 0, "apply done"),
        ("restate nowhere", 2, "restate failed unknown-model"),
        (
            "backbuild nowhere --start 2024-03-04 --end 2024-03-05",
            2,
            "backbuild failed unknown-model",
        ),
        ("restate nowhere --dry-run", 2, None),
        ("run --watch --json", 2, None),
    ],
)
def test_an_end_is_told_once(with_hooks: Project, words: str, code: int, end: str | None) -> None:
    """Whether a run came of it or not; not where a command only shows, or is none."""
    change(with_hooks, WITH_HOOKS, COMMENT)

    assert infold(with_hooks, *words.split())[0] == code

    assert told_of(with_hooks) == ([] if end is None else [end])


def test_where_nothing_was_to_be_done(with_hooks: Project) -> None:
    """An `apply` without a change is a sign of life as a `run` is; a log has all of it."""
    log, metrics = with_hooks.root / "log", with_hooks.root / "metrics"

    said(with_hooks, "apply", "--log", str(log), "--metrics", str(metrics))

    assert told_of(with_hooks) == ["apply done"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["event"], one["command"]) for one in lines] == [
        ("run_began", "apply"),
        ("run_ended", "apply"),
    ]
    assert "infold_run_success{" in metrics.read_text()


def test_where_nothing_is_applied(tmp_path: Path) -> None:
    """Before the first `apply`, and where the files cannot be read either."""
    root = write(tmp_path / "shop", {**SHOP, "infold.yml": DECLARED + TARGET})
    with_hooks = api.open_project(root, "prod")
    change(with_hooks, WITH_HOOKS)
    for words in ("run", "restate daily"):
        assert infold(with_hooks, *words.split())[0] == 3
        assert told_of(with_hooks) == [f"{words.split()[0]} refused nothing-applied"]
    change(with_hooks, WITH_HOOKS, BROKEN)
    assert infold(with_hooks, "run")[0] == 2
    assert [line[:11] for line in told_of(with_hooks)] == ["run failed "]


def test_a_lost_ledger(with_hooks: Project) -> None:
    """A run that is refused as tables are there and the ledger is not."""
    (with_hooks.root / "prod.db").unlink()

    code, printed = infold(with_hooks, "run")

    assert told_of(with_hooks) == [
        f"run {'refused' if code == 3 else 'failed'} {printed.split(':')[0]}"
    ]


def test_the_same_error_is_told_once(tmp_path: Path) -> None:
    """One that ended a run has been told when the command ends with it."""
    from infold.api.run_and_tell import tell_of_end

    write(tmp_path, {**SHOP, "infold.yml": INFOLD})
    sinks, error = Sinks(log=tmp_path / "log"), KeyError("x")
    with pytest.raises(KeyError):
        end(project(tmp_path, ""), raising(error), sinks)

    for _ in range(2):
        tell_of_end(tmp_path, None, "run", sinks, error)
    tell_of_end(tmp_path, None, "run", sinks, KeyError("x"))

    assert (tmp_path / "log").read_text().count("run_ended") == 2


# -- what a run tells besides


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


def samples(file: Path) -> Samples:
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
    """In all and for each model, by names as Prometheus wants them, with the unit at the end."""
    file = tmp_path / "infold.prom"

    result = end(project(tmp_path, ""), good, Sinks(metrics=file))

    found, own = samples(file), sample.result()
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
    """Before the first success there is none, and not the beginning of time."""
    file, shop = tmp_path / "infold.prom", project(tmp_path, "")
    last = ("infold_run_last_success_timestamp_seconds", "")
    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    assert last not in samples(file)
    end(shop, good, Sinks(metrics=file))
    before = samples(file)[last]

    with pytest.raises(RunFailed):
        end(shop, bad(sample.failed()), Sinks(metrics=file))
    failed = samples(file)
    over = run_errors.over_budget(rows=10, max_rows=3)
    with pytest.raises(InfoldError):
        end(shop, raising(over), Sinks(metrics=file))
    found = samples(file)

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
