"""The state of each model, as `infold status` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.audits import JudgedAudit
from infold.core.plan import Observations, PlanOptions
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.report import BuiltApart, ModelStatus
from infold.inspecting.audits import audits_found
from infold.inspecting.model_status import model_status
from infold.planning.model_states import model_states
from infold.planning.plan_draft import refused_inputs
from infold.planning.planner import plan as planned
from infold.running.observe import Observer


def states(
    project: Project, looking: Observer, asked: PlanOptions | None = None
) -> tuple[ModelStatus, ...]:
    """The state of each model of a project."""
    seen = looking.observe_all()
    todo = planned(project, seen, asked or PlanOptions())
    steps = {step.model: step for step in todo.steps}
    known = {entry.model: entry for entry in model_states(project, seen, todo)}
    built_at, left_out = _built_at(looking.ledger), looking.ledger.left_out()
    found = (
        model_status(
            node,
            looking.ledger,
            seen,
            steps.get(node.name),
            known.get(node.name),
            built_at=built_at.get(node.name),
            left_out=left_out.get(node.name, 0),
        )
        for node in project
    )
    refused, apart = seen.refused, _apart(project, looking, seen)
    judged: dict[str, list[JudgedAudit]] = {}
    for one in audits_found(project, looking.ledger):
        judged.setdefault(one.result.model, []).append(one)
    return tuple(
        replace(
            entry,
            apart=apart.get(entry.model),
            audits=tuple(judged.get(entry.model, ())),
            refused=refused.get(entry.model),
            waits_for=refused_inputs(project, entry.model, refused),
        )
        for entry in found
    )


def _built_at(ledger: Ledger) -> Mapping[str, int]:
    """When the table of each model was built last: a rollback builds nothing."""
    found = {name: head.committed_at for name, head in ledger.newest_versions().items()}
    exchanged = {model for swap in ledger.swaps() for model in swap.kept}
    for name in exchanged & found.keys():
        *_, head = versions = ledger.versions(name)
        found[name] = min(one.committed_at for one in versions if one.step == head.step)
    return found


def _apart(project: Project, looking: Observer, seen: Observations) -> Mapping[str, BuiltApart]:
    """The tables that are built apart, by model."""
    if not project.apart:
        return {}
    from infold.inspecting.apart_swap import progress_apart

    return {one.model: one for one in progress_apart(project, seen, looking.ledger, looking.lake)}
