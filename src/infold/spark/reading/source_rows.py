"""
The rows of given versions of a source's files, exactly.

One frame for all of them: the declared columns with their declared types, ``_source_file`` (the id
of the file's version), ``_raw`` (the row as text) and ``_problem`` (why it cannot be used, else
NULL). How each format is read, and what makes a row unparsable or a file drift, stands in
``reading``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.files import FileKnown, FileSeen, listed
from infold.core.model import Format, Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading import csv_files, fit, iceberg_table, json_lines, parquet_files
from infold.spark.reading.drift import Present, readable
from infold.spark.reading.paths import takeable, uri

File = FileSeen | FileKnown

_READERS: dict[Format, ModuleType] = {
    Format.CSV: csv_files,
    Format.JSON: json_lines,
    Format.PARQUET: parquet_files,
}
"""What reads a format: ``rows`` of files, and ``look_through`` to find whether one can be read."""


def read(
    spark: SparkSession, project: Project, source: Source, files: Sequence[tuple[int, File]]
) -> DataFrame:
    """
    The rows of the files, each given with the id of its version.

    Raises ``errors.drift`` for files that drift where the source says so, before anything is
    read; ``errors.unreadable_file`` for a file that cannot be read, unless it is to be set aside.
    """
    iceberg = source.format is Format.ICEBERG
    present = [
        Present(
            id_,
            file.path,
            project.root / file.path if iceberg else takeable(project.root, file.path),
            file.size,
            isinstance(file, FileKnown),
        )
        for id_, file in files
    ]
    if iceberg:
        fingerprints = {file.path: file.fingerprint for _, file in files}
        stored = iceberg_table.rows(
            spark, source, project.root, project.catalog_db, present, fingerprints
        )
        return _identified(spark, stored, [(file.path, file.id) for file in present], "inner")
    reader = _READERS[source.format]
    good, bad = readable(source, present, reader.look_through)
    frames = reader.rows(spark, source, good)
    if bad:
        frames.append(_unreadable(spark, source, [f for f in present if f.id in bad], bad))
    if not frames:
        return _nothing(spark, source)
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionByName(frame)
    return _identified(spark, rows, [(uri(file.at), file.id) for file in present], "left")


def refuse_changed(project: Project, source: Source, files: Iterable[File]) -> None:
    """Raise ``errors.source_changed`` when a file is no longer what its listing showed."""
    if source.format is Format.ICEBERG:
        return  # read at one metadata file, checked when it was opened
    for file in files:
        if not unchanged(project, source, file):
            raise run_errors.source_changed(source=source.name, path=file.path)


def unchanged(project: Project, source: Source, file: File) -> bool:
    """Whether a file is still what its listing showed, as far as a look at it tells."""
    if source.format is Format.ICEBERG:
        return True
    try:
        stat = os.stat(project.root / file.path)  # noqa: PTH116 - as fast as the listing
    except FileNotFoundError:
        return False
    return listed(file.fingerprint) == f"{stat.st_size}:{stat.st_mtime_ns}"


def _identified(
    spark: SparkSession, rows: DataFrame, ids: list[tuple[str, int]], how: str
) -> DataFrame:
    """The rows with the id of their file for its path."""
    plain = rows.columns
    if len(ids) == 1 and how == "left":
        found = rows.withColumn(fit.FILE, F.lit(ids[0][1]).cast("bigint"))
    else:
        table = pa.table(
            {"_of": [path for path, _ in ids], "_id": [id_ for _, id_ in ids]},
            schema=pa.schema([("_of", pa.string()), ("_id", pa.int64())]),
        )
        known = F.broadcast(spark.createDataFrame(table))
        joined = rows.join(known, rows[fit.PATH] == known["_of"], how)
        # A path that Spark spells in another way than we do must never lose its rows in silence.
        unknown = F.raise_error(F.concat(F.lit("not a file of this step: "), fit.PATH))
        found = joined.withColumn(fit.FILE, F.coalesce("_id", unknown.cast("bigint")))
    names = [name for name in plain if name not in (fit.PATH, fit.RAW, fit.PROBLEM)]
    return found.select(*map(column_of, names), fit.FILE, fit.RAW, fit.PROBLEM)


def _nothing(spark: SparkSession, source: Source) -> DataFrame:
    schema = values(source).add(fit.FILE, T.LongType())
    schema = schema.add(fit.RAW, T.StringType()).add(fit.PROBLEM, T.StringType())
    return spark.createDataFrame([], schema)


def _unreadable(
    spark: SparkSession, source: Source, files: Sequence[Present], why: Mapping[int, str]
) -> DataFrame:
    """One row without values for each file that cannot be read: nobody knows how many there are."""
    table = pa.table(
        {
            fit.PATH: [uri(file.at) for file in files],
            fit.PROBLEM: [f"unreadable: {why[file.id]}" for file in files],
        }
    )
    nulls = [F.lit(None).cast(f.dataType).alias(f.name) for f in values(source).fields]
    told = spark.createDataFrame(table)
    return told.select(*nulls, fit.PATH, F.lit(None).cast("string").alias(fit.RAW), fit.PROBLEM)


def shape(spark: SparkSession, project: Project, source: Source) -> T.StructType:
    """The columns of a source; those of a table whose columns nobody declared, as it has them."""
    if source.format is Format.ICEBERG and not source.columns:
        source = iceberg_table.declared(spark, source, project)
    return values(source)


def values(source: Source) -> T.StructType:
    """The columns of a source, as its rows have them once they are read."""
    return T.StructType(
        [T.StructField(column.name, fit.stored_type(column)) for column in source.columns]
    )
