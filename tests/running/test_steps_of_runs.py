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
from infold.core.engines import Engine
from infold.core.files import IngestedFile, ListedFile
from infold.core.interval import DAY, Interval, Ranges, parse_instant_text
from infold.core.model import Kind
from infold.core.plan import Action, FileDiff, Plan, Reason, Step
from infold.core.project import Input, Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import Cause, Pending, Trace
from infold.ledger import SqlLedger
from infold.ledger.remote_sessions import kept_sessions
from infold.messages.errors import InfoldError
from infold.running.concurrent_batches import (
    CommitLock,
    CommitTurn,
    concurrent_batches,
    side_by_side,
)
from infold.running.run_totals import run_receipt
from infold.spark.connect import clients
from infold.spark.connect.clients import RemoteSession

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
    """Together they are all of them, and all are pending before the first batch commits."""
    assert [batch.cells for batch in concurrent_batches(STEP)] == [
        days(0, 1),
        days(2, 3),
        days(4, 5),
    ]
    assert CommitLock.of(STEP).trace.pending_ranges == days(0, 1, 2, 3, 4, 5)


def committed(*batches: tuple[Ranges, bool]) -> list[Outcome]:
    """What is recorded of batches that commit in this order, where they wrote something."""
    lock, found = CommitLock.of(STEP), []
    for cells, wrote in batches:
        turn = CommitTurn(cells, lock)
        found.append(turn.take(outcome(committed=wrote)))
        turn.release(found[-1])
    return found


def test_each_batch_leaves_pending_what_the_others_have_yet_to_build() -> None:
    """After a batch's commit exactly the cells of uncommitted batches are pending."""
    found = committed((days(2, 3), True), (days(0, 1), True), (days(4, 5), True))

    assert [holds.trace.pending_ranges for holds in found] == [
        days(0, 1, 4, 5),
        days(4, 5),
        Ranges(),
    ]


def test_each_commit_is_the_next_version_and_a_batch_without_one_uses_none() -> None:
    """Each commit is the next version; a batch that commits nothing uses no version."""
    found = committed((days(0, 1), True), (days(2, 3), False), (days(4, 5), True))

    assert [holds.version for holds in found] == [7, 8, 8]


def test_a_batch_that_wrote_nothing_leaves_its_cells_pending() -> None:
    """So no later batch counts them as built."""
    lock = CommitLock.of(STEP)
    failed = CommitTurn(days(0, 1), lock)
    failed.take(outcome())
    failed.release(None)

    holds = CommitTurn(days(2, 3), lock).take(outcome())

    assert (holds.version, holds.trace.pending_ranges) == (7, days(0, 1, 4, 5))


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


def test_a_step_without_batches_does_not_wait() -> None:
    """A step without batches records its outcome unchanged and waits for nobody."""
    assert CommitTurn(days(0, 1)).take(outcome()) == outcome()


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


def chosen(*steps: Step, jobs: int | None = None, models_at_once: int = 1) -> list[str]:
    """The models of the steps that are carried out together."""
    project: Any = {name: node(name) for name in (*(step.model for step in steps), "names")}
    lake: Any = SimpleNamespace(metadata=lambda _: "it is there")
    found = side_by_side(project, lake, Plan(steps), jobs, models_at_once)
    return [step.model for step, _ in found]


def one(model: str, *, expected: bool = False, batches: tuple[Ranges, ...] = ()) -> Step:
    """A step of a model."""
    return replace(STEP, model=model, expected=expected, concurrent_batches=batches)


class TestSideBySide:
    """Which steps are carried out together."""

    def test_as_many_models_as_the_engine_likes_if_nobody_says(self) -> None:
        """The engine's number of models; readers come after, and files one at a time."""
        steps = one("a"), one("b"), one("c")

        assert chosen(*steps) == ["a"]
        assert chosen(*steps, models_at_once=2) == ["a", "b"]
        assert chosen(*steps, models_at_once=4) == ["a", "b", "c"]
        assert chosen(*steps, jobs=1, models_at_once=4) == ["a"]
        assert chosen(*steps, jobs=3, models_at_once=2) == ["a", "b", "c"]
        waits = one("sessions", expected=True)
        found = chosen(one("clicks"), waits, one("orders"), one("b"), models_at_once=4)
        assert found == ["clicks", "b"]

    def test_none_whose_audits_read_a_table_that_is_to_be_built(self) -> None:
        """The table comes first, whether it is ready or waits itself; a view is what it reads."""
        users, waits = one("users"), one("users", expected=True)

        assert chosen(users, one("daily"), one("b"), models_at_once=4) == ["users", "b"]
        assert chosen(users, one("weekly"), one("b"), jobs=4) == ["users", "b"]
        assert chosen(one("clicks"), waits, one("daily"), models_at_once=4) == ["clicks"]
        assert chosen(one("daily"), one("b"), models_at_once=4) == ["daily", "b"]

    def test_no_table_beside_a_model_that_is_judged_on_it(self) -> None:
        """What is planned before it, as it is about stored rows alone, sees the table as it is."""
        steps = one("daily"), one("users"), one("b")

        assert chosen(*steps, models_at_once=4) == ["daily", "b"]

    def test_models_with_batches_at_the_same_time_are_alone(self) -> None:
        """The batches are as many as the model says; no others are computed beside them."""
        batches = one("batches", batches=(days(2, 3), days(4, 5)))

        assert chosen(batches, one("b"), models_at_once=4) == ["batches"] * 3
        assert chosen(one("b"), batches, one("c"), models_at_once=4) == ["b", "c"]
        assert chosen(batches, one("b"), jobs=3) == ["b", "batches", "batches"]


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
    """Also of files that come due; rows of steps of one model add up, as their files differ."""
    done = [
        took(name, "raw.a", "x", of(3, waiting=2, removed=1), gone="g", due="y")
        for name in ("one", "two")
    ]
    done.append((Step("three", Action.FOLD, Ranges(), ()), Receipt(read=5)))
    found = run_receipt(done)
    assert (found.arrived, found.waiting, found.files_removed, found.read) == (3, 2, 1, 11)
    found = run_receipt([took("one", "raw.a", "x", of(3)), took("one", "raw.a", "y", of(4))])
    assert (found.arrived, found.files_new) == (7, 2)


def test_dated_folders_count_once() -> None:
    """Models of one source list the same folders, or more; those of other sources add up."""
    done = [
        took(name, source, "x", replace(of(3), folders_listed=listed, folders_left_out=out))
        for name, source, listed, out in (
            ("one", "raw.a", 3, 7),
            ("two", "raw.a", 10, 0),
            ("three", "raw.b", 2, 4),
        )
    ]
    found = run_receipt(done)
    assert (found.folders_listed, found.folders_left_out) == (12, 4)


def out(model: str, by: str, rows: int, **also: int) -> tuple[Step, Receipt]:
    """A step of a sessions model that leaves rows out, some that others leave out as well."""
    others = tuple((names.replace("_", ", "), count) for names, count in also.items())
    receipt = Receipt(set_aside=rows, set_aside_by=((by, rows),), set_aside_also=others)
    return Step(model, Action.FOLD, Ranges(), ()), receipt


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        ([out("a", "user", 3), out("b", "user", 2, a=2)], (("user", 3),)),
        ([out("a", "user", 3), out("b", "id", 4, a=1)], (("id", 3), ("user", 3))),
        ([out("b", "user", 2, a=2)], (("user", 2),)),
        ([out("b", "user", 2, a=2), out("c", "user", 3, a=1, a_b=1)], (("user", 4),)),
        ([out("a", "user", 3), out("c", "user", 3, a_b=2, b=1)], (("user", 4),)),
    ],
    ids=["the same", "some of them", "the other did not run", "twice", "in turn"],
)
def test_a_row_is_set_aside_once(
    done: list[tuple[Step, Receipt]], expected: tuple[tuple[str, int], ...]
) -> None:
    """In the first model that leaves it out; each model alone counts all of its own."""
    found = run_receipt(done)
    assert found.set_aside_by == expected
    assert (found.set_aside, found.set_aside_also) == (sum(n for _, n in expected), ())


def test_no_reason_is_left_where_all_rows_count_elsewhere() -> None:
    """A reason disappears when all its rows count for another model, and other reasons stay."""
    first = Step("c", Action.INGEST, Ranges(), ()), Receipt(set_aside=5, set_aside_by=(("bad", 5),))
    found = run_receipt([first, out("a", "user", 2), out("b", "id", 2, a=2)])
    assert (found.set_aside, found.set_aside_by) == (7, (("bad", 5), ("user", 2)))


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
    found = api.ledger(project)
    found.acquire("run")
    return found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RemoteSession, str]]:
    """The sessions that were ended, and how the server was spoken to."""
    found: list[tuple[RemoteSession, str]] = []
    monkeypatch.setattr(clients, "end", lambda one, url: found.append((one, url)))
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

    monkeypatch.setattr(clients, "end", refused)
    announce(project, ledger, Session)
    with pytest.raises(InfoldError, match="session-left") as caught, sole_writer(project, ledger):
        pytest.fail("it began")

    assert SERVER in str(caught.value)
    assert "secret" not in str(caught.value)
    assert kept_sessions(ledger) == (OWN.as_json(),)
