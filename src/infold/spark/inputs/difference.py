"""
How many rows a recomputed cell really gained and lost, counted row by row.

A cell is replaced as a whole, and mostly has the rows that it had before, with few exceptions. What
folds a table's changes (sessions, cumulative aggregates) needs these exceptions alone. Rows are
compared as multisets, by the hash that the content of a cell is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Interval
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.trace import CellChange
from infold.spark.content import cell_of, cell_start, column, row_hash, rows_in_cells, user_columns
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns

FOLDS = (Kind.SESSIONS, Kind.CUMULATIVE_AGGREGATE, Kind.SCD_TYPE_2)
"""The kinds that fold the changes of their inputs."""

ROW_HASHES = FrameSchema(
    "a row of a table",
    (
        FrameColumn("cell", "bigint", "the start of the row's cell, microseconds since 1970 UTC"),
        FrameColumn("hash", "bigint", "the hash of the row"),
        FrameColumn("n", "int", "1 for a row as it is now, -1 for one as it was before"),
    ),
)


def _is_folded(project: Project, name: str) -> bool:
    """Whether some model folds the changes of a table, so that its rows have to be compared."""
    return any(
        node.model.kind in FOLDS and any(entry.name == name for entry in node.inputs)
        for node in project
    )


def count_row_changes(
    project: Project,
    node: Node,
    changes: tuple[CellChange, ...],
    before_and_now: Callable[[], tuple[DataFrame, DataFrame]],
) -> tuple[CellChange, ...]:
    """
    The changes, with the rows really added and removed in cells that had rows and have some.

    As they are where no model folds them. The rows of the table before and now may have other cells
    too.
    """
    both = [c for c in changes if c.changes_rows and c.rows_before and c.rows_after]
    if not both or not _is_folded(project, node.name):
        return changes
    before, current = map(user_columns, before_and_now())
    if dict(before.dtypes) != dict(current.dtypes):
        return changes
    counts = _rows_in_one_alone(
        node, [change.cell for change in both], before.select(_all_columns(current)), current
    )
    return tuple(
        replace(change, added=counts[change.cell][0], removed=counts[change.cell][1])
        if change.cell in counts
        else change
        for change in changes
    )


def _all_columns(rows: DataFrame) -> list[Column]:
    return [column(name) for name in rows.columns]


def _rows_in_one_alone(
    node: Node, cells: Sequence[Interval], before: DataFrame, current: DataFrame
) -> Mapping[Interval, tuple[int, int]]:
    """How many rows of each cell only ``current`` has, and how many only ``before`` has."""
    hashes = _row_hashes(node, cells, current, 1).unionAll(_row_hashes(node, cells, before, -1))
    rows = hashes.groupBy("cell", "hash").agg(F.sum("n").alias("n"))
    sums = rows.groupBy("cell").agg(
        F.sum(F.greatest("n", F.lit(0))).alias("added"),
        F.sum(F.greatest(-F.col("n"), F.lit(0))).alias("removed"),
    )
    granularity = node.model.granularity
    return {
        # At most a row for each cell.
        cell_of(row["cell"], granularity): (row["added"], row["removed"])
        for row in sums.collect()
    }


@returns(ROW_HASHES)
def _row_hashes(node: Node, cells: Sequence[Interval], rows: DataFrame, count: int) -> DataFrame:
    """The row hashes of some cells."""
    series, granularity = node.model.timeseries, node.model.granularity
    time = F.lit(None).cast("timestamp")
    if series is not None and granularity is not None:
        rows = rows_in_cells(rows, series.partition_column, cells, granularity)
        time = column(series.partition_column)
    return rows.select(
        cell_start(time, granularity).alias("cell"),
        row_hash(rows.schema).alias("hash"),
        F.lit(count).alias("n"),
    )
