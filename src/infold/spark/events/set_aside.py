"""
The table of rows that could not be used: which model, which file, why, and the raw row.

Rows are written before the step's own commit, so that none is missing once the ledger records that
their file is ingested. They are removed after the commit, so that none is missing while the ledger
still has them. A step that died may leave rows of files that the ledger does not know, or knows
to have no rows set aside: the next step of the model removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.own_columns import FILE
from infold.core.plan import Step
from infold.core.project import Node
from infold.spark.content import column
from infold.spark.events.arrivals import AT, RAW, REASON, STATE, RowState
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout

SET_ASIDE_ROWS = FrameSchema(
    "a row that could not be used",
    (
        FrameColumn("model", "string", "the model whose query reads the row"),
        FrameColumn("source", "string", "the source of the file"),
        FrameColumn("file", "string", "the file's path, as it was listed"),
        FrameColumn("file_id", "bigint", "the id of the file's version"),
        FrameColumn("reason", "string", "why the row could not be used"),
        FrameColumn("raw", "string", "the row as text"),
        FrameColumn("event_time", "timestamp", "when the event happened, UTC; NULL: unknown"),
    ),
)


def write_rows_set_aside(work: Work, step: Step, arriving: Sequence[DataFrame], paths: Mapping[int, str]) -> int:
    """
    Write the rows set aside of the files in ``paths``; the number of commits it took.

    It is called before the step's commit. Rows that an earlier step wrote of these files go.
    """
    every = [_rows(work, step, rows, paths) for rows in arriving]
    fresh = reduce(DataFrame.unionAll, every)
    if not work.tables.exists(work.project.set_aside):
        work.tables.create(work.project.set_aside, fresh, Layout(), work.stamp(step))
    elif old := set(paths).intersection(_files(work, step)):
        _merge(work, step, fresh, old)
    else:
        work.tables.append(work.project.set_aside, fresh, work.stamp(step))
    return 1


def tidy_rows_set_aside(work: Work, step: Step, keep: Collection[int]) -> int:
    """
    Remove the model's rows, except those of the files in ``keep``; the number of commits it took.

    It is called after the step's commit.
    """
    if not work.tables.exists(work.project.set_aside):
        return 0
    over = _files(work, step).difference(keep)
    if over:
        _merge(work, step, work.tables.read(work.project.set_aside).limit(0), over)
    return 1 if over else 0


def _files(work: Work, step: Step) -> set[int]:
    """The files with rows of the step's model in the table."""
    stored = work.tables.read(work.project.set_aside).where(F.col("model") == step.model)
    # At most a row for each file with rows that were set aside.
    return {row["file_id"] for row in stored.select("file_id").distinct().collect()}


def _merge(work: Work, step: Step, insert: DataFrame, files: Collection[int]) -> None:
    """Replace the model's rows of some files by ``insert``."""
    ids = sorted(files)
    table = pa.table({"model": [step.model] * len(ids), "file_id": pa.array(ids, pa.int64())})
    work.tables.merge(
        work.project.set_aside,
        insert=insert,
        delete=work.spark.createDataFrame(table),
        on=("model", "file_id"),
        condition="true",
        stamp=work.stamp(step),
    )


@returns(SET_ASIDE_ROWS)
def _rows(work: Work, step: Step, arriving: DataFrame, paths: Mapping[int, str]) -> DataFrame:
    """The rows to set aside among judged arrivals, as the table has them."""
    node: Node = work.project[step.model]
    table = pa.table(
        {"_id": list(paths), "_path": list(paths.values())},
        schema=pa.schema([("_id", pa.int64()), ("_path", pa.string())]),
    )
    # At most a row for each file of the step.
    known = F.broadcast(work.spark.createDataFrame(table))
    aside = arriving.where(F.col(STATE) == int(RowState.SET_ASIDE))
    joined = aside.join(known, aside[FILE] == known["_id"], "inner")
    time = F.lit(None).cast("timestamp")
    if node.model.timeseries is not None:
        name = column(node.model.timeseries.event_time_column)
        time = F.when(F.col(AT).isNotNull(), name.cast("timestamp"))
    return joined.select(
        F.lit(step.model).alias("model"),
        F.lit(node.source or step.model).alias("source"),
        F.col("_path").alias("file"),
        F.col("_id").alias("file_id"),
        F.col(REASON).alias("reason"),
        F.col(RAW).alias("raw"),
        time.alias("event_time"),
    )
