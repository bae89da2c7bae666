"""
Recomputing: whole tables, and cells of time-range models.

Read wide, keep narrow: inputs with a time column are filtered to what the stale cells are made
from, the query runs as the user wrote it, and a filter around it (the clamp) keeps the rows whose
partition value is in the stale cells. These cells are replaced in one commit. Cells with unchanged
content are left out of it (early cutoff); if all are, nothing is committed.

All frames here have the model's own columns, as its query yields them, and nothing else: tables
that are recomputed carry no technical columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Granularity, Interval, Ranges
from infold.core.model import Kind, Strategy
from infold.core.plan import Step
from infold.core.project import CELLS_TOGETHER, Batches, Node
from infold.core.queries import quoted
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, changes_of_rewrite
from infold.messages import run_errors
from infold.spark.content import column, range_predicate, time_predicate, time_type, user_columns
from infold.spark.inputs.changed_rows import count_row_changes
from infold.spark.jvm.session_settings import FEW_ROWS, settings_for_few_rows
from infold.spark.observed import Aggregates, observed
from infold.spark.step_commit import Computed, WholeTable, Write, commit_step
from infold.spark.step_context import DefinitionInForce, Work
from infold.spark.stored_types import refuse_other_type
from infold.spark.tables.port import Layout
from infold.spark.time_range.cell_states import (
    ObservedRows,
    compute_once,
    observe_cells,
    partition_column,
    states_of_cells,
)

_ROWS_FOR_OWN_PARTITION = 200_000
_ROWS_FOR_PARTITIONS = 500_000
_ROWS_TO_CARRY = 20_000
"""Up to so many rows of other cells are rewritten, to avoid one more file."""


def carry_out(work: Work, step: Step) -> Outcome:
    """Compute and replace the step's cells."""
    node = work.project[step.model]
    if step.replaces_all or not work.tables.exists(step.model):
        return build(work, node, step, *_rows_and_counts(work, node, step))
    if not step.cells:  # an input changed where none of its cells reads it
        return commit_step(work, step, None, _computed_from(work, step, ()))
    few = _rows_read(work, step) <= FEW_ROWS
    rows = _rows_with_cells(node, _query_rows(work, node, step, narrow=True, together=few))
    with settings_for_few_rows(work.spark) if few else nullcontext():
        return _recompute_cells(work, node, step, rows)


def definition(work: Work, node: Node, step: Step, *, narrow: bool = True) -> DataFrame:
    """
    The model's rows in the step's cells, from the versions of its inputs that the step reads.

    Unless ``narrow``, inputs are read whole, whatever the bounds of the model are.
    """
    return clamped(node, step.cells, _query_rows(work, node, step, narrow=narrow))


def _query_rows(
    work: Work, node: Node, step: Step, *, narrow: bool, together: bool = False
) -> DataFrame:
    """What the query yields, or in each cell that of the definition in force there."""
    if not work.earlier:
        rows = _rows_by_query(work, node, step, narrow=narrow, together=together)
        if step.trace is None or not step.trace.retention.frozen or step.replaces_all:
            return rows
        # Frozen cells have these types, whatever those of the inputs are now.
        return as_stored(user_columns(work.tables.read(step.model)).schema, step.model, rows)

    def compute(own_work: Work, own_node: Node, part: Step) -> DataFrame:
        if own_work is work:
            return _rows_by_query(own_work, own_node, part, narrow=narrow, together=together)
        # Rows beyond declared bounds are no part of an earlier definition.
        narrow_here = narrow or own_node.bounds_declared
        rows = _rows_by_query(own_work, own_node, part, narrow=narrow_here, together=together)
        return _rows_with_cells(own_node, rows)

    return rows_in_force(work, step, compute)


def _rows_by_query(
    work: Work, node: Node, step: Step, *, narrow: bool, together: bool
) -> DataFrame:
    """What one query yields; with ``together``, one task reads each input."""
    cells = step.cells if narrow and step.cells != Ranges.ever() else None
    frames = work.inputs(node, step, cells)
    if together:
        frames = {name: frame.coalesce(1) for name, frame in frames.items()}
    if narrow and node.batches is Batches.PER_PARTITION_ONLY:
        return cell_by_cell(work, node, step.cells, frames)
    return work.sql(node, frames, cells)


def _rows_with_cells(node: Node, rows: DataFrame) -> DataFrame:
    """The rows; raises ``run_errors.rows_without_cell`` if some are in no cell."""
    if node.model.kind.is_by_cell and (node.bounds_declared or node.downgraded):
        name = partition_column(node)
        without = rows.where(column(name).isNull()).count()
        if without:
            raise run_errors.rows_without_cell(model=node.name, column=name, rows=without)
    return rows


def clamped(node: Node, cells: Ranges, rows: DataFrame) -> DataFrame:
    """The rows that belong to ``cells``."""
    if node.model.kind is Kind.TABLE or node.model.timeseries is None:
        return rows
    name = node.model.timeseries.partition_column
    with_cell = rows.where(column(name).isNotNull())
    return with_cell.where(time_predicate(rows, name, cells, exact=True))


def _rows_and_counts(work: Work, node: Node, step: Step) -> tuple[DataFrame, Sequence[Aggregates]]:
    """The step's rows, and how many rows the query yields in all, observed when it is computed."""
    if not step.pieces:
        rows, row_count = _rows_and_count(work, node, step)
        return rows, [row_count] if row_count is not None else []
    counts = []

    def compute(piece: Ranges) -> DataFrame:
        rows, row_count = _rows_and_count(work, node, replace(step, cells=piece))
        if row_count is not None:
            counts.append(row_count)
        return rows

    return rows_in_pieces(work, step.pieces, compute), counts


def _rows_and_count(work: Work, node: Node, step: Step) -> tuple[DataFrame, Aggregates | None]:
    rows = _rows_with_cells(node, _query_rows(work, node, step, narrow=True))
    if node.model.kind is Kind.TABLE or node.model.timeseries is None:
        return rows, None
    counted, row_count = observed(rows, F.count(F.lit(1)).alias("rows"))
    return clamped(node, step.cells, counted), row_count


def build(
    work: Work, node: Node, step: Step, rows: DataFrame, row_counts: Sequence[Aggregates] = ()
) -> Outcome:
    """Replace the whole table by its rows, in one commit."""
    before, snapshot_before = work.cells(step.model), work.snapshot(step.model, step.version - 1)

    def count(snapshot: int) -> Computed:
        written = work.tables.read(step.model, snapshot, ranges=Ranges.ever())
        after = states_of_cells(written, node)
        changes = changes_of_rewrite(before, after.cells.values())
        if snapshot_before is not None:
            read = partial(work.tables.read, step.model)
            changes = count_row_changes(
                work.project, node, changes, lambda: (read(snapshot_before), read(snapshot))
            )
        yielded = sum(map(_rows_yielded, row_counts))
        stored = sum(change.rows_after for change in changes)
        return _computed_from(work, step, changes, clamped=max(0, yielded - stored))

    table = WholeTable(rows, _layout(work, node, _partition_type(rows, node)))
    return commit_step(work, step, table, count=count)


def _recompute_cells(work: Work, node: Node, step: Step, rows: DataFrame) -> Outcome:
    name = partition_column(node)
    type_ = time_type(rows, name)
    before = work.cells(step.model, step.cells)
    appended = _strategy(node) is Strategy.APPEND
    if not before and step.batches == 1 and not appended:
        # An append could not be made again after a crash, and batches are computed side by side.
        watched = observe_cells(rows, node, step.cells, type_)
        if watched is not None:
            rows_of_cells = watched.rows.where(range_predicate(name, type_, step.cells, exact=True))
            return _written_at_once(work, node, step, replace(watched, rows=rows_of_cells))
    # All that the query yields is kept where it is first computed, which is for its cells' states:
    # rows of other cells are few, as inputs are read no further than the query needs.
    rows, after = compute_once(rows, node, step.cells, type_)
    changes = changes_of_rewrite(before, after.cells.values())
    inside = range_predicate(name, type_, step.cells, exact=True)
    changes = count_row_changes(
        work.project, node, changes, lambda: (work.tables.read(step.model), rows.where(inside))
    )
    real = tuple(change for change in changes if change.changes_rows)
    cut_off = len(changes) - len(real)
    computed = replace(_computed_from(work, step, real, clamped=after.beyond), cut_off=cut_off)
    if not real:
        return commit_step(work, step, None, computed)
    filled = [c.cell for c in real if c.rows_before and step.cells.overlaps(c.cell)]
    if appended and filled:
        raise run_errors.append_would_repeat(
            model=step.model, cells=len(filled), first=str(filled[0])
        )
    ranges = Ranges.of(change.cell for change in real) & step.cells
    rows_of_cells = rows.where(range_predicate(name, type_, ranges, exact=True))
    return commit_step(work, step, CellRows(rows_of_cells, name, ranges, real, appended), computed)


def _written_at_once(work: Work, node: Node, step: Step, watched: ObservedRows) -> Outcome:
    """
    Compute cells that have no rows yet while they are written: there is nothing to compare with.

    Their content is known after the commit. If the run dies in between, the next run counts their
    rows and builds them again (``recover``).
    """

    def count(_: int) -> Computed:
        states = watched.states()
        changes = changes_of_rewrite((), states.cells.values())
        return _computed_from(work, step, changes, clamped=states.beyond)

    changes = changes_of_rewrite((), (CellState(cell, 0, 0) for cell in watched.cells))
    expected = replace(_computed_from(work, step, changes), cell_column=partition_column(node))
    return commit_step(
        work, step, CellRows(watched.rows, partition_column(node), step.cells), expected, count
    )


@dataclass(frozen=True)
class CellRows(Write):
    """
    Rows in the place of the stored ones in some ranges; appended where there are none to replace.

    ``changes`` are those of the cells, if they are known before the commit.
    """

    rows: DataFrame
    column: str
    ranges: Ranges
    changes: Sequence[CellChange] = ()
    appends: bool = False
    """Whether the model's strategy is to append."""

    def staying(self, work: Work, step: Step) -> DataFrame | None:
        """Those in all other cells, and in none."""
        stored, name = work.tables.read(step.model), self.column
        inside = range_predicate(name, dict(stored.dtypes)[name], self.ranges, exact=True)
        return stored.where(f"NOT coalesce({inside}, false)")

    def commit(self, work: Work, step: Step, rows: DataFrame) -> int:
        """Replace the ranges, or append."""
        stamp = work.stamp(step)
        filled = any(change.rows_before for change in self.changes)
        if not filled and self.appends:
            return work.tables.append(step.model, rows, stamp)
        carried = rows_carried(work, step, self.ranges)
        if not filled and carried > _ROWS_TO_CARRY:
            return work.tables.append(step.model, rows, stamp)
        # Cells that are computed while they are written have as many rows as are read, at most.
        after = (change.rows_after for change in self.changes)
        new = sum(after) if self.changes else _rows_read(work, step)
        return work.tables.replace(
            step.model,
            column=self.column,
            ranges=self.ranges,
            rows=rows,
            stamp=stamp,
            about=carried + new,
        )


def rows_carried(work: Work, step: Step, ranges: Ranges) -> int:
    """Rows of other cells in the partitions of ``ranges``, which a replacement rewrites."""
    partition = work.tables.layout(step.model).partition
    touched = Ranges.ever() if partition is None else partition.cover(ranges)
    return sum(state.rows for state in work.cells(step.model, touched - ranges))


def _strategy(node: Node) -> Strategy:
    incremental = node.model.incremental
    return incremental.strategy if incremental is not None else Strategy.DELETE_INSERT


def _computed_from(
    work: Work, step: Step, changes: tuple[CellChange, ...], *, clamped: int = 0
) -> Computed:
    """What a step computed, from all rows of the inputs that its cells read."""
    read = _rows_read(work, step)
    return Computed(changes, Receipt(read=read, scanned=read + step.scanned, clamped=clamped))


def _rows_yielded(row_count: Aggregates) -> int:
    """How many rows a query yielded."""
    counts = row_count.get  # Spark forgets what it observed in a plan that turned out to be empty
    return int(counts.get("rows") or 0)


def _rows_read(work: Work, step: Step) -> int:
    """Rows of the inputs in the cells that the step reads."""
    total = 0
    for in_force, part in steps_in_force(work, step):
        for entry in in_force.node.inputs:
            cells = None if entry.time_column is None else entry.times_read(part.cells)
            total += sum(state.rows for state in work.cells(entry.name, cells))
    return total


def _layout(work: Work, node: Node, type_: str) -> Layout:
    """
    Partitions by the size of the inputs: none for few rows, one for each cell of many rows.

    Replacing a cell rewrites its partition, so partitions must be small. Each has a file at least,
    so there must not be many.
    """
    granularity = node.model.granularity
    if granularity is None:
        return Layout()
    cells = 0
    rows = 0
    for entry in node.inputs:
        if entry.time_column is not None:
            states = work.cells(entry.name)
            cells += len(states)
            rows += sum(state.rows for state in states)
    if rows < _ROWS_FOR_PARTITIONS:
        return Layout()
    name = partition_column(node)
    if cells and rows / cells > _ROWS_FOR_OWN_PARTITION and granularity in _OWN_PARTITION:
        return Layout(name, granularity, type_)
    return Layout(name, _COARSER[granularity], type_)


_OWN_PARTITION = frozenset({Granularity.HOUR, Granularity.DAY, Granularity.MONTH})
"""Cells of these lengths may be partitions themselves."""
_COARSER = {
    Granularity.HOUR: Granularity.MONTH,
    Granularity.DAY: Granularity.MONTH,
    Granularity.WEEK: Granularity.YEAR,
    Granularity.SUNDAY_WEEK: Granularity.YEAR,
    Granularity.MONTH: Granularity.YEAR,
    Granularity.QUARTER: Granularity.YEAR,
    Granularity.YEAR: Granularity.YEAR,
}


def _partition_type(rows: DataFrame, node: Node) -> str:
    return time_type(rows, partition_column(node)) if node.model.timeseries else "timestamp"


# Some queries give other rows for one cell than over everything, and their author says (by an
# override or by declared bounds) that the cell is meant. Then each cell is a query of its own over
# what is read for that cell. The rows are put together, so that one job computes and one commit
# stores them.


def cell_by_cell(
    work: Work, node: Node, cells: Ranges, frames: Mapping[str, DataFrame]
) -> DataFrame:
    """
    The rows of ``cells``, each computed from the rows of the inputs that are read for it alone.

    Rows without a cell stay among them, to be counted. Where one query would have too many cells,
    parts of them are computed and kept one after the other.
    """
    assert node.model.timeseries is not None, "a model built cell by cell has a timeseries"
    name = node.model.timeseries.partition_column

    def rows_of_cell(cell: Interval) -> DataFrame:
        only = Ranges((cell,)) & cells
        rows = work.sql(node, frames, only)
        return rows.where(
            f"{quoted(name)} IS NULL OR {time_predicate(rows, name, only, exact=True)}"
        )

    filled = list(_cells_with_input(work, node, cells))
    if not filled:
        return work.sql(node, frames, Ranges())
    parts = [_union([rows_of_cell(cell) for cell in chunk]) for chunk in _chunks_of_cells(filled)]
    if len(parts) > 1:
        parts = [part.localCheckpoint() for part in parts]
    return _union(parts)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _chunks_of_cells(cells: Sequence[Interval]) -> Iterator[Sequence[Interval]]:
    for at in range(0, len(cells), CELLS_TOGETHER):
        yield cells[at : at + CELLS_TOGETHER]


def _cells_with_input(work: Work, node: Node, cells: Ranges) -> Iterator[Interval]:
    """
    The cells, in order, that rows of the inputs may reach; other cells have no rows.

    Cells that have rows now are among them: an earlier version of an input may have had rows there.
    """
    granularity = node.model.granularity
    assert granularity is not None, "a model built cell by cell has cells"
    reached = Ranges.of(s.cell for s in work.cells(node.name) if s.rows) | Ranges.of(
        part
        for entry in node.inputs
        if entry.time_column is not None
        for part in entry.times_affected(
            Ranges.of(s.cell for s in work.cells(entry.name) if s.rows)
        )
    )
    for part in granularity.cover(reached & granularity.cover(cells)):
        yield from granularity.cells(part)


# Batches limit how much is computed at once, and models with overrides are computed cell by cell.
# Where a definition changes, the whole table must still change at once. So Spark keeps the rows of
# each piece, in memory and on disk, until the last piece is computed.

PIECES_TOGETHER = 64
"""After so many pieces their frames are kept as one: Spark plans thousands of frames too slowly."""


def rows_in_pieces(
    work: Work, pieces: Sequence[Ranges], compute: Callable[[Ranges], DataFrame]
) -> DataFrame:
    """The rows of all pieces; each has been computed, alone, when this returns."""
    frames: list[DataFrame] = []
    groups: list[DataFrame] = []
    for piece in pieces:
        named = len(work.views)
        frames.append(compute(piece).localCheckpoint())
        while len(work.views) > named:  # its rows are kept, so its views are no longer needed
            work.spark.catalog.dropTempView(work.views.popitem()[0])
        if len(frames) == PIECES_TOGETHER:
            groups.append(_union(frames).localCheckpoint())
            frames.clear()
    return _union([*groups, *frames])


# The stored table says which columns there are, in which order and of which types. A column that an
# earlier definition lacks is NULL in its cells. A query that gives another type than the table has
# is refused: the table keeps cells that nobody computes again.

Compute = Callable[[Work, Node, Step], DataFrame]
"""The rows of a step by one definition, from what is read for its cells."""


def rows_in_force(work: Work, step: Step, compute: Compute) -> DataFrame:
    """The rows of the step's cells, each by the definition in force; rows without a cell stay."""
    stored = user_columns(work.tables.read(step.model)).schema
    parts = [
        as_stored(stored, step.model, _rows_by(in_force.work, in_force.node, part, compute))
        for in_force, part in steps_in_force(work, step)
    ]
    return reduce(DataFrame.unionByName, parts)


def steps_in_force(work: Work, step: Step) -> Iterator[tuple[DefinitionInForce, Step]]:
    """The definitions in force in a step's cells, each with the step for its own cells."""
    for in_force in work.definitions_of(step.model):
        if cells := step.cells & in_force.cells:
            yield in_force, replace(step, cells=cells)


def _rows_by(work: Work, node: Node, step: Step, compute: Compute) -> DataFrame:
    """The rows of one definition in its cells, and those that are in no cell."""
    rows, name = compute(work, node, step), partition_column(node)
    inside = time_predicate(rows, name, step.cells, exact=True)
    return rows.where(f"{quoted(name)} IS NULL OR {inside}")


def as_stored(
    stored: T.StructType, model: str, rows: DataFrame, beside: Sequence[str] = ()
) -> DataFrame:
    """
    Rows with exactly the columns of the table, NULL where they have none of that name.

    Columns ``beside`` these stay. Raises ``other_type_forward_only`` for a column of another type.
    """
    given = {field.name.lower(): field for field in rows.schema if field.name not in beside}
    columns = []
    for field in stored:
        own = given.get(field.name.lower())
        if own is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        refuse_other_type(model, field, own.dataType)
        columns.append(column(own.name).alias(field.name))
    return rows.select(*columns, *map(column, beside))
