"""
Many cells, each computed by itself, as one frame.

Where a query gives other rows for a cell than over everything, and its author says that the cell
is what is meant, each cell is a query of its own over what is read for that cell. Their rows are
put together, so that one job computes them and one commit holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from infold.core.interval import Interval, Ranges
from infold.core.project import CELLS_TOGETHER, Node
from infold.spark.content import in_time, quoted
from infold.spark.step_context import Work


def each_by_itself(
    work: Work, node: Node, cells: Ranges, frames: Mapping[str, DataFrame]
) -> DataFrame:
    """
    The rows of ``cells``, each computed from no more of the inputs than are read for it alone.

    Rows without a cell stay among them, to be counted. Of more cells than one query should hold,
    so many at a time are computed and kept.
    """
    assert node.model.timeseries is not None, "a model built cell by cell has a timeseries"
    name = node.model.timeseries.partition_column

    def one(cell: Interval) -> DataFrame:
        only = Ranges((cell,)) & cells
        rows = work.sql(node, frames, only)
        return rows.where(f"{quoted(name)} IS NULL OR {in_time(rows, name, only, exact=True)}")

    filled = list(_filled(work, node, cells))
    if not filled:
        return work.sql(node, frames, Ranges())
    parts = [_together([one(cell) for cell in chunk]) for chunk in _chunks(filled)]
    if len(parts) > 1:
        parts = [part.localCheckpoint() for part in parts]
    return _together(parts)


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _chunks(cells: Sequence[Interval]) -> Iterator[Sequence[Interval]]:
    for at in range(0, len(cells), CELLS_TOGETHER):
        yield cells[at : at + CELLS_TOGETHER]


def _filled(work: Work, node: Node, cells: Ranges) -> Iterator[Interval]:
    """
    The cells, in order, that rows of the inputs may show in; others yield nothing.

    Those that hold rows are among them: an older version of an input may have had rows there.
    """
    granularity = node.model.granularity
    assert granularity is not None, "a model built cell by cell has cells"
    reached = Ranges.of(s.cell for s in work.cells(node.name) if s.rows) | Ranges.of(
        part
        for entry in node.inputs
        if entry.time_column is not None
        for part in entry.reached(Ranges.of(s.cell for s in work.cells(entry.name) if s.rows))
    )
    for part in granularity.cover(reached & granularity.cover(cells)):
        yield from granularity.cells(part)
