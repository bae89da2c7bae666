"""
What a run would rebuild although it exists, and which targets refuse that.

On a protected target nothing drops or rebuilds a table, or its ledger entries, unless that run was
allowed to. Keeping a table up to date is no rebuild, even where that writes all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from infold.core.interval import Ranges
from infold.core.model import table_name
from infold.core.plan import Action, Plan, PlanOptions, Step
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.target import Apply
from infold.core.trace import UNKNOWN
from infold.messages import run_errors
from infold.messages.errors import InfoldError

TableExists = Callable[[str], bool]
"""Whether a model has a table that the ledger does not know."""


def unrecorded_table(ledger: Ledger, lake: Lake) -> TableExists:
    """Looks at the catalog, and at what the ledger knows of the step that wrote a table last."""

    def has_unrecorded_table(model: str) -> bool:
        head = lake.metadata(table_name(model))
        if head is None:
            return False
        last = next(iter([*head.steps][::-1]), "")
        known = ledger.runs(1, run=last.rpartition("-")[0])
        # One that a run of ours had begun, and died over, was never built for good.
        return all(step.state == "done" for run in known for step in run.steps if step.id == last)

    return has_unrecorded_table


def protection_warnings(
    project: Project, plan: Plan, asked: PlanOptions, exists: TableExists
) -> tuple[str, ...]:
    """Warnings on a plan for a protected target."""
    if not project.target.protected:
        return ()
    return tuple(
        f"{name}: {why}; {project.target.name} is protected, so a run needs --allow-refresh"
        for name, why in rebuilt_tables(project, plan, asked, exists)
    )


def refused_rebuilds(
    project: Project, plan: Plan, asked: PlanOptions, exists: TableExists, *, allowed: bool
) -> Mapping[str, InfoldError]:
    """The models that a plan rebuilds on a protected target, each with the refusal."""
    if not project.target.protected or allowed:
        return {}
    return {
        name: run_errors.protected(project.target.name, "rebuild", ((name, why),))
        for name, why in rebuilt_tables(project, plan, asked, exists)
    }


def rebuilt_tables(
    project: Project, plan: Plan, asked: PlanOptions, exists: TableExists
) -> Iterator[tuple[str, str]]:
    """
    The built models that a plan rebuilds, each with the reason.

    Where definitions are applied by hand, that was the permission to rebuild what they change.
    """
    applied = project.target.apply is Apply.MANUAL
    for step in plan.steps:
        why = _rebuild_reason(step, asked, exists, applied=applied)
        if why:
            yield step.model, why


def _rebuild_reason(step: Step, asked: PlanOptions, exists: TableExists, *, applied: bool) -> str:
    if asked.restated.get(step.model) == Ranges.ever() and step.previous_trace is not None:
        return "all of it is to be built again"
    if step.previous_trace is None:
        return "its table exists, and the ledger does not know it" if exists(step.model) else ""
    if step.action is Action.EVOLVE:
        return ""  # no row changes
    old, new = step.previous_trace.fingerprint, step.trace.fingerprint if step.trace else ""
    # What a dead run left half known has to be built again before anything can be.
    return "its definition changed" if not applied and old not in (new, UNKNOWN) else ""
