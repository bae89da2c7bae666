"""Batches at the same time, sessions on servers, and the totals of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from infold import api
from infold.api.sole_writer import announce, sole_writer
from infold.cli import cli
from infold.core.audits import Audit, AuditKind
from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import DAY, Interval, Ranges, parse_instant_text
from infold.core.model import Kind
from infold.core.plan import Action, FileDiff, Plan, Reason, Step
from infold.core.project import Input, Project
from infold.core.record import Outcome, Receipt
from infold.core.target import Engine
from infold.core.trace import Cause, Pending, Trace
from infold.ledger import SqlLedger
from infold.ledger.store import kept_sessions
from infold.messages.errors import InfoldError
from infold.running.concurrent_batches import (
    CommitLock,
    CommitTurn,
    concurrent_batches,
    side_by_side,
)
from infold.running.run_progress import run_receipt
from infold.spark import connect
from infold.spark.connect import RemoteSession

FIRST = parse_instant_text("2024-03-01")


def days(*numbers: int) -> Ranges:
    """The days of a month, from 0."""
    return Ranges.of(Interval(FIRST + n * DAY, FIRST + (n + 1) * DAY) for n in numbers)


STEP = Step(
    model="daily",
    action=Action.RECOMPUTE,
    cells=days(0, 1),
    reasons=(Reason(Cause.LATE, "rows", days(0, 1, 2, 3, 4, 5)),),
    inputs={"events": (1, 2)},
    files=None,
    version=7,
    trace=Trace("daily", "fp", {"events": 2}, (Pending(Cause.LATE, days(2, 3, 4, 5)),)),
    previous_trace=None,
    expected=False,
    batches=3,
    concurrent_batches=(days(2, 3), days(4, 5)),
)


def outcome(*, committed: bool = True) -> Outcome:
    """What a batch came to, before it has its turn."""
    assert STEP.trace is not None
    return Outcome("daily", STEP.version, STEP.trace, committed=committed)


def test_batches_beside_a_step_build_their_own_cells() -> None:
    """Together they are all of them, and all are pending before the first batch commits. A step
    without batches records its outcome unchanged and waits for nobody.
    """
    cells = [batch.cells for batch in concurrent_batches(STEP)]
    assert cells == [days(0, 1), days(2, 3), days(4, 5)]
    assert CommitLock.of(STEP).trace.pending_ranges == days(0, 1, 2, 3, 4, 5)
    assert CommitTurn(days(0, 1)).take(outcome()) == outcome()


WROTE, NOTHING, FAILED = True, False, None


@pytest.mark.parametrize(
    ("batches", "found"),
    [
        ([((2, 3), WROTE), ((0, 1), WROTE), ((4, 5), WROTE)],
         [(7, (0, 1, 4, 5)), (8, (4, 5)), (9, ())]),
        ([((0, 1), WROTE), ((2, 3), NOTHING), ((4, 5), WROTE)],
         [(7, (2, 3, 4, 5)), (8, (4, 5)), (8, ())]),
        ([((0, 1), FAILED), ((2, 3), WROTE)], [(7, (2, 3, 4, 5)), (7, (0, 1, 4, 5))]),
    ],
    ids=["all write", "one has nothing", "one fails"],
)  # fmt: skip
def test_what_batches_record_in_any_order(
    batches: list[tuple[tuple[int, int], bool | None]], found: list[tuple[int, tuple[int, ...]]]
) -> None:
    """Each commit is the next version, and leaves pending exactly what is not committed yet."""
    lock = CommitLock.of(STEP)
    for (cells, wrote), (version, left) in zip(batches, found, strict=True):
        turn = CommitTurn(days(*cells), lock)
        holds = turn.take(outcome(committed=wrote is not NOTHING))
        turn.release(None if wrote is FAILED else holds)
        assert (holds.version, holds.trace.pending_ranges) == (version, days(*left))


def test_no_batch_follows_a_commit_unknown_to_the_ledger() -> None:
    """One that fails between its commits to table and ledger stops those after it."""
    lock = CommitLock.of(STEP)
    cut = CommitTurn(days(0, 1), lock)

    def end_between() -> None:
        with cut.released_after_error():
            cut.take(outcome())
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        end_between()
    with pytest.raises(OSError, match="disk"):
        CommitTurn(days(2, 3), lock).take(outcome())


KINDS = {"clicks": Kind.EVENTS, "orders": Kind.EVENTS, "names": Kind.VIEW}
READ = {"names": "users"}
AUDITS = {"daily": "users", "weekly": "names"}
"""Which models have an audit that reads which other; ``names`` is a view."""


def node(name: str) -> Any:
    """As much of a model as matters to the order of steps."""
    audits = (Audit("known", AuditKind.RELATIONSHIP, to=AUDITS[name]),) if name in AUDITS else ()
    model = SimpleNamespace(kind=KINDS.get(name, Kind.TABLE), audits=audits)
    inputs = (Input(READ[name]),) if name in READ else ()
    return SimpleNamespace(name=name, model=model, stored_inputs=inputs)


def together(drawn: str, jobs: int | None = None, models_at_once: int = 1) -> str:
    """Which of some models have steps carried out together; one with a ``?`` waits itself."""
    steps = tuple(one(name.rstrip("?"), expected=name.endswith("?")) for name in drawn.split())
    project: Any = {name: node(name) for name in (*(step.model for step in steps), "names")}
    lake: Any = SimpleNamespace(metadata=lambda _: "it is there")
    found = side_by_side(project, lake, Plan(steps), jobs, models_at_once)
    return " ".join(step.model for step, _ in found)


def one(model: str, *, expected: bool = False) -> Step:
    """A step of a model; ``batches`` are built at the same time."""
    beside = (days(2, 3), days(4, 5)) if model == "batches" else ()
    return replace(STEP, model=model, expected=expected, concurrent_batches=beside)


@pytest.mark.parametrize(
    ("steps", "jobs", "at_once", "chosen"),
    [
        # all, or one where one is built at a time: as the run says, or else the engine
        ("a b c", None, 1, "a"),
        ("a b c", None, 2, "a b c"),
        ("a b c", 1, 4, "a"),
        ("a b c", 2, 1, "a b c"),
        # readers come after, and files are ingested one at a time
        ("clicks sessions? orders b", None, 4, "clicks b"),
        # a table comes before whose audits read it, whether it is ready or waits itself
        ("users daily b", None, 4, "users b"),
        ("users weekly b", 4, 1, "users b"),
        ("clicks users? daily", None, 4, "clicks"),
        ("daily b", None, 4, "daily b"),
        # what is planned before it is about stored rows alone, and sees the table as it is
        ("daily users b", None, 4, "daily b"),
        # beside batches as the model says, no others are computed
        ("batches b", None, 4, "batches batches batches"),
        ("b batches c", None, 4, "b c"),
        ("batches b", 3, 1, "b batches batches"),
        ("batches b c d", 2, 1, "b c d batches"),
    ],
)
def test_which_steps_are_carried_out_together(
    steps: str, jobs: int | None, at_once: int, chosen: str
) -> None:
    """By what they read and are judged on."""
    assert together(steps, jobs, at_once) == chosen


class Reading(dict[str, Any]):
    """Tables of days that read events, one of them through the other."""

    def upstream(self, names: Iterable[str]) -> set[str]:
        """What some of them read."""
        reads = {"daily": {"events"}, "rolling": {"daily", "events"}}
        return set().union(*(reads.get(name, set()) for name in names))


@pytest.mark.parametrize("action", [action for action in Action if action.of_own_rows])
def test_no_input_beside_its_readers(action: Action) -> None:
    """
    Of steps about stored rows, which a plan has readers first, an input comes after all of its
    readers, also after one that has to wait itself. It waits for no reader that is computed from
    it, or that waits for it.
    """
    names = ("rolling", "daily", "events", "other")
    table = SimpleNamespace(kind=Kind.TABLE, audits=())
    project: Any = Reading((name, SimpleNamespace(name=name, model=table)) for name in names)

    def chosen(*steps: Step) -> list[str]:
        found = side_by_side(project, cast("Any", SimpleNamespace()), Plan(steps), None, 4)
        return [step.model for step, _ in found]

    rolling, daily = (replace(one(name), action=Action.DERIVE) for name in ("rolling", "daily"))
    events, other = (replace(one(name), action=action) for name in ("events", "other"))

    assert chosen(rolling, daily, events, other) == ["rolling", "other"]
    assert chosen(daily, events, other) == ["daily", "other"]
    assert chosen(events, other) == ["events", "other"]
    assert chosen(one("daily"), replace(events, action=Action.EVOLVE)) == ["daily", "events"]
    assert chosen(replace(daily, expected=True), events) == ["events"]


# -- a run's totals, from its steps


def took(
    model: str, source: str, paths: str, receipt: Receipt, gone: str = "", due: str = ""
) -> tuple[Step, Receipt]:
    """A step of a model that took in files of ten bytes each, by their letters."""
    files = FileDiff(
        source,
        new=tuple(ListedFile(path, 10, 0, "1") for path in paths),
        removed=tuple(IngestedFile(1, path, 10, "1", 0) for path in gone),
        come_due=tuple(IngestedFile(1, path, 10, "1", 0) for path in due),
    )
    return Step(model, Action.INGEST, Ranges(), (), files=files), receipt


def of(rows: int, files: int = 1, waiting: int = 0, removed: int = 0) -> Receipt:
    """A receipt of rows that arrived."""
    return Receipt(arrived=rows, files_new=files, read=rows, waiting=waiting, files_removed=removed)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("raw.a", "xy", 10), ("raw.a", "xy", 10), (10, 2)),
        (("raw.a", "xy", 10), ("raw.b", "xy", 10), (20, 4)),
        (("raw.a", "x", 4), ("raw.a", "xyz", 10), (10, 3)),
        (("raw.a", "x", 4), ("raw.a", "yz", 10), (14, 3)),
        (("raw.a", "xy", 8), ("raw.a", "yz", 10), (13, 3)),
        (("raw.a", "", 0), ("raw.a", "", 0), (0, 0)),
    ],
    ids=["the same files", "other sources", "more files", "other files", "some alike", "none"],
)
def test_a_file_arrives_once(
    first: tuple[str, str, int], second: tuple[str, str, int], expected: tuple[int, int]
) -> None:
    """A file counts as arrived once, while rows read add up over the models that read it."""
    done = [
        took(model, source, paths, of(rows, len(paths)))
        for model, (source, paths, rows) in (("one", first), ("two", second))
    ]
    found = run_receipt(done)
    assert (found.arrived, found.files_new) == expected
    assert found.read == first[2] + second[2]


def test_rows_wait_once_and_removed_files_count_once() -> None:
    """
    Also of files that come due; rows of steps of one model add up, as their files differ. Models of
    one source list the same folders, or more; those of other sources add up.
    """
    done = [
        took(name, "raw.a", "x", of(3, waiting=2, removed=1), gone="g", due="y")
        for name in ("one", "two")
    ]
    done.append((Step("three", Action.FOLD, Ranges(), ()), Receipt(read=5)))
    found = run_receipt(done)
    assert (found.arrived, found.waiting, found.files_removed, found.read) == (3, 2, 1, 11)
    found = run_receipt([took("one", "raw.a", "x", of(3)), took("one", "raw.a", "y", of(4))])
    assert (found.arrived, found.files_new) == (7, 2)
    folders = (("one", "raw.a", 3, 7), ("two", "raw.a", 10, 0), ("three", "raw.b", 2, 4))
    done = [
        took(name, source, "x", replace(of(3), folders_listed=listed, folders_left_out=out))
        for name, source, listed, out in folders
    ]
    found = run_receipt(done)
    assert (found.folders_listed, found.folders_left_out) == (12, 4)


def out(model: str, by: str, rows: int, **also: int) -> tuple[Step, Receipt]:
    """A step of a sessions model that leaves rows out, some that others leave out as well."""
    others = tuple((names.replace("_", ", "), count) for names, count in also.items())
    receipt = Receipt(set_aside=rows, set_aside_by=((by, rows),), set_aside_also=others)
    return Step(model, Action.FOLD, Ranges(), ()), receipt


BAD = Step("c", Action.INGEST, Ranges(), ()), Receipt(set_aside=5, set_aside_by=(("bad", 5),))


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ([out("a", "user", 3), out("b", "user", 2, a=2)], (("user", 3),)),
        ([out("a", "user", 3), out("b", "id", 4, a=1)], (("id", 3), ("user", 3))),
        ([out("b", "user", 2, a=2)], (("user", 2),)),
        ([out("b", "user", 2, a=2), out("c", "user", 3, a=1, a_b=1)], (("user", 4),)),
        ([out("a", "user", 3), out("c", "user", 3, a_b=2, b=1)], (("user", 4),)),
        ([BAD, out("a", "user", 2), out("b", "id", 2, a=2)], (("bad", 5), ("user", 2))),
    ],
    ids=["the same", "some of them", "the other did not run", "twice", "in turn", "no reason left"],
)
def test_a_row_is_set_aside_once(
    done: list[tuple[Step, Receipt]], expected: tuple[tuple[str, int], ...]
) -> None:
    """In the first model that leaves it out; each model alone counts all of its own."""
    found = run_receipt(done)
    assert found.set_aside_by == expected
    assert (found.set_aside, found.set_aside_also) == (sum(n for _, n in expected), ())


# -- sessions on a server that a dead run left


SERVER = "sc://there:15002"


class Session:
    """What a run knows of its session."""

    session_id = "one"

    class client:  # noqa: N801 (as PySpark has it)
        """Of the session."""

        _user_id = "ann"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose target computes on a server."""
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    found = api.open_project(tmp_path / "shop")
    engine = Engine(remote=f"{SERVER}/;token=${{env:SPARK_TOKEN}}", shared_disk=True)
    return replace(found, target=replace(found.target, engine=engine))


@pytest.fixture
def ledger(project: Project) -> SqlLedger:
    """Its ledger, with the lease."""
    found = api.ledger_of(project)
    found.acquire("run")
    return found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RemoteSession, str]]:
    """The sessions that were ended, and how the server was spoken to."""
    found: list[tuple[RemoteSession, str]] = []
    monkeypatch.setattr(connect, "end", lambda one, url: found.append((one, url)))
    monkeypatch.setenv("SPARK_TOKEN", "a b")
    return found


OWN = RemoteSession(SERVER, "ann", "one")


Ended = list[tuple[RemoteSession, str]]


def test_a_run_that_ends_leaves_nothing(project: Project, ledger: SqlLedger, ended: Ended) -> None:
    """Its session is known while it works; one that fails ends what it asked the server for."""
    with sole_writer(project, ledger):
        for _ in range(2):
            announce(project, ledger, Session)
        assert kept_sessions(ledger) == (OWN.as_json(),)
    assert kept_sessions(ledger) == ()
    assert ended == []

    def work() -> None:
        with sole_writer(project, ledger):
            announce(project, ledger, Session)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert ended == [(OWN, f"{SERVER}/;token=a%20b")]
    assert kept_sessions(ledger) == ()


@pytest.mark.parametrize("moved", [False, True])
def test_the_next_run_ends_what_a_dead_one_left(
    project: Project, ledger: SqlLedger, ended: Ended, moved: bool
) -> None:
    """Also one that computes elsewhere by now: that server gets no token of another one."""
    announce(project, ledger, Session)
    if moved:
        project = replace(project, target=replace(project.target, engine=Engine()))
    with sole_writer(project, ledger):
        assert ended == [(OWN, SERVER if moved else f"{SERVER}/;token=a%20b")]
        assert kept_sessions(ledger) == ()


def test_no_run_begins_beside_a_server_that_does_not_answer(
    project: Project, ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it commits late would be there twice; the entry stays, without the token."""
    monkeypatch.setenv("SPARK_TOKEN", "secret")

    def refused(one: RemoteSession, url: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(connect, "end", refused)
    announce(project, ledger, Session)
    with pytest.raises(InfoldError, match="session-left") as caught, sole_writer(project, ledger):
        pytest.fail("it began")

    assert SERVER in str(caught.value)
    assert "secret" not in str(caught.value)
    assert kept_sessions(ledger) == (OWN.as_json(),)
