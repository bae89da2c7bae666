"""
The table of rows that could not be used: which model, which file, why, and the raw row.

It is written before the step's own commit and again after a crash, so a write first takes out what
is there of the files in question. Files that leave take their rows along.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.plan import Step
from infold.project import Node
from infold.spark.arrivals import AT, FILE, RAW, REASON, STATE, State
from infold.spark.content import column
from infold.spark.tables.port import Layout
from infold.spark.work import Work

TABLE = "infold__set_aside"


def write(
    work: Work,
    step: Step,
    arriving: DataFrame | None,
    paths: Mapping[int, str],
    *,
    rows: int,
    gone: Collection[int],
) -> int:
    """
    Bring the rows of a step's files up to date; the number of commits that took.

    ``rows`` is how many rows of the files in ``paths`` are set aside now (0: nothing to write);
    ``gone`` are files whose rows leave.
    """
    if not rows and not gone:
        return 0
    fresh = _rows(work, step, arriving, paths) if arriving is not None and rows else None
    if not work.tables.exists(TABLE):
        if fresh is not None:
            work.tables.create(TABLE, fresh, Layout(), work.stamp(step))
        return 0 if fresh is None else 1
    stored = work.tables.read(TABLE)
    ids = sorted({*gone, *paths})
    old = stored.where((F.col("model") == step.model) & F.col("file_id").isin(ids))
    old = old.select("model", "file_id").distinct()
    if not old.isEmpty():
        # Distinct pairs of model and file, each removing all its rows.
        work.tables.merge(
            TABLE,
            insert=stored.limit(0) if fresh is None else fresh,
            delete=old,
            on=("model", "file_id"),
            within="true",
            stamp=work.stamp(step),
        )
        return 1
    if fresh is not None:
        work.tables.append(TABLE, fresh, work.stamp(step))
    return 0 if fresh is None else 1


def _rows(work: Work, step: Step, arriving: DataFrame, paths: Mapping[int, str]) -> DataFrame:
    node: Node = work.project[step.model]
    table = pa.table(
        {"_id": list(paths), "_path": list(paths.values())},
        schema=pa.schema([("_id", pa.int64()), ("_path", pa.string())]),
    )
    known = F.broadcast(work.spark.createDataFrame(table))
    aside = arriving.where(F.col(STATE) == int(State.ASIDE))
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
