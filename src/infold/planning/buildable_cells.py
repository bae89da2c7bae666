"""
Which cells a model may have, and which of them a run builds: pure functions.

A table has one definition. So a changed definition is built in one step, and one commit replaces
the old table, whatever limits and batches are set, unless it is built apart (``built_apart``).
Limits apply to cells that were never built, and to new rows. A model may ask to be built as if
there were no table instead (``on_definition_change: rebuilt_cells``): then the first cells replace
the old table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from infold.core.interval import MAX, MIN, Interval, Ranges
from infold.core.model import DefinitionChange
from infold.core.plan import ModelObservation, PlanOptions, Reason
from infold.core.project import CELLS_TOGETHER, Node
from infold.core.trace import Cause, Pending
from infold.planning import cron
from infold.planning.forward_only import built_one_by_one, cells_reached

BACKLOG = (Cause.MISSING, Cause.REDEFINED)
"""Causes of cells that the table lacks: limits apply to these."""


def retained_range(node: Node) -> Ranges:
    """The cells that a model may have: from its start on where cells are recomputed."""
    if node.start is None or not node.model.kind.is_by_cell:
        return Ranges.ever()
    return Ranges((Interval(node.start, MAX),))


def completed_range(node: Node, as_of: int, ignore_cron: bool = False) -> Ranges:
    """The cells that a model may build: those that ended by the newest tick of its cron."""
    incremental, granularity = node.model.incremental, node.model.granularity
    if incremental is None or incremental.cron is None or granularity is None:
        return Ranges.ever()
    if incremental.allow_partials or ignore_cron:
        return Ranges.ever()

    tick = cron.last_tick(incremental.cron, incremental.cron_tz, as_of)
    return Ranges((Interval(MIN, granularity.floor(tick)),))


def cells_with_rows(node: Node, model: ModelObservation) -> list[Interval]:
    """The cells that rows of the inputs can affect, in order."""
    times = {diff.name: [s.cell for s in diff.cells if s.rows] for diff in model.inputs}
    return cells_reached(node, model, times)


def filled_cells(node: Node, model: ModelObservation) -> Ranges:
    """The cells in which a table has rows, or may have some as its inputs do."""
    return Ranges.of((*cells_with_rows(node, model), *(state.cell for state in model.cells)))


def cells_to_replace(node: Node, model: ModelObservation) -> Ranges:
    """The cells of a table, and those that rows of its inputs belong to."""
    return filled_cells(node, model) & retained_range(node)


def continued_build(
    node: Node,
    model: ModelObservation,
    reasons: Sequence[Reason],
    due: Ranges,
    options: PlanOptions,
) -> tuple[Ranges, int | None]:
    """
    The cells that a run builds under a backfill_limit, and where its backfill ends.

    The limit counts from the first cell of the backlog that has rows: ranges without any are
    covered on the way and use nothing of it. Changes since the model was built are built at once,
    however long the backlog is.
    """
    granularity = node.model.granularity
    if node.backfill_limit is None or granularity is None or _has_bounded_window(options):
        return Ranges.ever(), None
    missing = [reason.cells for reason in reasons if reason.cause in BACKLOG]
    backlog = Ranges.of(part for cells in missing for part in cells & due)
    filled = [cell for cell in cells_with_rows(node, model) if backlog.overlaps(cell)]
    end = options.backfill_ends.get(node.name)
    if end is None and filled:
        first = filled[0].start
        limit = Ranges((Interval(first, first + node.backfill_limit),))
        end = max(granularity.cover(limit)).end
    if end is None or all(cell.end <= end for cell in filled):
        return Ranges.ever(), end
    fresh = Ranges.of(part for r in reasons if r.cause not in BACKLOG for part in r.cells)
    return Ranges((Interval(MIN, end),)) | fresh, end


def replaces_by_parts(node: Node) -> bool:
    """Whether the first cells of a changed definition replace the whole table."""
    incremental = node.model.incremental
    return (
        incremental is not None
        and incremental.on_definition_change is DefinitionChange.REBUILT_CELLS
    )


def split_pending(node: Node, model: ModelObservation, pending: Sequence[Pending]) -> list[Pending]:
    """
    The pending cells of a replaced table, those with rows apart from those without.

    So the cells that the new definition has yet to be built for can be counted.
    """
    filled = filled_cells(node, model)
    split = []
    for entry in pending:
        redefined = entry.cause is Cause.REDEFINED
        parts = (entry.ranges & filled, entry.ranges - filled) if redefined else (entry.ranges,)
        causes = (entry.cause, Cause.MISSING)
        split += [Pending(cause, part) for cause, part in zip(causes, parts, strict=False) if part]
    return split


def replaced_whole(node: Node, model: ModelObservation, options: PlanOptions) -> Ranges:
    """
    The cells that a changed definition is built for at once: all that the old table may have.

    Cells that no run built yet, under a backfill_limit, are left for later runs.
    """
    if node.backfill_limit is None or _has_bounded_window(options) or model.trace is None:
        return Ranges.ever()
    entries = [entry for entry in model.trace.pending if entry.cause is Cause.MISSING]
    missing = Ranges.of(part for entry in entries for part in entry.ranges)
    return Ranges.ever() - (missing - Ranges.of(state.cell for state in model.cells))


def _has_bounded_window(options: PlanOptions) -> bool:
    """Whether somebody asked for an exact window, which overrides any limit."""
    return options.window is not None and options.window.start > MIN and options.window.end < MAX


def split_into_batches(
    node: Node, model: ModelObservation, cells: Ranges, options: PlanOptions
) -> list[Ranges]:
    """The batches of ``cells``, in order."""
    incremental = node.model.incremental
    size = options.batch_size or (incremental.batch_size if incremental else None)
    if built_one_by_one(node, model):
        size = min(size or CELLS_TOGETHER, CELLS_TOGETHER)
    if size is None or node.downgraded:
        return [cells]
    filled = [cell for cell in cells_with_rows(node, model) if cells.overlaps(cell)]
    ends = [MIN, *(filled[at - 1].end for at in range(size, len(filled), size)), MAX]
    return [cells & Ranges((Interval(*between),)) for between in pairwise(ends)]


def most_concurrent_batches(node: Node, options: PlanOptions) -> int:
    """How many batches of a model are built at the same time."""
    incremental = node.model.incremental
    limits = (incremental.batch_concurrency if incremental else None, options.jobs)
    return min((limit for limit in limits if limit is not None), default=1)
