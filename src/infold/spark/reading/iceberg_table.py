"""
Rows of an Iceberg table, by the data files that hold them, at one metadata file.

The table is opened by its metadata file, so that everything a step reads is of one snapshot even
while others write. The files asked for must all be part of it with the same deletes, and their
columns the same: else the source has moved on since it was listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.model import Column, Drift, NewColumns, Source
from infold.core.project import Project
from infold.lake.source_files import data_files, location
from infold.messages import run_errors
from infold.spark.reading import fit
from infold.spark.reading.arrow_types import TypeFit
from infold.spark.reading.drift import Present
from infold.spark.reading.parquet_files import converted, drift_of, taken_as


def rows(
    spark: SparkSession,
    source: Source,
    root: Path,
    catalog_db: Path,
    files: Sequence[Present],
    fingerprints: Mapping[str, str],
) -> DataFrame:
    """All rows of the table with their data file's path; the caller keeps those of ``files``."""
    at = location(root, source, catalog_db)
    declared = [column.name for column in source.columns]
    here = {file.path: file.fingerprint for file in data_files(at, declared)}
    for file in files:
        if here.get(file.path) != fingerprints[file.path]:
            raise run_errors.source_changed(source=source.name, path=file.path)
    stored = spark.read.format("iceberg").load(at)
    names = tuple(stored.columns)
    types = tuple(to_arrow_type(field.dataType) for field in stored.schema.fields)
    # Columns that are not declared are passed over, as they always were of tables.
    table = replace(source, on_drift=Drift.ERROR, on_new_columns=NewColumns.IGNORE)
    here_now = Present(0, source.table or "", root)
    if (drift := drift_of(table, here_now, names, types)) is not None:
        raise run_errors.drift(source.name, ((source.table or "", drift.how),))
    by_name = dict(zip(names, types, strict=True))
    columns = source.columns or _columns(stored)
    how: list[TypeFit] = []
    for column in columns:
        wanted = fit.datatype(column)
        how.append(taken_as(by_name.get(column.name), column, wanted, source.timestamp_format))
    return converted(stored, columns, how, F.col("_file"))


def declared(spark: SparkSession, source: Source, project: Project) -> Source:
    """A source whose columns nobody declared, with those of its table."""
    at = location(project.root, source, project.catalog_db)
    return replace(source, columns=_columns(spark.read.format("iceberg").load(at)))


def _columns(stored: DataFrame) -> tuple[Column, ...]:
    return tuple(Column(field.name, field.dataType.simpleString()) for field in stored.schema)
