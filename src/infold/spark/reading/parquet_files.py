"""
Parquet: footers are read in this process, rows by Spark, files of one schema together.

A frame of *stored* rows has the file's columns, as it stores them, and Spark's ``_metadata``; from
it comes the frame that ``reading`` describes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Column, Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading import fit, int96
from infold.spark.reading.arrow_types import TypeFit, readable_type, type_fit
from infold.spark.reading.drift import (
    Drifted,
    FileShape,
    PresentFile,
    declared_columns,
    differences,
)
from infold.spark.reading.paths import glob


@dataclass(frozen=True, slots=True)
class ParquetShape(FileShape):
    """The columns of a Parquet file with their types."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]


columns = declared_columns


def check_readable(_: Source, file: PresentFile) -> None:
    """See ``FormatReader``."""
    try:
        with parquet.ParquetFile(file.file.arrow_file()) as opened:
            _refuse_unread(file, opened)
            for _ in opened.iter_batches():
                pass
    except (OSError, pa.ArrowException) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error).splitlines()[0]) from error


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, ParquetShape]:
    """See ``FormatReader``: by the footers."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: ParquetShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    if any(map(_is_nanos, shape.types)):
        spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    paths = [glob(file.file.location) for file in files]
    if shape.drift is not None:
        return _drifted_rows(spark, source, shape, paths)
    by_name = dict(zip(shape.names, shape.types, strict=True))
    wanted = [fit.datatype(column) for column in source.columns]
    how: list[TypeFit] = []
    for column, type_ in zip(source.columns, wanted, strict=True):
        how.append(column_fit(by_name.get(column.name), column, type_, source.timestamp_format))
    schema = T.StructType(
        [
            T.StructField(column.name, entry.stored)
            for column, entry in zip(source.columns, how, strict=True)
            if entry.stored is not None
        ]
    )
    stored = _files(spark, schema, paths)
    return declared_values(stored, source.columns, how, F.col("_metadata.file_path"))


def _files(spark: SparkSession, schema: T.StructType, paths: Sequence[str]) -> DataFrame:
    # Old dates are of the Gregorian calendar, as the format defines. Files of an old Spark that
    # wrote Julian ones are marked; without this setting Spark refuses all files that are not.
    as_written = dict.fromkeys(("datetimeRebaseMode", "int96RebaseMode"), "CORRECTED")
    return spark.read.schema(schema).options(**as_written).parquet(*paths)


def declared_values(
    stored: DataFrame, columns: Sequence[Column], how: Sequence[TypeFit], path: SparkColumn
) -> DataFrame:
    """Stored columns as the declared ones, with the problems of those that are checked."""
    values = stored.select(
        *(
            (
                entry.convert(column_of(column.name))
                if entry.stored is not None
                else entry.convert(F.lit(None))
            ).alias(f"_value{at}")
            for at, (column, entry) in enumerate(zip(columns, how, strict=True))
        ),
        path.alias(fit.PATH),
        F.to_json(F.struct(*map(column_of, stored.columns))).alias(fit.RAW),
        fit.misfit_problem(
            columns,
            {
                at: column_of(column.name).isNotNull()
                & entry.convert(column_of(column.name)).isNull()
                for at, (column, entry) in enumerate(zip(columns, how, strict=True))
                if entry.checked
            },
        ).alias(fit.PROBLEM),
    )
    never = not any(entry.checked for entry in how)
    return values.select(
        *(
            (
                F.col(f"_value{at}")
                if never
                else F.when(F.col(fit.PROBLEM).isNull(), F.col(f"_value{at}"))
            ).alias(column.name)
            for at, column in enumerate(columns)
        ),
        fit.PATH,
        fit.RAW,
        fit.PROBLEM,
    )


def _drifted_rows(
    spark: SparkSession, source: Source, shape: ParquetShape, paths: list[str]
) -> DataFrame:
    """All rows of files that drifted, as text of the columns that Spark can read."""
    lower = [name.lower() for name in shape.names]
    schema = T.StructType()
    for name, type_ in zip(shape.names, shape.types, strict=True):
        stored = readable_type(type_)
        if stored is not None and lower.count(name.lower()) == 1:
            schema = schema.add(name, stored)
    stored_rows = _files(spark, schema, paths)
    raw = F.to_json(F.struct(*map(column_of, stored_rows.columns)))
    how = F.lit(f"drift: {shape.drift.how if shape.drift else ''}")
    return fit.unusable_rows(stored_rows, source.columns, F.col("_metadata.file_path"), raw, how)


def _shape(file: PresentFile, source: Source) -> ParquetShape:
    try:
        footer = parquet.ParquetFile(file.file.arrow_file())
    except (OSError, pa.ArrowException) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error).splitlines()[0]) from error
    with footer:
        _refuse_unread(file, footer)
        schema = footer.schema_arrow
        old = int96.columns(footer)
        types = tuple(map(_physical, old, schema))
    declared = {column.name for column in source.columns}
    suspects = [name for name, is_ in zip(schema.names, old, strict=True) if is_]
    finer = int96.finer(file.file, [name for name in suspects if name in declared])
    others = [f"column {name} has parts of a microsecond" for name in finer]
    drift = drift_of(source, file, tuple(schema.names), types, others)
    return ParquetShape(tuple(schema.names), types, drift=drift)


def drift_of(
    source: Source,
    file: PresentFile,
    names: tuple[str, ...],
    types: tuple[pa.DataType, ...],
    others: Sequence[str] = (),
) -> Drifted | None:
    """How stored columns differ from the declared ones."""
    by_name = dict(zip(names, types, strict=True))
    parts = [
        f"column {column.name} is {by_name[column.name]}, declared {column.type}"
        for column in source.columns
        if column.name in by_name
        and type_fit(by_name[column.name], fit.datatype(column), source.timestamp_format) is None
    ]
    parts += others
    parts += [f"column {name} is there twice" for name in names if names.count(name) > 1]
    return differences(source, file, names, list(dict.fromkeys(parts)))


def column_fit(
    found: pa.DataType | None, column: Column, wanted: T.DataType, timestamp_format: str
) -> TypeFit:
    """How a stored column is type_fit for a declared one; one that is not there is its default."""
    if found is None:
        value = fit.fitted(F.lit(column.default).cast("string"), wanted, timestamp_format)
        return TypeFit(None, lambda _: value)
    entry = type_fit(found, wanted, timestamp_format)
    assert entry is not None, "a type that does not fit is drift"
    return entry


_PACKINGS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
"""The compressions of Parquet pages that Spark reads."""


def _refuse_unread(file: PresentFile, footer: parquet.ParquetFile) -> None:
    """Raise ``errors.unreadable_file`` where Spark cannot read what this process can."""
    found = footer.metadata
    if not found.num_columns:
        raise run_errors.unreadable_file(path=file.path, why="it has no columns")
    packings = {
        found.row_group(group).column(at).compression
        for group in range(found.num_row_groups)
        for at in range(found.num_columns)
    }
    for name in sorted(packings - _PACKINGS):
        raise run_errors.unreadable_file(
            path=file.path, why=f"it is compressed with {name.lower()}, which Spark does not read"
        )


def _physical(int96: bool, column: pa.Field) -> pa.DataType:
    # Spark reads the old type as an instant, which is what its writer meant.
    return pa.timestamp("us", "UTC") if int96 else column.type


def _is_nanos(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ns")
