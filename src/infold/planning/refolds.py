"""
Steps for changed definitions of sessions that follow from the stored ones.

Where other values are computed of the same sessions, states may tell all of them, and no event is
read. Where sessions end elsewhere, the events of those that may change are read, as they were when
the stored sessions were made, and no others. So the trace keeps the versions of the inputs, and
everything that arrived since is an ordinary fold after it.
"""

from __future__ import annotations

from dataclasses import replace

from infold.core.definition import How
from infold.core.interval import Ranges
from infold.core.plan import Action, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause
from infold.planning.derivations import changed_as_built
from infold.planning.plan_draft import PlanDraft

REFOLDS = "follows from stored sessions: only those that may end elsewhere are read again"
"""The reason for a step that makes some sessions again."""


STATES = "follows from stored states: 0 events read"
"""The reason for a step that reads no event."""


def step_from_stored(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """
    The step that changes the stored sessions of an earlier definition, if that is enough.

    The caller has seen that the rows that they were made from are still there.
    """
    if any(_is_replaced(draft, diff.name) for diff in model.inputs):
        return None
    derived = changed_as_built(draft, node, model, How.DERIVE)
    if derived is not None and derived.derivation is not None:
        step = _step(draft, node, model, Action.DERIVE, STATES)
        return replace(step, derivation=derived.derivation)
    refolded = changed_as_built(draft, node, model, How.REFOLD)
    if refolded is not None and refolded.before is not None:
        step = _step(draft, node, model, Action.REFOLD, REFOLDS)
        return replace(step, stored_by=refolded.before.query)
    return None


def _step(draft: PlanDraft, node: Node, model: ModelObservation, action: Action, why: str) -> Step:
    """A step over the versions of the inputs that the stored sessions were made from."""
    trace = model.trace
    assert trace is not None, "only a built table has sessions to follow from"
    reason = Reason(Cause.DEFINITION, why, Ranges.ever())
    step = draft.make_step(node, action, [reason], trace.pending)
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        trace=replace(step.trace, inputs=dict(trace.inputs), applied_entry=trace.applied_entry),
        expected=False,
        scanned=0,
        changed_key_rows=(),
    )


def _is_replaced(draft: PlanDraft, name: str) -> bool:
    """Whether an input is itself of another definition now, or is built again."""
    step = draft.steps.get(name)
    if step is not None and step.action in (Action.BUILD, Action.DERIVE, Action.REFOLD):
        return True
    known = draft.observed.models.get(name)
    return known is None or known.redefined is not None
