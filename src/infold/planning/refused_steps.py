"""
Steps of a plan that cannot be executed, as models are refused: neither these nor their readers.

A run skips the same models (see ``run_progress``), and builds the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Plan, Skipped
from infold.core.project import Project
from infold.messages.errors import InfoldError


def without_refused(
    project: Project,
    plan: Plan,
    refused: Mapping[str, InfoldError],
    selected: frozenset[str] | None,
) -> Plan:
    """A plan without the refused models, as far as they were selected or are read."""
    needed = project.upstream(step.model for step in plan.steps)
    own = {
        name: error
        for name, error in refused.items()
        if selected is None or name in selected or name in needed
    }
    if not own:
        return plan
    steps = {step.model: step for step in plan.steps}
    withheld = {
        name: behind
        for name in steps
        if (behind := refused_inputs(project, name, own)) or name in own
    }
    left = {entry.model: entry for entry in plan.skipped if entry.model not in own}
    for name in {**own, **withheld}:
        step = steps.get(name)
        by_cell = step is not None and project[name].model.kind is Kind.INCREMENTAL_TABLE
        why = f"refused: {own[name].what}" if name in own else _waits_text(withheld[name])
        left[name] = Skipped(
            name, why, step.stale_cells if step is not None and by_cell else Ranges()
        )
    return replace(
        plan,
        steps=tuple(step for step in plan.steps if step.model not in withheld),
        skipped=tuple(left[node.name] for node in project if node.name in left),
        refused=own,
    )


def refused_inputs(
    project: Project, model: str, refused: Mapping[str, InfoldError]
) -> tuple[str, ...]:
    """The refused models that a model reads, directly or not."""
    if not refused:
        return ()
    reads = project.upstream((model,))
    return tuple(name for name in refused if name in reads)


def _waits_text(behind: tuple[str, ...]) -> str:
    return f"waits for {', '.join(behind)}, which {'is' if len(behind) == 1 else 'are'} refused"
