"""
An Iceberg table as a source: its rows, by the data files that have them, at one metadata file.

The table is opened by its metadata file, so that everything a step reads is of one snapshot even
while others write. The files asked for must all be part of it with the same deletes, and their
columns the same: else the source has moved on since it was listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type

from infold.core.model import Column, Source
from infold.core.project import Project
from infold.lake.iceberg.open_catalog import open_catalog
from infold.lake.reading.iceberg_table import data_files, location
from infold.spark.reading import fit, stored_columns
from infold.spark.reading.arrow_types import TypeFit
from infold.spark.reading.drift import FileShape, PresentFile, refuse_moved
from infold.spark.reading.stored_columns import (
    column_fit,
    columns_of,
    declared_values,
    refuse_drift,
)


@dataclass(frozen=True, slots=True)
class TableShape(FileShape):
    """The table as it is read for a step: all its files together."""

    stored: DataFrame = field(compare=False)


check_readable = stored_columns.check_table_readable


def inspect(
    spark: SparkSession, project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, TableShape]:
    """
    See ``FormatReader``; columns that are not declared are ignored.

    Raises ``errors.source_changed`` where a file is no longer what it was when it was listed, and
    ``errors.drift`` for the table: one of its files cannot be set aside.
    """
    at = location(project.root, source, open_catalog(project))
    declared = [column.name for column in source.columns]
    refuse_moved(source, files, data_files(at, declared))
    stored = _open(spark, at)
    refuse_drift(source, source.table or "", _arrow_types(stored))
    shape = TableShape(stored)
    return {file.id: shape for file in files}


def rows(
    _spark: SparkSession, source: Source, shape: TableShape, _files: Sequence[PresentFile]
) -> DataFrame:
    """All rows of the table, in whatever file; the caller keeps those of the files asked for."""
    types = _arrow_types(shape.stored)
    declared = source.columns or columns_of(shape.stored.schema)
    how: list[TypeFit] = []
    for column in declared:
        type_ = fit.datatype(column)
        how.append(column_fit(types.get(column.name), column, type_, source.timestamp_format))
    return declared_values(shape.stored, declared, how, F.col("_file"))


def columns(spark: SparkSession, project: Project, source: Source) -> Sequence[Column]:
    """The declared columns; of a source that declares none, those of the table."""
    if source.columns:
        return source.columns
    return columns_of(_open(spark, location(project.root, source, open_catalog(project))).schema)


def _open(spark: SparkSession, at: str) -> DataFrame:
    """The table as the metadata file ``at`` describes it."""
    return spark.read.format("iceberg").load(at)


def _arrow_types(stored: DataFrame) -> dict[str, pa.DataType]:
    return {field.name: to_arrow_type(field.dataType) for field in stored.schema.fields}
