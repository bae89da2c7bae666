"""Stored sessions of a changed definition: changed in one step, by states or read again, or built;
forward-only they are folded, and built from a border on.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import EVENTS, SESSIONS, built, changed, day, planned, step_of

from infold.core.definition import Category, Derivation, How, Redefinition
from infold.core.interval import MAX, MIN, Interval, Ranges
from infold.core.plan import Action, ModelObservation, Plan, PlanOptions
from infold.core.queries import SessionsQuery
from infold.core.trace import Cause, EarlierCells, Pending, Trace
from infold.planning.derivations import REFOLDS, STATES
from infold.planning.model_states import reads_nothing
from infold.planning.stretches import by_definitions_in_force

OLD = replace(SESSIONS, fingerprint="old")
REFOLD = Redefinition("sessions", Category.BREAKING, (), How.REFOLD, OLD, SESSIONS)
BORDER = day(5).start
FORWARD = replace(REFOLD, category=Category.FORWARD_ONLY, effective_from=BORDER)
BEFORE = EarlierCells(Ranges((Interval(MIN, BORDER),)), "first")
DERIVED = replace(
    REFOLD,
    how=How.DERIVE,
    derivation=Derivation((("session_id", "`session_id`"),), sessions=OLD.query),
)
MIXED = (Pending(Cause.DEFINITION, Ranges.ever()),)


def observed(
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


def made(seen: ModelObservation, asked: PlanOptions | None = None) -> Plan:
    """The plan for sessions."""
    both = {"events": built(EVENTS), "sessions": seen}
    return planned(EVENTS, SESSIONS, asked=asked, **both)


def test_the_step() -> None:
    """It keeps the versions of the inputs, and the manual entries that are applied. One by states
    is like one that makes sessions again, and says that it reads no event.
    """
    step, trace = step_of(made(observed()))

    assert (step.action, step.stored_by) == (Action.REFOLD, OLD.query)
    assert [(one.cause, one.detail) for one in step.reasons] == [(Cause.DEFINITION, REFOLDS)]
    assert step.inputs == {"events": (1, 1)}
    assert (trace.fingerprint, trace.inputs) == (SESSIONS.fingerprint, {"events": 1})
    assert trace.applied_entry == 3
    assert not step.expected
    assert not reads_nothing(step)
    [note] = made(observed()).notes
    assert "in a step after that" in note
    [by_states] = made(observed(DERIVED)).steps
    assert [one.detail for one in by_states.reasons] == [STATES]
    assert by_states == replace(
        step,
        action=Action.DERIVE,
        reasons=by_states.reasons,
        derivation=DERIVED.derivation,
        stored_by=None,
    )


INEXACT = PlanOptions(not_derived=frozenset({"sessions"}))
RESTATED = PlanOptions(restated={"sessions": Ranges.ever()})


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (observed(replace(REFOLD, how=How.REBUILD)), None),
        (observed(None), None),
        (observed(DERIVED), INEXACT),
        (observed(replace(DERIVED, derivation=None)), None),
        (observed(pending=MIXED), None),
        (of_input(observed(), added=500), None),
        (observed(), INEXACT),
        (observed(), RESTATED),
        (of_input(observed(), dropped=True), None),
    ],
    ids=[
        *("no proof", "unknown", "types", "not told", "mixed", "new", "inexact", "restated"),
        "dropped",
    ],
)
def test_what_is_built(seen: ModelObservation, asked: PlanOptions | None) -> None:
    """Without a proof, or where most events are new anyway, all sessions are built."""
    [step] = made(seen, asked).steps

    assert step.action is Action.BUILD


@pytest.mark.parametrize("how", [How.REBUILD, How.DERIVE])
@pytest.mark.parametrize("visits", [observed(), observed(DERIVED)], ids=["ends", "states"])
def test_events_of_another_definition(how: How, visits: ModelObservation) -> None:
    """If the events are redefined too, the sessions are built."""
    change = Redefinition("events", Category.BREAKING, (), how, EVENTS, EVENTS)
    seen = {"sessions": visits, "events": replace(built(EVENTS), redefined=change)}
    steps = {step.model: step for step in planned(EVENTS, SESSIONS, **seen).steps}

    assert steps["sessions"].action is Action.BUILD


def test_the_step_folds_what_arrived_and_changes_the_definition() -> None:
    """It reads the newest versions, applies new entries, and leaves the cells before to the old
    definition; the reasons name the change, what arrived, and the entries.
    """
    step, trace = step_of(made(observed(FORWARD)))

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
    ("seen", "asked"),
    [(of_input(observed(FORWARD), added=500), None), (observed(FORWARD), RESTATED)],
    ids=["new", "restated"],
)
def test_all_parts_are_built_by_their_own_definitions(
    seen: ModelObservation, asked: PlanOptions | None
) -> None:
    """Where most events are new, or sessions are restated, they are built; the border stays."""
    step, trace = step_of(made(seen, asked))

    assert (step.action, trace.earlier) == (Action.BUILD, (BEFORE,))


def test_later_steps_leave_earlier_cells_to_their_definitions() -> None:
    """A fold after the change keeps the border; another change, not forward-only, ends it."""
    step, trace = step_of(made(observed(None, BEFORE, fingerprint=SESSIONS.fingerprint)))
    assert (step.action, trace.earlier) == (Action.FOLD, (BEFORE,))

    step, trace = step_of(made(observed(replace(FORWARD, effective_from=None), BEFORE)))
    assert (step.action, trace.earlier) == (Action.BUILD, ())


def test_the_definitions_that_a_step_goes_by() -> None:
    """Those in force after the change; without one those of the trace, if it is of the newest."""
    trace = observed(FORWARD).trace
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
