"""Changed definitions that follow from stored rows, of tables, events and sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.planning.strips import (
    DAILY,
    EVENTS,
    MONTHLY,
    SESSIONS,
    USERS,
    built,
    changed,
    changes,
    day,
    planned,
    project,
    states,
    step_of,
    with_incremental,
    with_trace,
)

from infold.core.definition import Category, Derivation, How, Redefinition
from infold.core.files import FileCell, IngestedFile, ListedFile
from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import Deduplicate, DefinitionChange, Timeseries
from infold.core.plan import (
    HELD_BACK,
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
)
from infold.core.project import Input, Node
from infold.core.queries import SessionsQuery
from infold.core.trace import Cause, CellState, EarlierCells, Pending, Trace
from infold.messages.errors import ExitCode, InfoldError
from infold.planning.derivations import ADDED_UP, COUNTED, FOLLOWS, REFOLDS, STATES
from infold.planning.destructive import refuse_removals
from infold.planning.forward_only import by_definitions_in_force
from infold.planning.model_states import reads_nothing
from infold.planning.planner import plan

OLD = replace(DAILY, fingerprint="old")
DERIVATION = Derivation((("day", "`day`"),), stored=("day", "n"))


def redefined(before: Node = OLD, after: Node = DAILY, how: How = How.DERIVE) -> Redefinition:
    """A change of the daily table."""
    derived = None if how is How.REBUILD else DERIVATION
    return Redefinition("daily", Category.BREAKING, (), how, before, after, derivation=derived)


def observed(
    change: Redefinition | None = None, pending: tuple[Pending, ...] = (), fingerprint: str = "old"
) -> ModelObservation:
    """The daily table, which an earlier definition built from version 1; version 2 has come."""
    seen = changed(DAILY, "sessions", "# # + # # # #")
    assert seen.trace is not None
    trace = Trace("daily", fingerprint, dict(seen.trace.inputs), pending)
    cells = states("# # # # # # #")
    return replace(seen, trace=trace, cells=cells, rows=70, redefined=change or redefined())


def made(seen: ModelObservation, asked: PlanOptions | None = None, node: Node = DAILY) -> Plan:
    """The plan for the daily table."""
    return planned(node, asked=asked, daily=seen)


def test_the_step() -> None:
    """It has the new fingerprint, and the versions and pending cells of the old rows."""
    left = Pending(Cause.LATE, Ranges((day(3),)))
    step, trace = step_of(made(observed(pending=(left,))))

    assert (step.action, step.derivation) == (Action.DERIVE, DERIVATION)
    assert [(reason.cause, reason.detail, reason.rows) for reason in step.reasons] == [
        (Cause.DEFINITION, FOLLOWS, 0)
    ]
    assert step.inputs == {"sessions": (1, 1), "users": (1, 1)}
    assert trace.fingerprint == DAILY.fingerprint
    assert trace.inputs == {"sessions": 1, "users": 1}
    assert trace.pending == (left,)
    assert not step.expected
    assert not reads_nothing(step)


def test_what_comes_after_it() -> None:
    """A note says that stale cells are next, if any; readers are built if it may differ."""
    upto_date = tuple(replace(diff, newest_version=1) for diff in observed().inputs)
    missing = Pending(Cause.MISSING, Ranges((day(3),)))
    found = planned(DAILY, MONTHLY, daily=observed(), monthly=built(MONTHLY))

    assert "built in a step after that" in found.notes[0].replace("\n", " ")
    assert not made(replace(observed(), inputs=upto_date)).notes
    assert made(replace(observed(pending=(missing,)), inputs=upto_date)).notes
    derived, reader = found.steps
    assert (derived.model, derived.rows_to_read) == ("daily", 0)
    assert (reader.model, reader.expected) == ("monthly", True)
    assert reader.reasons[0].detail == "because daily is built"


@pytest.mark.parametrize(
    ("columns", "expected", "order"),
    [
        ((("day", "`day`"), ("m", "`n` + 1")), False, ["monthly", "daily"]),
        ((("day", "`day`"), ("n", "`n` + 1")), True, ["daily", "monthly"]),
        ((("day", "`day`"), ("n", "`day`")), True, ["daily", "monthly"]),
    ],
    ids=["new", "changed", "exchanged"],
)
def test_a_reader_is_derived_before_its_input(
    columns: tuple[tuple[str, str], ...], expected: bool, order: list[str]
) -> None:
    """Unless a column of the input may have another type once that is derived."""
    change = replace(redefined(), derivation=Derivation(columns, stored=("day", "n")))
    mine = replace(redefined(replace(MONTHLY, fingerprint="old"), MONTHLY), model="monthly")
    months = with_trace(built(MONTHLY, redefined=mine), fingerprint="old")

    steps = planned(DAILY, MONTHLY, daily=observed(change), monthly=months).steps

    assert [(step.model, step.action) for step in steps] == [
        (name, Action.DERIVE) for name in order
    ]
    assert next(step.expected for step in steps if step.model == "monthly") is expected


def test_a_moved_start() -> None:
    """A later one forgets what is pending before it; an earlier one adds missing cells."""
    start = day(2).start + DAY // 2
    later, earlier = replace(DAILY, start=start), replace(DAILY, start=day(1).start)
    left = Pending(Cause.LATE, Ranges((day(1), day(4))))

    step, trace = step_of(made(observed(redefined(OLD, later), (left,)), node=later))
    assert step.cells == Ranges((Interval(start, MAX),))
    assert trace.pending == (Pending(Cause.LATE, Ranges((day(4),))),)

    before = replace(OLD, start=start)
    step, trace = step_of(made(observed(redefined(before, earlier), (left,)), node=earlier))
    assert trace.pending == (
        Pending(Cause.LATE, Ranges.of((day(1), day(4)))),
        Pending(Cause.MISSING, Ranges.of((day(1), day(2)))),
    )


@pytest.mark.parametrize("how", [How.DERIVE, How.EVOLVE, How.REBUCKET])
@pytest.mark.parametrize(
    ("trace", "asked"),
    [
        ({}, PlanOptions(restated={"daily": Ranges.ever()})),
        ({}, PlanOptions(not_derived=frozenset({"daily"}))),
        ({"fingerprint": "another"}, PlanOptions()),
        ({"pending": (Pending(Cause.DEFINITION, Ranges((day(1),))),)}, PlanOptions()),
        ({"inputs": {"sessions": 1}}, PlanOptions()),
    ],
    ids=["restated", "inexact", "another table", "two", "other inputs"],
)
def test_built_again(how: How, trace: dict[str, Any], asked: PlanOptions) -> None:
    """Where the stored rows may not be those that the proof is about, and if somebody asks."""
    seen = observed(redefined(how=how))
    [step] = made(seen).steps
    assert step.action.value == how.value

    [step] = made(with_trace(seen, **trace), asked).steps
    assert step.action is Action.BUILD
    assert step.rows_to_read


def test_in_doubt_or_in_part() -> None:
    """Without a proof the table is built again; a part of it cannot be derived either."""
    for change in (None, redefined(how=How.REBUILD)):
        [step] = made(replace(observed(), redefined=change)).steps
        assert step.action is Action.BUILD
    found = made(observed(), PlanOptions(window=Interval(day(1).start, day(2).end)))
    assert not found.steps
    assert [left.why for left in found.skipped] == [HELD_BACK]


def test_a_table_that_is_replaced_by_parts() -> None:
    """
    It is derived as a whole too, or gets other names of columns; what waits, waits. A window has a
    part of it built.
    """
    by_parts = with_incremental(DAILY, on_definition_change=DefinitionChange.REBUILT_CELLS)
    seen = observed(redefined(OLD, by_parts), (Pending(Cause.REDEFINED, Ranges((day(3),))),))
    part = PlanOptions(window=Interval(day(1).start, day(2).end))

    step, trace = step_of(made(seen, node=by_parts))
    assert step.action is Action.DERIVE
    assert trace.pending == (Pending(Cause.REDEFINED, Ranges((day(3),))),)
    [step] = made(seen, part, by_parts).steps
    assert (step.action, step.cells.span) == (Action.BUILD, part.window)
    step, renamed = step_of(made(replace(seen, redefined=RENAMED), node=by_parts))
    assert (step.action, renamed.pending) == (Action.EVOLVE, trace.pending)


def test_a_folding_reader_is_built_if_that_is_cheaper() -> None:
    """A derived table may change in every row: what folds it is built."""
    reads_daily = replace(SESSIONS, inputs=(replace(SESSIONS.inputs[0], name="daily"),))
    seen = built(reads_daily, inputs=changed(reads_daily, "daily", "# # # # # # #").inputs)
    [_, reader] = planned(DAILY, reads_daily, daily=observed(), sessions=seen).steps

    assert reader.action is Action.BUILD


@pytest.mark.parametrize(
    ("columns", "where", "nothing"),
    [
        ((("a", "`a`"), ("b", "`b`")), (), True),
        ((("a", "`a`"), ("b", "`b`")), ("`a` > 1",), False),
        ((("a", "`a`"), ("b", "`b`"), ("c", "1")), (), False),
        ((("b", "`b`"), ("a", "`a`")), (), False),
        ((("a", "`a`"),), (), False),
        ((("a", "`a`"), ("c", "`b`")), (), False),
        ((("a", "`a`"), ("b", "`b` + 1")), (), False),
    ],
)
def test_rows_stay_only_with_the_same_columns(
    columns: tuple[tuple[str, str], ...], where: tuple[str, ...], nothing: bool
) -> None:
    """A table is left as it is only if no row, no column and no order of columns changes."""
    found = Derivation(columns, where, stored=("a", "b"))

    assert found.changes_nothing is nothing


RENAMED = replace(
    redefined(how=How.EVOLVE),
    category=Category.METADATA,
    columns_kept=frozenset({"day"}),
    derivation=Derivation((("day", "`day`"), ("visits", "`n`")), stored=("day", "n")),
)


def test_renamed_columns_are_a_step_that_leaves_all_else() -> None:
    """The trace keeps its input versions and what is pending; no reader is stale by it."""
    left = Pending(Cause.LATE, Ranges((day(3),)))
    daily = observed(RENAMED, pending=(left,))
    step, trace = step_of(planned(DAILY, MONTHLY, daily=daily, monthly=built(MONTHLY)))

    assert (step.action, step.derivation) == (Action.EVOLVE, RENAMED.derivation)
    assert step.cells == Ranges()
    assert step.inputs == {"sessions": (1, 1), "users": (1, 1)}
    assert (trace.fingerprint, trace.pending) == (DAILY.fingerprint, (left,))
    assert trace.inputs == {"sessions": 1, "users": 1}
    assert (step.rows_to_read, step.expected, reads_nothing(step)) == (0, False, False)


@pytest.mark.parametrize("how", [How.EVOLVE, How.DERIVE, How.REBUCKET])
def test_a_source_that_lost_its_files_is_refused_first(how: How) -> None:
    """Although only the step after it takes their rows out: nothing is written by then."""
    old = replace(EVENTS, fingerprint="old")
    change = Redefinition("events", Category.METADATA, (), how, old, EVENTS, derivation=DERIVATION)
    taken = IngestedFile(1, "1.csv", 100, "v1", 0, rows=10)
    files = FileDiff("raw.clicks", (), (taken,), ingested=(taken,), lost=(taken,))
    found = planned(EVENTS, events=replace(built(old), files=files, redefined=change))

    assert [step.action.name for step in found.steps] == [how.name]
    with pytest.raises(InfoldError, match="source-shrank") as refused:
        refuse_removals(project(EVENTS), found, allowed=False)
    assert refused.value.exit_code == ExitCode.REFUSED
    refuse_removals(project(EVENTS), found, allowed=True)


# -- a changed granularity alone: other cells, and no row is written


OCTOBER = Granularity.MONTH.cell(day(0).start)


def by(node: Node, granularity: Granularity) -> Node:
    """The same model with another granularity, and so another fingerprint."""
    series = node.model.timeseries or Timeseries("session_start", "session_start")
    return replace(
        node,
        model=replace(node.model, timeseries=replace(series, granularity=granularity)),
        fingerprint=f"{node.fingerprint} by {granularity}",
    )


def in_other_cells(before: Node, after: Node, seen: ModelObservation) -> ModelObservation:
    """A model that another definition built, with the same rows."""
    names = frozenset({"day", "n"})
    change = Redefinition(
        *(after.name, Category.METADATA, (), How.REBUCKET, before, after, names),
        derivation=DERIVATION,
    )
    trace = replace(seen.trace or built(before).trace, fingerprint=before.fingerprint)  # type: ignore[type-var]
    return replace(seen, trace=trace, redefined=change, rows=70)


MONTHS = by(DAILY, Granularity.MONTH)
SEEN = in_other_cells(
    DAILY, MONTHS, replace(changed(DAILY, "sessions", "# # + # # # #"), cells=states("# # # #"))
)


def made_by_months(
    node: Node = MONTHS,
    seen: ModelObservation = SEEN,
    asked: PlanOptions | None = None,
    **others: ModelObservation,
) -> Plan:
    """The plan for a table, and its readers."""
    readers = [reader for reader in (MONTHLY,) if reader.name in others]
    return planned(node, *readers, asked=asked, **{node.name: seen}, **others)


def test_longer_cells_cost_nothing() -> None:
    """The step reads no row, and keeps the versions of the inputs; what arrived comes after it."""
    found = made_by_months()
    step, trace = step_of(found)

    assert step.action is Action.REBUCKET
    assert [(reason.detail, reason.rows) for reason in step.reasons] == [(ADDED_UP, 0)]
    assert trace.fingerprint == MONTHS.fingerprint
    assert trace.inputs == {"sessions": 1, "users": 1}
    assert not step.expected
    assert "once the rows are in their new cells" in found.notes[0]
    [step] = made_by_months(asked=PlanOptions(window=day(1))).steps
    assert step.action is Action.REBUCKET, "it is about all cells"


def test_shorter_cells_are_counted() -> None:
    """The stored rows are read once; a reader that folds a late row is not built for it."""
    reader = replace(SESSIONS, inputs=(replace(SESSIONS.inputs[0], name="daily"),))
    diff = InputDiff("daily", 1, 2, changes("+"), states("# # # #"))
    seen = in_other_cells(MONTHS, DAILY, replace(SEEN, cells=(CellState(OCTOBER, 70, 1),)))
    late = built(reader, inputs=(diff,))
    first, then = planned(DAILY, reader, daily=seen, sessions=late).steps

    assert (first.action, then.action) == (Action.REBUCKET, Action.FOLD)
    assert [(reason.detail, reason.rows) for reason in first.reasons] == [(COUNTED, 70)]


def test_a_pending_day_makes_its_month_pending() -> None:
    """And a pending month all its days."""
    left = with_trace(SEEN, pending=(Pending(Cause.LATE, Ranges((day(3),))),))
    _, trace = step_of(made_by_months(seen=left))
    assert trace.pending == (Pending(Cause.LATE, Ranges((OCTOBER,))),)

    _, trace = step_of(
        made_by_months(DAILY, in_other_cells(MONTHS, DAILY, replace(SEEN, trace=trace)))
    )
    assert trace.pending == (Pending(Cause.LATE, Ranges((OCTOBER,))),)


def test_readers_have_nothing_to_do() -> None:
    """The rows are the same, also for those who read all columns."""
    found = made_by_months(monthly=built(MONTHLY))

    assert [step.model for step in found.steps] == ["daily"]
    late = replace(built(MONTHLY), inputs=(InputDiff("daily", 1, 2, changes("# + #")),))
    first, reader = made_by_months(monthly=late).steps
    assert (first.action, reader.expected) == (Action.REBUCKET, True)
    assert "because" not in reader.reasons[0].detail


def test_events_and_sessions() -> None:
    """Longer cells of any kind add up; copies of events are not counted by shorter ones."""
    for node, granularity, action in (
        (EVENTS, Granularity.MONTH, Action.REBUCKET),
        (SESSIONS, Granularity.MONTH, Action.REBUCKET),
        (EVENTS, Granularity.HOUR, Action.BUILD),
    ):
        files = FileDiff("raw.clicks") if node is EVENTS else None
        after, seen = by(node, granularity), built(node, files=files, cells=states("# # #"))
        [step] = made_by_months(after, in_other_cells(node, after, seen)).steps
        assert step.action is action
        assert action is Action.BUILD or step.files is None


@pytest.mark.parametrize(
    ("as_of", "partial", "action"),
    [
        ("2019-10-30", False, Action.BUILD),
        ("2019-10-30", True, Action.REBUCKET),
        ("2019-11-01", False, Action.REBUCKET),
    ],
)
def test_a_cell_that_is_not_over(as_of: str, partial: bool, action: Action) -> None:
    """A table that has complete cells only would have a part of this month otherwise."""
    node = with_incremental(MONTHS, cron="0 0 * * *", allow_partials=partial)
    seen = in_other_cells(DAILY, node, SEEN)
    found = planned(node, now=parse_instant_text(as_of), daily=seen)

    assert [step.action for step in found.steps] == [action]


# -- changed events follow from stored rows where the ledger shows that no copy decided anything


OLD_EVENTS = replace(EVENTS, fingerprint="old")
SAME = (("id", "`id`"), ("ts", "`ts`"))
DROPPED = Derivation(SAME, stored=("id", "ts", "v"))
NARROWED = Derivation(SAME, where=("v > 1",), stored=("id", "ts", "v"))
ADDED = Derivation((*SAME, ("url", "")), stored=("id", "ts"), from_files=("url",))
OTHER = replace(DROPPED, other_source_columns=True)


def file(number: int, rows: int = 10, **counts: int) -> IngestedFile:
    """An ingested file."""
    return IngestedFile(number, f"{number}.csv", 100, f"v{number}", 0, rows=rows, **counts)


def seen(
    derivation: Derivation,
    *files: IngestedFile,
    cells: tuple[FileCell, ...] = (),
    gone: tuple[int, ...] = (),
) -> ModelObservation:
    """An events table of another definition, and its files; some of them are gone."""
    trace = built(OLD_EVENTS).trace
    change = Redefinition(
        "events", Category.BREAKING, (), How.DERIVE, OLD_EVENTS, EVENTS, derivation=derivation
    )
    there = tuple(
        ListedFile(one.path, one.size, 0, one.fingerprint) for one in files if one.id not in gone
    )
    lost = tuple(one for one in files if one.id in gone)
    cells = cells or tuple(FileCell(one.id, day(one.id), one.rows, one.dropped) for one in files)
    diff = FileDiff("raw.clicks", there, lost, ingested=files, cells=cells, lost=lost)
    return replace(built(OLD_EVENTS), trace=trace, files=diff, redefined=change)


def made_of_events(model: ModelObservation, node: Node = EVENTS) -> Plan:
    """The plan for the events."""
    return planned(node, events=model)


def detail(model: ModelObservation, node: Node = EVENTS) -> str:
    """What the plan says of the step; empty where all files are ingested again."""
    [step] = made_of_events(model, node).steps
    return step.reasons[0].detail if step.action is Action.DERIVE else ""


def test_the_step_of_events() -> None:
    """It reads nothing, has the new fingerprint, and leaves what the ledger knows of files."""
    step, trace = step_of(made_of_events(seen(DROPPED, file(1), file(2))))

    assert (step.action, step.derivation) == (Action.DERIVE, DROPPED)
    assert [(one.cause, one.detail, one.rows) for one in step.reasons] == [
        (Cause.DEFINITION, FOLLOWS, 0)
    ]
    assert (trace.fingerprint, trace.pending) == (EVENTS.fingerprint, ())
    assert step.files is not None
    assert (step.files.new, step.files.reingest, step.files.new_columns_of) == ((), (), ())
    assert not step.expected
    model = seen(DROPPED, file(1))
    assert model.files is not None
    assert not made_of_events(model).notes
    new = (*model.files.new, ListedFile("late.csv", 1, 0, "v"))
    [note] = made_of_events(replace(model, files=replace(model.files, new=new))).notes
    assert "files that came, changed or went since are ingested" in note


@pytest.mark.parametrize(
    ("derivation", "counts", "derived"),
    [
        (DROPPED, {"set_aside": 1, "waiting": 1}, True),
        (ADDED, {"set_aside": 1, "waiting": 1}, True),
        (NARROWED, {}, True),
        (NARROWED, {"set_aside": 1}, False),
        (NARROWED, {"waiting": 1}, False),
        (OTHER, {}, True),
        (OTHER, {"waiting": 1}, True),
        (OTHER, {"set_aside": 1}, False),
    ],
)
def test_rows_beside_the_table(
    derivation: Derivation, counts: dict[str, int], derived: bool
) -> None:
    """A condition may leave out rows that are set aside or wait, and other columns other rows."""
    assert bool(detail(seen(derivation, file(1, **counts), file(2)))) is derived


def test_copies() -> None:
    """Cells with copies are read from the files that have rows there, unless most files do."""
    files = file(1, dropped=1), file(2), file(3), file(4), file(5)
    cells = (
        FileCell(1, day(1), 10, 1),
        FileCell(2, day(1), 5),
        FileCell(2, day(2), 5),
        *(FileCell(number, day(number), 10) for number in (3, 4, 5)),
    )
    [step] = made_of_events(seen(DROPPED, *files, cells=cells)).steps

    assert step.derivation == replace(DROPPED, contested=Ranges((day(1),)))
    assert step.files is not None
    assert [one.id for one in step.files.reingest] == [1, 2]
    assert step.rows_to_read == 20
    assert step.reasons[0].detail == "2 files read again where copies of events were left out"
    assert not detail(seen(DROPPED, *files[:3], cells=cells[:4]))
    everywhere = replace(EVENTS, model=replace(EVENTS.model, deduplicate=Deduplicate.EVERYWHERE))
    assert not detail(seen(DROPPED, *files, cells=cells), everywhere)
    assert detail(seen(DROPPED, file(1), file(2)), everywhere) == FOLLOWS


def test_a_column_of_the_files() -> None:
    """Files with stored rows are read for it; all of them if the source did not have it."""
    files = file(1), file(2), file(3, rows=0), file(4, rows=2, dropped=2)
    cells = FileCell(1, day(1), 10), FileCell(2, day(2), 10), FileCell(4, day(4), 2, 2)

    assert detail(seen(ADDED, *files[:3])) == "column url: 2 files read again for it"
    two = replace(ADDED, columns=(*ADDED.columns, ("n", "")), from_files=("url", "n"))
    assert detail(seen(two, *files[:3])) == "columns url, n: 2 files read again for them"
    other = replace(ADDED, other_source_columns=True)
    assert detail(seen(other, *files[:3])) == "column url: 3 files read again for it"
    assert detail(seen(ADDED, *files, cells=cells)) == (
        "column url: 2 files read again for it; "
        "1 file read again where copies of events were left out"
    )


def test_files_that_are_not_what_they_were() -> None:
    """What has to be read and is gone or changed is built again; what is not read may be gone."""
    files = file(1), file(2)
    other = replace(file(2), fingerprint="other")

    assert detail(seen(DROPPED, *files, gone=(2,))) == FOLLOWS
    assert not detail(seen(ADDED, *files, gone=(2,)))
    changed = seen(ADDED, *files)
    assert changed.files is not None
    listed = (changed.files.new[0], ListedFile("2.csv", 9, 0, other.fingerprint))
    assert not detail(replace(changed, files=replace(changed.files, new=listed)))


@pytest.mark.parametrize(
    ("derivation", "action"), [(DROPPED, Action.DERIVE), (ADDED, Action.BUILD)]
)
def test_lookups(derivation: Derivation, action: Action) -> None:
    """Rows follow from those of a join; files are not read again, as the lookup may be another.
    Restated events, and those with other types, are ingested again.
    """
    joined = replace(EVENTS, inputs=(*EVENTS.inputs, Input("users")))
    model = seen(derivation, file(1))
    model = replace(with_trace(model, inputs={"users": 1}), inputs=(InputDiff("users", 1, 2),))
    observed = Observations(0, {"events": model, "users": built(USERS)})
    step, trace = step_of(plan(project(USERS, joined), observed))

    assert step.action is action
    if action is Action.DERIVE:
        assert step.inputs == {"users": (1, 1)}
        assert trace.inputs == {"users": 1}
    restated = PlanOptions(restated={"events": Ranges.ever()})
    for asked in (PlanOptions(not_derived=frozenset({"events"})), restated):
        [step] = planned(EVENTS, asked=asked, events=seen(DROPPED, file(1))).steps
        assert step.action is Action.BUILD


@pytest.mark.parametrize(
    ("files", "models"),
    [
        ((file(1), file(2)), ["events"]),
        ((file(1, dropped=1), file(2), file(3)), ["events", "sessions"]),
        ((file(1, rows=90, dropped=1), file(2)), ["events", "sessions"]),
    ],
    ids=["derived", "copies", "built"],
)
def test_readers_of_columns_that_stay(files: tuple[IngestedFile, ...], models: list[str]) -> None:
    """They are left alone, unless another copy of an event may have other values there."""
    sessions = replace(built(SESSIONS), inputs_kept=frozenset({"events"}))
    observed = Observations(0, {"events": seen(DROPPED, *files), "sessions": sessions})

    found = plan(project(EVENTS, SESSIONS), observed)
    assert [step.model for step in found.steps] == models


# -- stored sessions of a changed definition


OLD_SESSIONS = replace(SESSIONS, fingerprint="old")
REFOLD = Redefinition(
    *("sessions", Category.BREAKING, (), How.REFOLD, OLD_SESSIONS, SESSIONS),
    derivation=Derivation((("session_id", "`session_id`"),), sessions=OLD_SESSIONS.query),
)
BORDER = day(5).start
FORWARD = replace(REFOLD, category=Category.FORWARD_ONLY, effective_from=BORDER, derivation=None)
BEFORE = EarlierCells(Ranges((Interval(MIN, BORDER),)), "first")
DERIVED = replace(REFOLD, how=How.DERIVE)
MIXED = (Pending(Cause.DEFINITION, Ranges.ever()),)


def observed_sessions(
    change: Redefinition | None = REFOLD,
    *earlier: EarlierCells,
    pending: tuple[Pending, ...] = (),
    fingerprint: str = "old",
) -> ModelObservation:
    """Sessions that an earlier definition made from version 1; a version 2 of the events came."""
    seen = changed(SESSIONS, "events", "# # + # # # #")
    trace = Trace("sessions", fingerprint, {"events": 1}, pending, 3, "first", earlier)
    return replace(seen, trace=trace, rows=70, redefined=change, newest_entry=4)


def of_input(seen: ModelObservation, *, added: int = 1, dropped: bool = False) -> ModelObservation:
    """The same, with more events that came, or events that were dropped."""
    [diff] = seen.inputs
    many = tuple(replace(one, added=added) for one in diff.changes)
    return replace(seen, inputs=(replace(diff, changes=many, dropped_since=dropped),))


def made_of_sessions(seen: ModelObservation, asked: PlanOptions | None = None) -> Plan:
    """The plan for sessions."""
    both = {"events": built(EVENTS), "sessions": seen}
    return planned(EVENTS, SESSIONS, asked=asked, **both)


def test_the_step_of_sessions() -> None:
    """With the old versions and entries; one by states is alike, and reads no event."""
    step, trace = step_of(made_of_sessions(observed_sessions()))

    assert (step.action, step.stored_by) == (Action.REFOLD, OLD_SESSIONS.query)
    assert [(one.cause, one.detail) for one in step.reasons] == [(Cause.DEFINITION, REFOLDS)]
    assert step.inputs == {"events": (1, 1)}
    assert (trace.fingerprint, trace.inputs) == (SESSIONS.fingerprint, {"events": 1})
    assert trace.applied_entry == 3
    assert not step.expected
    assert not reads_nothing(step)
    [note] = made_of_sessions(observed_sessions()).notes
    assert "in a step after that" in note
    [by_states] = made_of_sessions(observed_sessions(DERIVED)).steps
    assert [one.detail for one in by_states.reasons] == [STATES]
    assert by_states == replace(step, action=Action.DERIVE, reasons=by_states.reasons)


INEXACT = PlanOptions(not_derived=frozenset({"sessions"}))
RESTATED = PlanOptions(restated={"sessions": Ranges.ever()})


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (observed_sessions(replace(REFOLD, how=How.REBUILD, derivation=None)), None),
        (observed_sessions(None), None),
        (observed_sessions(DERIVED), INEXACT),
        (observed_sessions(replace(DERIVED, derivation=None)), None),
        (observed_sessions(pending=MIXED), None),
        (of_input(observed_sessions(), added=500), None),
        (observed_sessions(), INEXACT),
        (observed_sessions(), RESTATED),
        (of_input(observed_sessions(), dropped=True), None),
    ],
    ids=[
        *("no proof", "unknown", "types", "not told", "mixed", "new", "inexact", "restated"),
        "dropped",
    ],
)
def test_what_is_built(seen: ModelObservation, asked: PlanOptions | None) -> None:
    """Without a proof, or where most events are new anyway, all sessions are built."""
    [step] = made_of_sessions(seen, asked).steps

    assert step.action is Action.BUILD


@pytest.mark.parametrize("how", [How.REBUILD, How.DERIVE])
@pytest.mark.parametrize(
    "visits", [observed_sessions(), observed_sessions(DERIVED)], ids=["ends", "states"]
)
def test_events_of_another_definition(how: How, visits: ModelObservation) -> None:
    """If the events are redefined too, the sessions are built."""
    change = Redefinition("events", Category.BREAKING, (), how, EVENTS, EVENTS)
    seen = {"sessions": visits, "events": replace(built(EVENTS), redefined=change)}
    steps = {step.model: step for step in planned(EVENTS, SESSIONS, **seen).steps}

    assert steps["sessions"].action is Action.BUILD


def test_the_step_folds_what_arrived_and_changes_the_definition() -> None:
    """With the newest versions and entries, and a reason for each; cells before stay."""
    step, trace = step_of(made_of_sessions(observed_sessions(FORWARD)))

    assert step.action is Action.FOLD
    assert step.inputs == {"events": (1, 2)}
    assert [reason.cause for reason in step.reasons] == [
        Cause.DEFINITION,
        Cause.LATE,
        Cause.QUARANTINE,
    ]
    assert step.reasons[0].detail == "forward-only: cells before 2019-10-26 keep their rows"
    assert step.reasons[0].cells == Ranges((Interval(BORDER, MAX),))
    assert (trace.earlier, trace.applied_entry) == ((BEFORE,), 4)


@pytest.mark.parametrize(
    ("seen", "asked", "expected"),
    [
        (of_input(observed_sessions(FORWARD), added=500), None, (Action.BUILD, (BEFORE,))),
        (observed_sessions(FORWARD), RESTATED, (Action.BUILD, (BEFORE,))),
        (observed_sessions(None, BEFORE, fingerprint=SESSIONS.fingerprint), None,
         (Action.FOLD, (BEFORE,))),
        (observed_sessions(replace(FORWARD, effective_from=None), BEFORE), None,
         (Action.BUILD, ())),
    ],
    ids=["new", "restated", "a later step", "another change"],
)  # fmt: skip
def test_all_parts_are_built_by_their_own_definitions(
    seen: ModelObservation,
    asked: PlanOptions | None,
    expected: tuple[Action, tuple[EarlierCells, ...]],
) -> None:
    """Where most events are new, or sessions are restated, they are built; the border stays, also
    after a later fold. Another change, not forward-only, ends it.
    """
    step, trace = step_of(made_of_sessions(seen, asked))

    assert (step.action, trace.earlier) == expected


def test_the_definitions_that_a_step_goes_by() -> None:
    """Those in force after the change; without one those of the trace, if it is of the newest."""
    trace = observed_sessions(FORWARD).trace
    assert trace is not None
    found = by_definitions_in_force(SESSIONS, trace, FORWARD)
    assert found is not None
    assert found.earlier == (BEFORE,)
    assert by_definitions_in_force(SESSIONS, trace, None) is None

    kept = replace(trace, fingerprint=SESSIONS.fingerprint, earlier=(BEFORE,))
    assert by_definitions_in_force(SESSIONS, kept, None) == kept


def test_a_query_during_a_stretch() -> None:
    """A stretch is a condition on the time; open ends are none, and it counts before the start."""
    query = SessionsQuery("events", "ts", "who", 1, (), "n = 1", (), ())
    late = query.during(Interval(BORDER, MAX))
    assert late.where == "(n = 1\n) AND `ts` >= TIMESTAMP '2019-10-26 00:00:00+00:00'"
    assert query.during(Interval(MIN, MAX)).where == "(n = 1\n)"
    early = replace(query, where=None).from_start(day(1).start).during(Interval(MIN, BORDER))
    assert early.where == (
        "(`ts` >= TIMESTAMP '2019-10-22 00:00:00+00:00'\n)"
        " AND `ts` < TIMESTAMP '2019-10-26 00:00:00+00:00'"
    )
    assert early.before_start == (
        "(`ts` < TIMESTAMP '2019-10-22 00:00:00+00:00'\n)"
        " AND `ts` < TIMESTAMP '2019-10-26 00:00:00+00:00'"
    )
