"""Changed definitions that follow from stored rows, or only divide them into other cells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import (
    DAILY,
    EVENTS,
    MONTHLY,
    SESSIONS,
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
from infold.core.files import IngestedFile
from infold.core.interval import DAY, MAX, Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import DefinitionChange, Timeseries
from infold.core.plan import (
    HELD_BACK,
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Plan,
    PlanOptions,
)
from infold.core.project import Node
from infold.core.trace import Cause, CellState, Pending, Trace
from infold.messages.errors import ExitCode, InfoldError
from infold.planning.derivations import ADDED_UP, COUNTED, FOLLOWS
from infold.planning.model_states import reads_nothing
from infold.planning.removals import refuse_removals

OLD = replace(DAILY, fingerprint="old")
DERIVATION = Derivation((("day", "`day`"),), stored=("day", "n"))


def redefined(before: Node = OLD, after: Node = DAILY, how: How = How.DERIVE) -> Redefinition:
    """A change of the daily table."""
    derived = DERIVATION if how is How.DERIVE else None
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
    """A note says that stale cells are built next, if there may be any; readers are built where
    the table may differ.
    """
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
    """Later: pending cells before it are forgotten. Earlier: the cells before the old one are
    missing, and so is the cell that the old start cut.
    """
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


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (observed(redefined(how=How.REBUILD)), PlanOptions()),
        (observed(), PlanOptions(restated={"daily": Ranges.ever()})),
        (observed(), PlanOptions(not_derived=frozenset({"daily"}))),
        (observed(fingerprint="another"), PlanOptions()),
        (observed(pending=(Pending(Cause.DEFINITION, Ranges((day(1),))),)), PlanOptions()),
        (replace(observed(), redefined=None), PlanOptions()),
        (with_trace(observed(), inputs={"sessions": 1}), PlanOptions()),
    ],
    ids=["no proof", "restated", "inexact", "another table", "two", "unknown", "other inputs"],
)  # fmt: skip
def test_built_again(seen: ModelObservation, asked: PlanOptions) -> None:
    """In doubt the table is built again."""
    [step] = made(seen, asked).steps

    assert step.action is Action.BUILD
    assert step.rows_to_read


def test_a_window_holds_it_back() -> None:
    """A part of the table cannot be derived either."""
    found = made(observed(), PlanOptions(window=Interval(day(1).start, day(2).end)))

    assert not found.steps
    assert [left.why for left in found.skipped] == [HELD_BACK]


def test_a_table_that_is_replaced_by_parts() -> None:
    """It is derived as a whole too, and a window has a part of it built."""
    by_parts = with_incremental(DAILY, on_definition_change=DefinitionChange.REBUILT_CELLS)
    seen = observed(redefined(OLD, by_parts), (Pending(Cause.REDEFINED, Ranges((day(3),))),))
    part = PlanOptions(window=Interval(day(1).start, day(2).end))

    step, trace = step_of(made(seen, node=by_parts))
    assert step.action is Action.DERIVE
    assert trace.pending == (Pending(Cause.REDEFINED, Ranges((day(3),))),)
    [step] = made(seen, part, by_parts).steps
    assert (step.action, step.cells.span) == (Action.BUILD, part.window)


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
    renamed=(("n", "visits"),),
)


def test_renamed_columns_are_a_step_that_leaves_all_else() -> None:
    """The trace keeps its input versions and what is pending; no reader is stale by it."""
    left = Pending(Cause.LATE, Ranges((day(3),)))
    daily = observed(RENAMED, pending=(left,))
    step, trace = step_of(planned(DAILY, MONTHLY, daily=daily, monthly=built(MONTHLY)))

    assert (step.action, step.renamed, step.cells) == (Action.EVOLVE, RENAMED.renamed, Ranges())
    assert step.inputs == {"sessions": (1, 1), "users": (1, 1)}
    assert (trace.fingerprint, trace.pending) == (DAILY.fingerprint, (left,))
    assert trace.inputs == {"sessions": 1, "users": 1}
    assert (step.rows_to_read, step.expected, reads_nothing(step)) == (0, False, False)


@pytest.mark.parametrize(
    "seen",
    [
        observed(replace(RENAMED, how=How.REBUILD)),
        observed(replace(RENAMED, before=replace(OLD, fingerprint="other"))),
        observed(RENAMED, pending=(Pending(Cause.DEFINITION, Ranges((day(3),))),)),
        observed(RENAMED, pending=(Pending(Cause.REDEFINED, Ranges((day(3),))),)),
    ],
    ids=["rebuilt", "another definition", "of two definitions", "in parts"],
)
def test_a_table_that_is_not_that_of_the_earlier_definition_is_built(
    seen: ModelObservation,
) -> None:
    """Its columns are then not known to be the ones that got other names."""
    assert [step.action for step in made(seen).steps] != [Action.EVOLVE]
    assert [step.action for step in made(observed(RENAMED)).steps] == [Action.EVOLVE]
    again = PlanOptions(restated={"daily": Ranges((day(1),))})
    assert [step.action for step in made(observed(RENAMED), again).steps] != [Action.EVOLVE]


@pytest.mark.parametrize("how", [How.EVOLVE, How.DERIVE])
def test_a_source_that_lost_its_files_is_refused_first(how: How) -> None:
    """Although only the step after it takes their rows out: nothing is written by then."""
    old = replace(EVENTS, fingerprint="old")
    change = Redefinition("events", Category.METADATA, (), how, old, EVENTS, renamed=(("n", "v"),))
    change = replace(change, derivation=DERIVATION if how is How.DERIVE else None)
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
    change = Redefinition(after.name, Category.METADATA, (), How.REBUCKET, before, after, names)
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


UNKNOWN_ROWS = (Pending(Cause.DEFINITION, Ranges((day(1),))),)


@pytest.mark.parametrize(
    "seen",
    [
        replace(SEEN, redefined=None),
        replace(SEEN, redefined=replace(SEEN.redefined, how=How.REBUILD)),  # type: ignore[type-var]
        with_trace(SEEN, fingerprint="another"),
        with_trace(SEEN, inputs={"sessions": 1}),
        with_trace(SEEN, pending=UNKNOWN_ROWS),
    ],
    ids=["unknown", "no proof", "another table", "other inputs", "two definitions"],
)
def test_counted_again(seen: ModelObservation) -> None:
    """In doubt the table is built again, and if somebody asked for it."""
    [step] = made_by_months(seen=seen).steps
    assert step.action is Action.BUILD
    [step] = made_by_months(asked=PlanOptions(restated={"daily": Ranges.ever()})).steps
    assert step.action is Action.BUILD


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
