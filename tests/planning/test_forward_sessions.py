"""Sessions that change forward-only are folded, and built from a border on, in one step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import EVENTS, SESSIONS, built, changed, day, planned, step_of

from infold.core.definition import Category, How, Redefinition
from infold.core.interval import MAX, MIN, Interval, Ranges
from infold.core.plan import Action, ModelObservation, Plan, PlanOptions
from infold.core.queries import SessionsQuery
from infold.core.trace import Cause, EarlierCells, Trace
from infold.planning.stretches import by_definitions_in_force

OLD = replace(SESSIONS, fingerprint="old")
BORDER = day(5).start
CHANGE = Redefinition(
    "sessions", Category.FORWARD_ONLY, (), How.REFOLD, OLD, SESSIONS, effective_from=BORDER
)
BEFORE = EarlierCells(Ranges((Interval(MIN, BORDER),)), "first")


def observed(*earlier: EarlierCells, change: Redefinition | None = CHANGE) -> ModelObservation:
    """Sessions of an earlier definition, which stays before the border."""
    seen = changed(SESSIONS, "events", "# # + # # # #")
    assert seen.trace is not None
    fingerprint = SESSIONS.fingerprint if change is None else "old"
    trace = Trace("sessions", fingerprint, dict(seen.trace.inputs), (), 3, "first", earlier)
    return replace(seen, trace=trace, rows=70, redefined=change, newest_entry=4)


def made(seen: ModelObservation, asked: PlanOptions | None = None) -> Plan:
    """The plan for sessions."""
    both = {"events": built(EVENTS), "sessions": seen}
    return planned(EVENTS, SESSIONS, asked=asked, **both)


def test_the_step_folds_what_arrived_and_changes_the_definition() -> None:
    """It reads the newest versions, applies new entries, and leaves the cells before to the old
    definition; the reasons name the change, what arrived, and the entries.
    """
    step, trace = step_of(made(observed()))

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


@pytest.mark.parametrize("asked", [{}, {"sessions": Ranges.ever()}], ids=["new", "restated"])
def test_all_parts_are_built_by_their_own_definitions(asked: dict[str, Ranges]) -> None:
    """Where most events are new, or sessions are restated, they are built; the border stays."""
    seen = observed()
    diff = seen.inputs[0]
    if not asked:
        many = tuple(replace(one, added=500) for one in diff.changes)
        seen = replace(seen, inputs=(replace(diff, changes=many),))

    step, trace = step_of(made(seen, PlanOptions(restated=asked)))

    assert step.action is Action.BUILD
    assert trace.earlier == (BEFORE,)


def test_later_steps_leave_earlier_cells_to_their_definitions() -> None:
    """A fold after the change keeps the border; another change, not forward-only, ends it."""
    step, trace = step_of(made(observed(BEFORE, change=None)))
    assert (step.action, trace.earlier) == (Action.FOLD, (BEFORE,))

    step, trace = step_of(made(observed(BEFORE, change=replace(CHANGE, effective_from=None))))
    assert (step.action, trace.earlier) == (Action.BUILD, ())


def test_the_definitions_that_a_step_goes_by() -> None:
    """Those in force after the change; without one those of the trace, if it is of the newest."""
    trace = observed().trace
    assert trace is not None
    found = by_definitions_in_force(SESSIONS, trace, CHANGE)
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
