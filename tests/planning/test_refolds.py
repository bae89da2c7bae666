"""Stored sessions of a changed definition are changed in one step, by states or read again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import EVENTS, SESSIONS, built, changed, planned, step_of

from infold.core.definition import Category, Derivation, How, Redefinition
from infold.core.interval import Ranges
from infold.core.plan import Action, ModelObservation, Plan, PlanOptions
from infold.core.trace import Cause, Pending, Trace
from infold.planning.model_states import reads_nothing
from infold.planning.refolds import REFOLDS, STATES

OLD = replace(SESSIONS, fingerprint="old")


def redefined(how: How = How.REFOLD) -> Redefinition:
    """A change of the sessions."""
    return Redefinition("sessions", Category.BREAKING, (), how, OLD, SESSIONS)


def observed(cells: str = "# # + # # # #", pending: tuple[Pending, ...] = ()) -> ModelObservation:
    """Sessions that an earlier definition made from version 1; a version 2 of the events came."""
    seen = changed(SESSIONS, "events", cells)
    assert seen.trace is not None
    trace = Trace("sessions", "old", dict(seen.trace.inputs), pending, applied_entry=3)
    return replace(seen, trace=trace, rows=70, redefined=redefined(), newest_entry=4)


def mostly_new() -> ModelObservation:
    """The same, with more events that came than there were."""
    diff = observed().inputs[0]
    many = tuple(replace(one, added=500) for one in diff.changes)
    return replace(observed(), inputs=(replace(diff, changes=many),))


def made(seen: ModelObservation, asked: PlanOptions | None = None) -> Plan:
    """The plan for sessions."""
    both = {"events": built(EVENTS), "sessions": seen}
    return planned(EVENTS, SESSIONS, asked=asked, **both)


def test_the_step() -> None:
    """It keeps the versions of the inputs, and the manual entries that are applied."""
    step, trace = step_of(made(observed()))

    assert (step.action, step.stored_by) == (Action.REFOLD, OLD.query)
    assert [(reason.cause, reason.detail) for reason in step.reasons] == [
        (Cause.DEFINITION, REFOLDS)
    ]
    assert step.inputs == {"events": (1, 1)}
    assert (trace.fingerprint, trace.inputs) == (SESSIONS.fingerprint, {"events": 1})
    assert trace.applied_entry == 3
    assert not step.expected
    assert not reads_nothing(step)
    [note] = made(observed()).notes
    assert "in a step after that" in note


def derived() -> ModelObservation:
    """The same, with a change that follows from stored states."""
    found = Derivation((("session_id", "`session_id`"),), sessions=OLD.query)
    return replace(observed(), redefined=replace(redefined(How.DERIVE), derivation=found))


def test_the_step_by_states() -> None:
    """It is like one that makes sessions again, and says that it reads no event."""
    [step] = made(derived()).steps
    [other] = made(observed()).steps

    assert [(reason.cause, reason.detail) for reason in step.reasons] == [
        (Cause.DEFINITION, STATES)
    ]
    assert step.derivation is not None
    assert step == replace(
        other,
        action=Action.DERIVE,
        reasons=step.reasons,
        derivation=step.derivation,
        stored_by=None,
    )


LEFT = (Pending(Cause.DEFINITION, Ranges.ever()),)


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (replace(observed(), redefined=redefined(How.REBUILD)), PlanOptions()),
        (replace(observed(), redefined=None), PlanOptions()),
        (derived(), PlanOptions(not_derived=frozenset({"sessions"}))),
        (replace(observed(), redefined=redefined(How.DERIVE)), PlanOptions()),
        (observed(pending=LEFT), PlanOptions()),
        (mostly_new(), PlanOptions()),
        (observed(), PlanOptions(not_derived=frozenset({"sessions"}))),
        (observed(), PlanOptions(restated={"sessions": Ranges.ever()})),
        (
            replace(
                observed(),
                inputs=tuple(replace(one, dropped_since=True) for one in observed().inputs),
            ),
            PlanOptions(),
        ),
    ],
    ids=[
        "no proof",
        "unknown",
        "types",
        "not told",
        "mixed",
        "new",
        "inexact",
        "restated",
        "dropped",
    ],
)
def test_what_is_built(seen: ModelObservation, asked: PlanOptions) -> None:
    """Without a proof, or where most events are new anyway, all sessions are built."""
    [step] = made(seen, asked).steps

    assert step.action is Action.BUILD


@pytest.mark.parametrize("how", [How.REBUILD, How.DERIVE])
@pytest.mark.parametrize("visits", [observed(), derived()], ids=["ends", "states"])
def test_events_of_another_definition(how: How, visits: ModelObservation) -> None:
    """If the events are redefined too, the sessions are built."""
    change = Redefinition("events", Category.BREAKING, (), how, EVENTS, EVENTS)
    seen = {"sessions": visits, "events": replace(built(EVENTS), redefined=change)}
    made = planned(EVENTS, SESSIONS, **seen)
    steps = {step.model: step for step in made.steps}

    assert steps["sessions"].action is Action.BUILD
