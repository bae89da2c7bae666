"""The status of one model, from what was observed and from the ledger."""

from __future__ import annotations

from infold.core.interval import MAX, MIN, Ranges
from infold.core.model import Kind
from infold.core.plan import Action, ModelObservation, Observations, Step
from infold.core.ports import Ledger
from infold.core.project import Node
from infold.core.report import ModelState, ModelStatus, State
from infold.core.trace import Cause
from infold.planning import cron
from infold.planning.buildable_cells import cells_with_rows


def model_status(
    node: Node,
    ledger: Ledger,
    observed: Observations,
    step: Step | None,
    model_state: ModelState | None,
    *,
    built_at: int | None,
    left_out: int,
) -> ModelStatus:
    """
    One model, with the step that a run would begin with; ``model_state`` is None of a view.

    ``built_at`` is when its table was built last, ``left_out`` how many rows are in no session.
    """
    name = node.name
    if model_state is None:
        return ModelStatus(name, node.model.kind, State.VIEW)
    model = observed.models[name]
    there = model.trace is not None  # else what the ledger knows is of a table that is gone
    cells = tuple(ledger.cells(name)) if there else ()
    aside = sum(file.set_aside for file in ledger.files_set_aside(name))
    incremental = node.model.incremental
    expression = incremental.cron if incremental is not None else None
    due = None
    if incremental is not None and expression is not None:
        due = cron.next_tick(expression, incremental.cron_tz, observed.as_of)
    last = [cell.last for cell in cells if cell.last is not None]
    covered = Ranges.of(cell.cell for cell in cells)
    return ModelStatus(
        model=name,
        kind=node.model.kind,
        state=model_state.state,
        rows=sum(cell.rows for cell in cells),
        covered=covered,
        stale=_stale_cells(node, model, step, covered),
        partly=step is not None and _is_partial(node, step),
        pending=model.trace.pending if model.trace else (),
        version=model.version,
        last_built_at=built_at if there else None,
        last_event=max(last) if last else None,
        set_aside=aside + (left_out if there else 0),
        waiting=sum(file.waiting for file in ledger.files_due(name, MAX)),
        next_due=due,
        model_state=model_state,
        cells=cells,
    )


def _stale_cells(node: Node, model: ModelObservation, step: Step | None, stored: Ranges) -> Ranges:
    """
    The cells that a step would build.

    Of an endless range (all but what a window left out, say) those that have rows or will have
    some, unless that is all there are.
    """
    if step is None or node.model.kind is not Kind.INCREMENTAL_TABLE or not stored:
        return Ranges() if step is None else step.stale_cells
    there = Ranges.of((*cells_with_rows(node, model), *stored))
    endless = any(part.start <= MIN or part.end >= MAX for part in step.stale_cells)
    return step.stale_cells & there if endless and there - step.stale_cells else step.stale_cells


def _is_partial(node: Node, step: Step) -> bool:
    """
    Whether a step builds only a part of its cells: which one is known when its inputs
    are built.
    """
    if step.action in (Action.FOLD, Action.REFOLD):
        return True
    follows = step.expected and node.model.kind is Kind.INCREMENTAL_TABLE
    return follows and not any(reason.cause in _WHOLLY for reason in step.reasons)


_WHOLLY = (Cause.MISSING, Cause.DEFINITION, Cause.REDEFINED, Cause.LOOKUP)
