"""
The step of a forward-only change of sessions: an ordinary fold, and a border that ends sessions.

Sessions that start before the instant keep their definition, and what changed in their events is
folded in by that. Those from the instant on are built by the new definition, from their events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from infold.core.interval import MAX, Interval, Ranges, show_instant
from infold.core.plan import Action, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause
from infold.planning.derivations import FORWARD
from infold.planning.plan_draft import PlanDraft


def forward_sessions(
    draft: PlanDraft,
    node: Node,
    model: ModelObservation,
    stale: Iterable[Reason],
    *,
    build: bool,
) -> Step | None:
    """
    The step of a forward-only change of sessions, if there is one to carry out.

    It does what is ``stale`` too; all sessions are made again where it is to ``build``.
    """
    change, trace = model.redefined, model.trace
    if change is None or trace is None or change.effective_from is None:
        return None
    since = change.effective_from
    later = Ranges((Interval(since, MAX),))
    reasons = [Reason(Cause.DEFINITION, FORWARD.format(show_instant(since)), later), *stale]
    step = draft.make_step(node, Action.BUILD if build else Action.FOLD, reasons)
    assert step.trace is not None, "a planned step has a trace"
    return replace(step, trace=replace(step.trace, earlier=trace.redefined_from(since, "")))
