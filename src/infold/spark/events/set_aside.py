"""
The rows that could not be used, in a table of their own, by file and reason.

Rows are written before the step's own commit, so that none is missing once the ledger records
that their file is ingested. They are removed after the commit, so that none is missing while the
ledger still has them. A step that died may leave rows of files that the ledger does not know, or
knows to have no rows set aside: the next step of the model removes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import MIN
from infold.core.own_columns import FILE
from infold.core.plan import Step
from infold.core.project import Node
from infold.spark.content import column, micros
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


def write_rows_set_aside(
    work: Work, step: Step, arriving: Sequence[DataFrame], paths: Mapping[int, str]
) -> int:
    """
    Write the rows set aside of the files in ``paths``; the number of commits it took.

    It is called before the step's commit. Rows that an earlier step wrote of these files go.
    """
    frames = [_rows_aside(work, step, rows, paths) for rows in arriving]
    insert = reduce(DataFrame.unionAll, frames)
    if not work.tables.exists(work.project.set_aside):
        work.tables.create(work.project.set_aside, insert, Layout(), work.stamp(step))
    elif rewritten := set(paths).intersection(_files_with_rows(work, step)):
        _replace_rows(work, step, insert, _of_files(step, rewritten))
    else:
        work.tables.append(work.project.set_aside, insert, work.stamp(step))
    return 1


def tidy_rows_set_aside(work: Work, step: Step, keep: Collection[int]) -> int:
    """
    Remove the model's rows, except those of the files in ``keep``; the number of commits it took.

    It is called after the step's commit.
    """
    if not work.tables.exists(work.project.set_aside):
        return 0
    to_remove = _files_with_rows(work, step).difference(keep)
    if to_remove:
        nothing = work.tables.read(work.project.set_aside).limit(0)
        _replace_rows(work, step, nothing, _of_files(step, to_remove))
    return 1 if to_remove else 0


def files_without_cells(work: Work, step: Step) -> FilesOutcome:
    """
    What the ledger has of files once the rows in a step's cells are gone, and those set aside.

    Of the latter only those that are known to be older; what is left of them is counted, so that a
    step that is done again finds the same.
    """
    node = work.project[step.model]
    spots: dict[int, list[FileCell]] = defaultdict(list)
    for spot in work.ledger.file_cells(step.model):
        spots[spot.file_id].append(spot)
    aside = dict[int, int]()
    if work.ledger.files_set_aside(step.model):
        is_old = _is_older(step)
        stored = work.tables.read(work.project.set_aside).where(F.col("model") == step.model)
        counts = stored.groupBy("file_id").agg(
            F.count_if(~is_old).alias("left"), F.max(is_old).alias("old")
        )
        # At most a row for each file with rows that were set aside.
        aside = {row["file_id"]: row["left"] for row in counts.where("old").collect()}
    gone = {id_ for id_, some in spots.items() if any(step.cells.overlaps(s.cell) for s in some)}
    files, cells = list[IngestedFile](), list[FileCell]()
    for file in work.ledger.files(step.model):
        if file.id in gone or file.id in aside:
            left = [spot for spot in spots[file.id] if not step.cells.overlaps(spot.cell)]
            rows, dropped = (sum(spot.rows for spot in left), sum(spot.dropped for spot in left))
            set_aside = aside.get(file.id, file.set_aside)
            files.append(replace(file, rows=rows, dropped=dropped, set_aside=set_aside))
            cells += left
    source = node.source or node.name
    return FilesOutcome(source, tuple(files), cells=tuple(cells), recounted=True)


def remove_older_set_aside(work: Work, step: Step) -> int:
    """Remove rows set aside that are known to be too old; the number of commits it took."""
    if not work.tables.exists(work.project.set_aside):
        return 0
    stored = work.tables.read(work.project.set_aside)
    older = stored.where((F.col("model") == step.model) & _is_older(step))
    # At most a row for each row that was set aside.
    keys = older.select("model", "file_id", "event_time").distinct().toArrow()
    if keys.num_rows:
        _replace_rows(work, step, stored.limit(0), keys)
    return 1 if keys.num_rows else 0


def _is_older(step: Step) -> Column:
    """Whether a row that was set aside is from before the start of the step's table."""
    start = step.trace.retention.start if step.trace is not None else MIN
    return F.coalesce(micros(F.col("event_time")) < start, F.lit(False))


def _files_with_rows(work: Work, step: Step) -> set[int]:
    """The files with rows of the step's model in the table."""
    stored = work.tables.read(work.project.set_aside).where(F.col("model") == step.model)
    # At most a row for each file with rows that were set aside.
    return {row["file_id"] for row in stored.select("file_id").distinct().collect()}


def _of_files(step: Step, files: Collection[int]) -> pa.Table:
    """What the model's rows of some files are found by."""
    ids = sorted(files)
    return pa.table({"model": [step.model] * len(ids), "file_id": pa.array(ids, pa.int64())})


def _replace_rows(work: Work, step: Step, insert: DataFrame, found_by: pa.Table) -> None:
    """Replace the rows with these values by ``insert``."""
    work.tables.merge(
        work.project.set_aside,
        insert=insert,
        delete=work.spark.createDataFrame(found_by),
        on=tuple(found_by.column_names),
        condition="true",
        stamp=work.stamp(step),
    )


@returns(SET_ASIDE_ROWS)
def _rows_aside(work: Work, step: Step, arriving: DataFrame, paths: Mapping[int, str]) -> DataFrame:
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
