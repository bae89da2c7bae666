"""Requests to erase that files or tables have: a row for each key that somebody asked to erase."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from infold.core.erasure import AskedKey, RequestColumns, RequestRows
from infold.core.files import ListedFile
from infold.core.own_columns import FILE
from infold.core.project import Project
from infold.spark.content import column, micros
from infold.spark.reading import failures, fit, source_rows

_LATEST = 253_402_300_799_999_999
"""The end of the year 9999: no date of Python is later."""


def read_requests(
    spark: SparkSession, project: Project, columns: RequestColumns, files: Sequence[ListedFile]
) -> RequestRows:
    """
    The keys in the rows of files, of each the earliest row, and how many rows have none.

    A time that is not between 1970 and 9999 counts as none. Raises what
    :func:`source_rows.read_counted` and :func:`source_rows.refuse_changed` raise.
    """
    source = columns.source_read
    with failures.naming_files(project, source):
        rows = source_rows.read_counted(
            spark, project, source, list(enumerate(files)), texts=False
        ).rows
        key = column(columns.key).cast("string")
        at = micros(column(columns.requested_at)) if columns.requested_at else F.lit(None)
        id_ = column(columns.id) if columns.id else F.lit(None)
        at = F.when(at.between(1, _LATEST), at)
        why = F.coalesce(
            F.col(fit.PROBLEM),
            F.when(column(columns.key).isNull(), F.lit(f"null {columns.key}")),
            F.when(key == "", F.lit(f"empty {columns.key}")),
        )
        grouped = (
            rows.select(
                F.when(why.isNull(), key).alias("key"),
                F.when(why.isNotNull(), F.col(FILE)).alias("file"),
                why.alias("why"),
                F.struct(
                    F.coalesce(at, F.lit(_LATEST + 1)).cast("bigint").alias("at"),
                    id_.cast("string").alias("id"),
                ).alias("first"),
            )
            .groupBy("key", "file", "why")
            .agg(F.min("first").alias("first"), F.count(F.lit(1)).alias("rows"))
        )
        # At most a row for each key that was asked to be erased, and for each file and reason.
        found = grouped.collect()
        source_rows.refuse_changed(project, source, files)
    asked = tuple(
        AskedKey(
            row["key"],
            row["first"]["at"] if row["first"]["at"] <= _LATEST else None,
            row["first"]["id"],
        )
        for row in found
        if row["why"] is None
    )
    unusable = {
        (files[row["file"]].path, row["why"]): row["rows"]
        for row in found
        if row["why"] is not None
    }
    return RequestRows(asked, unusable)
