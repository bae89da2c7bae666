"""The state of each model, as `infold status` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from infold.core.audits import JudgedAudit
from infold.core.interval import MAX, MIN, Ranges
from infold.core.model import Kind
from infold.core.plan import Action, ModelObservation, Observations, PlanOptions, Step
from infold.core.project import Node, Project
from infold.core.report import BuiltApart, ModelState, ModelStatus, State
from infold.core.trace import Cause, StoredCells
from infold.inspecting.audits import newest_audits
from infold.planning.buildable_cells import cells_with_rows
from infold.planning.model_states import model_states
from infold.planning.plan_draft import refused_inputs
from infold.planning.planner import plan as planned
from infold.running.observe import Observer

if TYPE_CHECKING:
    from infold.core.ports import Ledger


def states(
    project: Project,
    observer: Observer,
    asked: PlanOptions | None = None,
    *,
    with_cells: bool = False,
) -> tuple[ModelStatus, ...]:
    """The state of each model of a project; ``with_cells`` with those of its table."""
    observed = observer.observe_all()
    todo = planned(project, observed, asked or PlanOptions())
    steps = {step.model: step for step in todo.steps}
    known = {entry.model: entry for entry in model_states(project, observed, todo)}
    built_at, left_out = _built_at(observer.ledger), observer.ledger.left_out()
    stored = observer.ledger.stored()
    statuses = (
        model_status(
            node,
            observer.ledger,
            observed,
            steps.get(node.name),
            known.get(node.name),
            stored=stored.get(node.name, StoredCells()),
            built_at=built_at.get(node.name),
            left_out=left_out.get(node.name, 0) if node.model.kind is Kind.SESSIONS else 0,
            with_cells=with_cells,
        )
        for node in project
    )
    refused, apart = observed.refused, _apart(project, observer, observed)
    judged: dict[str, list[JudgedAudit]] = {}
    for audit in newest_audits(project, observer.ledger):
        judged.setdefault(audit.result.model, []).append(audit)
    return tuple(
        replace(
            entry,
            apart=apart.get(entry.model),
            audits=tuple(judged.get(entry.model, ())),
            refused=refused.get(entry.model),
            waits_for=refused_inputs(project, entry.model, refused),
        )
        for entry in statuses
    )


def _built_at(ledger: Ledger) -> Mapping[str, int]:
    """When the table of each model was built last: a rollback builds nothing."""
    built_at = {name: head.committed_at for name, head in ledger.newest_versions().items()}
    swapped = {model for swap in ledger.swaps() for model in swap.kept}
    for name in swapped & built_at.keys():
        *_, head = versions = ledger.versions(name)
        built_at[name] = min(one.committed_at for one in versions if one.step == head.step)
    return built_at


def _apart(
    project: Project, observer: Observer, observed: Observations
) -> Mapping[str, BuiltApart]:
    """The tables that are built apart, by model."""
    if not project.apart:
        return {}
    from infold.inspecting.tables_apart import progress_apart

    return {
        one.model: one for one in progress_apart(project, observed, observer.ledger, observer.lake)
    }


def model_status(
    node: Node,
    ledger: Ledger,
    observed: Observations,
    step: Step | None,
    model_state: ModelState | None,
    *,
    stored: StoredCells,
    built_at: int | None,
    left_out: int,
    with_cells: bool = False,
) -> ModelStatus:
    """
    One model, with the step that a run would begin with; ``model_state`` is None of a view.

    ``built_at`` is when its table was built last, ``left_out`` how many rows are in no session.
    """
    from infold.planning import cron

    name = node.name
    if model_state is None:
        return ModelStatus(name, node.model.kind, State.VIEW)
    model = observed.models[name]
    is_built = model.trace is not None  # else what the ledger knows is of a table that is gone
    stored = stored if is_built else StoredCells()
    aside = sum(file.set_aside for file in ledger.files_set_aside(name))
    incremental = node.model.incremental
    expression = incremental.cron if incremental is not None else None
    due = None
    if incremental is not None and expression is not None:
        due = cron.next_tick(expression, incremental.cron_tz, observed.as_of)
    return ModelStatus(
        model=name,
        kind=node.model.kind,
        state=model_state.state,
        rows=stored.rows,
        covered=stored.covered,
        stale=_stale_cells(node, model, step, stored.covered),
        partly=step is not None and _is_partial(node, step),
        pending=model.trace.pending if model.trace else (),
        version=model.version,
        last_built_at=built_at if is_built else None,
        last_event=stored.last,
        set_aside=aside + (left_out if is_built else 0),
        waiting=sum(file.waiting for file in ledger.files_due(name, MAX)),
        next_due=due,
        model_state=model_state,
        cells=tuple(ledger.cells(name)) if is_built and with_cells else (),
        erasures=model.erasures,
    )


def _stale_cells(node: Node, model: ModelObservation, step: Step | None, stored: Ranges) -> Ranges:
    """
    The cells that a step would build.

    Of an endless range (all but what a window left out, say) those that have rows or will have
    some, unless that is all there are.
    """
    if step is None or not node.model.kind.is_by_cell or not stored:
        return Ranges() if step is None else step.stale_cells
    filled = Ranges.of((*cells_with_rows(node, model), *stored))
    endless = any(part.start <= MIN or part.end >= MAX for part in step.stale_cells)
    return step.stale_cells & filled if endless and filled - step.stale_cells else step.stale_cells


def _is_partial(node: Node, step: Step) -> bool:
    """
    Whether a step builds only a part of its cells: which one is known when its inputs
    are built.
    """
    if step.action in (Action.FOLD, Action.REFOLD):
        return True
    follows = step.expected and node.model.kind.is_by_cell
    return follows and not any(reason.cause in _CAUSES_OF_WHOLE_CELLS for reason in step.reasons)


_CAUSES_OF_WHOLE_CELLS = (Cause.MISSING, Cause.DEFINITION, Cause.REDEFINED, Cause.LOOKUP)
