"""The step that a table needs that is built cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.core.interval import Ranges, show_duration, show_instant
from infold.core.plan import HELD_BACK, NOT_EMPTIED, Action, ModelObservation, Reason, Skipped, Step
from infold.core.project import Node
from infold.core.trace import Cause, Pending, merge_pending
from infold.planning.buildable_cells import (
    BACKLOG,
    cells_with_rows,
    completed_range,
    continued_build,
    filled_cells,
    most_concurrent_batches,
    replaced_whole,
    retained_range,
    split_into_batches,
    split_pending,
)
from infold.planning.derivations import derivable, derive_table
from infold.planning.plan_draft import PlanDraft
from infold.planning.staleness import next_due, rows_to_read, whole_table_reason
from infold.planning.stretches import earlier_after


def incremental_table(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """
    The stale cells inside the window that are due; the others stay pending in the trace.

    A changed definition replaces the table: by rows that follow from it, or built again.
    """
    first = whole_table_reason(node, model)
    change = derivable(draft, node, model) if first is not None else None
    forward = change is not None and change.effective_from is not None
    if change is not None and (forward or not _cells_to_replace(node, model) - draft.window):
        return derive_table(draft, node, model, change)
    if first is not None and first.cause is Cause.DEFINITION:
        return _replace_table(draft, node, model, first)
    return _recompute(draft, node, model, first)


def _recompute(
    draft: PlanDraft, node: Node, model: ModelObservation, first: Reason | None
) -> Step | None:
    """Build stale cells, or the first cells of a table (``first`` is why)."""
    reasons = [first] if first else draft.stale_reasons(node, model, 0)
    reasons += draft.restate_reasons(node)
    if first is None and _waits_for_cron(draft, node, model, reasons):
        return None
    retained, over = (
        retained_range(node),
        completed_range(node, draft.observed.as_of, draft.options.ignore_cron),
    )
    pending, build = [], []
    matters = Ranges.ever()
    if first is None and over != Ranges.ever() and not node.fills_cells:
        # Each tick ends a cell that was waited for; one without rows is right as it is.
        matters = filled_cells(node, model)
    now = draft.window & over & matters
    taken, upto = continued_build(node, model, reasons, retained & now, draft.options)
    build_missing = _build_missing_in(draft, node)
    for reason in reasons:
        within = reason.cells & retained
        inside = within & now & taken & (build_missing if reason.cause in BACKLOG else within)
        if within - inside:
            pending.append(Pending(reason.cause, within - inside))
        if inside or not reason.cells:
            build.append(replace(reason, cells=inside, rows=rows_to_read(node, model, inside)))
    cells = Ranges.of(part for reason in build for part in reason.cells)
    replaces = first is not None and first.cause is Cause.REDEFINED
    if replaces and _would_empty(draft, node, model, retained & over, cells):
        return None
    _note_skipped(draft, node, model, pending, over, taken, build_missing)
    if not build:
        return None
    # What makes the table does so before other batches come.
    together = 1 if first or model.earlier else most_concurrent_batches(node, draft.options)
    parts = split_into_batches(node, model, cells, draft.options)
    batch, beside = parts[0], tuple(parts[1:together])
    pending.extend(
        Pending(reason.cause, reason.cells - batch) for reason in build if reason.cells - batch
    )
    if replaces:
        pending = split_pending(node, model, pending)
    whole = not pending and cells == retained and not model.earlier
    anything = Action.BUILD if whole else Action.RECOMPUTE
    action = Action.BUILD if replaces else anything
    step = draft.make_step(node, action, build, merge_pending(pending))
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        cells=batch,
        batches=len(parts),
        concurrent_batches=beside,
        backfill_end=upto,
        trace=replace(step.trace, earlier=earlier_after(node, model, batch)),
    )


def _waits_for_cron(
    draft: PlanDraft, node: Node, model: ModelObservation, reasons: Sequence[Reason]
) -> bool:
    """Whether a built model is skipped until the next tick of its cron."""
    if draft.options.ignore_cron or node.name in draft.options.restated:
        return False
    due = next_due(node, model, draft.observed.as_of)
    if due is not None and reasons:
        draft.skipped.append(Skipped(node.name, f"not due before {show_instant(due)}"))
    return due is not None


def _replace_table(
    draft: PlanDraft, node: Node, model: ModelObservation, first: Reason
) -> Step | None:
    """
    Replace the table of a changed definition: one step, one commit.

    A window would build a part of it, and the table would mix rows of two definitions or lose
    days that nobody asked about. So the old table stays until the new one is built whole.
    """
    retained = retained_range(node)
    stored = _cells_to_replace(node, model)
    if stored - draft.window:
        draft.held_back.add(node.name)
        draft.skipped.append(Skipped(node.name, HELD_BACK, stored))
        return None
    over = completed_range(node, draft.observed.as_of, draft.options.ignore_cron)
    cells = retained & over & replaced_whole(node, model, draft.options)
    later = retained - cells
    pending = (Pending(Cause.MISSING, later),) if later else ()
    _note_skipped(draft, node, model, pending, over, Ranges.ever() - later, Ranges.ever())
    reason = replace(first, cells=cells, rows=rows_to_read(node, model, cells))
    step = draft.make_step(node, Action.BUILD, [reason], pending)
    pieces = tuple(split_into_batches(node, model, cells, draft.options))
    return replace(step, cells=cells, pieces=pieces if len(pieces) > 1 else ())


def _cells_to_replace(node: Node, model: ModelObservation) -> Ranges:
    """The cells of a table, and those that rows of its inputs belong to."""
    return filled_cells(node, model) & retained_range(node)


def _would_empty(
    draft: PlanDraft, node: Node, model: ModelObservation, may: Ranges, cells: Ranges
) -> bool:
    """Whether cells without rows would replace a table that has some."""
    there = Ranges.of(cells_with_rows(node, model)) & may
    if not there or there & cells:
        return False
    draft.held_back.add(node.name)
    draft.skipped.append(Skipped(node.name, NOT_EMPTIED, there))
    return True


def _build_missing_in(draft: PlanDraft, node: Node) -> Ranges:
    """Where cells of a model that were never built are built."""
    ranges, granularity = draft.options.build_missing_in.get(node.name), node.model.granularity
    return Ranges.ever() if ranges is None or granularity is None else granularity.cover(ranges)


def _note_skipped(
    draft: PlanDraft,
    node: Node,
    model: ModelObservation,
    pending: Sequence[Pending],
    over: Ranges,
    taken: Ranges,
    build_missing: Ranges,
) -> None:
    """Note what is stale and not built: by window or limit, or because it is not over yet."""
    stale = Ranges.of(part for entry in pending for part in entry.ranges)
    outside = (stale & over) - (draft.window & build_missing)
    if outside:
        draft.skipped.append(Skipped(node.name, "outside the window", outside))
    beyond = ((stale & over & draft.window & build_missing) - taken) & Ranges.of(
        cells_with_rows(node, model)
    )
    if beyond and node.backfill_limit is not None:
        limit = show_duration(node.backfill_limit)
        draft.skipped.append(Skipped(node.name, f"beyond its backfill_limit of {limit}", beyond))
    early = (stale - over) & draft.window
    if early:
        early &= Ranges.of(cells_with_rows(node, model))
    if early:
        draft.skipped.append(Skipped(node.name, "not over by the last tick of its cron", early))
