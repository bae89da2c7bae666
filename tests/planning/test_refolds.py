"""Sessions of a changed definition are changed where they may end elsewhere, in one step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planning.strips import EVENTS, SESSIONS, built, changed, project

from infold.core.definition import Category, How, Redefinition
from infold.core.interval import Ranges
from infold.core.plan import Action, ModelObservation, Observations, Plan, PlanOptions
from infold.core.trace import Cause, Pending, Trace
from infold.planning.model_states import reads_nothing
from infold.planning.planner import plan
from infold.planning.refolds import REFOLDS

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
    return plan(project(EVENTS, SESSIONS), Observations(0, both), asked or PlanOptions())


def test_the_step() -> None:
    """It keeps the versions of the inputs, and the manual entries that are applied."""
    [step] = made(observed()).steps

    assert (step.action, step.stored_by) == (Action.REFOLD, OLD.query)
    assert [(reason.cause, reason.detail) for reason in step.reasons] == [
        (Cause.DEFINITION, REFOLDS)
    ]
    assert step.inputs == {"events": (1, 1)}
    assert step.trace is not None
    assert (step.trace.fingerprint, step.trace.inputs) == (SESSIONS.fingerprint, {"events": 1})
    assert step.trace.applied_entry == 3
    assert not step.expected
    assert not reads_nothing(step)


def test_what_comes_after_it() -> None:
    """A note says that what arrived since is built next."""
    [note] = made(observed()).notes

    assert "in a step after that" in note


LEFT = (Pending(Cause.DEFINITION, Ranges.ever()),)


@pytest.mark.parametrize(
    ("seen", "asked"),
    [
        (replace(observed(), redefined=redefined(How.REBUILD)), PlanOptions()),
        (replace(observed(), redefined=None), PlanOptions()),
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
    ids=["no proof", "unknown", "mixed", "mostly new", "not exact", "restated", "dropped"],
)
def test_what_is_built(seen: ModelObservation, asked: PlanOptions) -> None:
    """Without a proof, or where most events are new anyway, all sessions are built."""
    [step] = made(seen, asked).steps

    assert step.action is Action.BUILD


@pytest.mark.parametrize("how", [How.REBUILD, How.DERIVE])
def test_events_of_another_definition(how: How) -> None:
    """If the events are redefined too, the sessions are built."""
    change = Redefinition("events", Category.BREAKING, (), how, EVENTS, EVENTS)
    seen = {"sessions": observed(), "events": replace(built(EVENTS), redefined=change)}
    made = plan(project(EVENTS, SESSIONS), Observations(0, seen))
    steps = {step.model: step for step in made.steps}

    assert steps["sessions"].action is Action.BUILD
