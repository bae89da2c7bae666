"""
Steps for changed definitions of sessions that end some of them elsewhere.

Such a step reads the events of the sessions that may change, as they were when the stored sessions
were made, and no others. So its trace keeps the versions of the inputs, and everything that arrived
since is an ordinary fold after it.
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
"""The reason for such a step."""


def refold_step(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """The step that changes the sessions which end elsewhere now, if that is all there is to do."""
    change = changed_as_built(draft, node, model, How.REFOLD)
    if change is None or change.before is None or model.trace is None:
        return None
    if any(_is_replaced(draft, diff.name) or diff.dropped_since for diff in model.inputs):
        return None
    trace = model.trace
    reason = Reason(Cause.DEFINITION, REFOLDS, Ranges.ever())
    step = draft.make_step(node, Action.REFOLD, [reason], trace.pending)
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        trace=replace(step.trace, inputs=dict(trace.inputs), applied_entry=trace.applied_entry),
        expected=False,
        scanned=0,
        changed_key_rows=(),
        stored_by=change.before.query,
    )


def _is_replaced(draft: PlanDraft, name: str) -> bool:
    """Whether an input is itself of another definition now, or is built again."""
    step = draft.steps.get(name)
    if step is not None and step.action in (Action.BUILD, Action.DERIVE, Action.REFOLD):
        return True
    known = draft.observed.models.get(name)
    return known is None or known.redefined is not None
