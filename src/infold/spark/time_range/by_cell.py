"""
Many cells, each computed by itself, as one frame of the model's columns.

Some queries give other rows for one cell than over everything, and their author says (by an
override or by declared bounds) that the cell is meant. Then each cell is a query of its own over
what is read for that cell. The rows are put together, so that one job computes and one commit
stores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from infold.core.interval import Interval, Ranges
from infold.core.project import CELLS_TOGETHER, Node
from infold.core.quoting import quoted
from infold.spark.content import (
    time_predicate,
)
from infold.spark.step_context import Work


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

    def one(cell: Interval) -> DataFrame:
        only = Ranges((cell,)) & cells
        rows = work.sql(node, frames, only)
        return rows.where(
            f"{quoted(name)} IS NULL OR {time_predicate(rows, name, only, exact=True)}"
        )

    filled = list(_cells_with_input(work, node, cells))
    if not filled:
        return work.sql(node, frames, Ranges())
    parts = [_union([one(cell) for cell in chunk]) for chunk in _chunks(filled)]
    if len(parts) > 1:
        parts = [part.localCheckpoint() for part in parts]
    return _union(parts)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _chunks(cells: Sequence[Interval]) -> Iterator[Sequence[Interval]]:
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
