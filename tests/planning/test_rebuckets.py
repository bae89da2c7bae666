"""A table whose granularity alone changed is divided into other cells; no row is written."""

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
    states,
    step_of,
    with_incremental,
    with_trace,
)

from infold.core.definition import Category, How, Redefinition
from infold.core.interval import Granularity, Ranges, parse_instant_text
from infold.core.model import Timeseries
from infold.core.plan import Action, FileDiff, InputDiff, ModelObservation, Plan, PlanOptions
from infold.core.project import Node
from infold.core.trace import Cause, CellState, Pending
from infold.planning.rebuckets import ADDED_UP, COUNTED

OCTOBER = Granularity.MONTH.cell(day(0).start)


def by(node: Node, granularity: Granularity) -> Node:
    """The same model with another granularity, and so another fingerprint."""
    series = node.model.timeseries or Timeseries("session_start", "session_start")
    return replace(
        node,
        model=replace(node.model, timeseries=replace(series, granularity=granularity)),
        fingerprint=f"{node.fingerprint} by {granularity}",
    )


def redefined(before: Node, after: Node, seen: ModelObservation) -> ModelObservation:
    """A model that another definition built, with the same rows."""
    names = frozenset({"day", "n"})
    change = Redefinition(after.name, Category.METADATA, (), How.REBUCKET, before, after, names)
    trace = replace(seen.trace or built(before).trace, fingerprint=before.fingerprint)  # type: ignore[type-var]
    return replace(seen, trace=trace, redefined=change, rows=70)


MONTHS = by(DAILY, Granularity.MONTH)
SEEN = redefined(
    DAILY, MONTHS, replace(changed(DAILY, "sessions", "# # + # # # #"), cells=states("# # # #"))
)


def made(
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
    found = made()
    step, trace = step_of(found)

    assert step.action is Action.REBUCKET
    assert [(reason.detail, reason.rows) for reason in step.reasons] == [(ADDED_UP, 0)]
    assert trace.fingerprint == MONTHS.fingerprint
    assert trace.inputs == {"sessions": 1, "users": 1}
    assert not step.expected
    assert "once the rows are in their new cells" in found.notes[0]
    [step] = made(asked=PlanOptions(window=day(1))).steps
    assert step.action is Action.REBUCKET, "it is about all cells"


def test_shorter_cells_are_counted() -> None:
    """The stored rows are read once; a reader that folds a late row is not built for it."""
    reader = replace(SESSIONS, inputs=(replace(SESSIONS.inputs[0], name="daily"),))
    diff = InputDiff("daily", 1, 2, changes("+"), states("# # # #"))
    seen = redefined(MONTHS, DAILY, replace(SEEN, cells=(CellState(OCTOBER, 70, 1),)))
    late = built(reader, inputs=(diff,))
    first, then = planned(DAILY, reader, daily=seen, sessions=late).steps

    assert (first.action, then.action) == (Action.REBUCKET, Action.FOLD)
    assert [(reason.detail, reason.rows) for reason in first.reasons] == [(COUNTED, 70)]


def test_a_pending_day_makes_its_month_pending() -> None:
    """And a pending month all its days."""
    left = with_trace(SEEN, pending=(Pending(Cause.LATE, Ranges((day(3),))),))
    _, trace = step_of(made(seen=left))
    assert trace.pending == (Pending(Cause.LATE, Ranges((OCTOBER,))),)

    _, trace = step_of(made(DAILY, redefined(MONTHS, DAILY, replace(SEEN, trace=trace))))
    assert trace.pending == (Pending(Cause.LATE, Ranges((OCTOBER,))),)


def test_readers_have_nothing_to_do() -> None:
    """The rows are the same, also for those who read all columns."""
    found = made(monthly=built(MONTHLY))

    assert [step.model for step in found.steps] == ["daily"]
    late = replace(built(MONTHLY), inputs=(InputDiff("daily", 1, 2, changes("# + #")),))
    first, reader = made(monthly=late).steps
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
        [step] = made(after, redefined(node, after, seen)).steps
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
def test_built_again(seen: ModelObservation) -> None:
    """In doubt the table is built again, and if somebody asked for it."""
    [step] = made(seen=seen).steps
    assert step.action is Action.BUILD
    [step] = made(asked=PlanOptions(restated={"daily": Ranges.ever()})).steps
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
    seen = redefined(DAILY, node, SEEN)
    found = planned(node, now=parse_instant_text(as_of), daily=seen)

    assert [step.action for step in found.steps] == [action]
