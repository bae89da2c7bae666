"""Parquet: footers are read in this process, rows by Spark, files of one schema together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.lake.chosen_rows import plain_type
from infold.lake.reading.parquet_files import finer_int96, int96_columns
from infold.messages import run_errors
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.stored_columns import Read, StoredShape, drift_of, stored_rows

_WANTED = "a Parquet file"

columns = declared_columns


def check_readable(source: Source, file: PresentFile) -> None:
    """Raise ``errors.unreadable_file`` where its footer cannot be read."""
    _shape(file, source)


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, StoredShape]:
    """The shapes of files, by their footers; no row is read."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: StoredShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The rows of files of one shape, read by Spark; all of them as text where they drift."""
    return stored_rows(source, shape, reader(spark, shape, files))


def reader(spark: SparkSession, shape: StoredShape, files: Sequence[PresentFile]) -> Read:
    """What reads columns of files of one shape."""
    if any(map(_is_nanos, shape.types)):
        spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
    return partial(_files, spark, [glob(file.file.location) for file in files])


def _files(spark: SparkSession, paths: Sequence[str], schema: T.StructType) -> DataFrame:
    # Old dates are of the Gregorian calendar, as the format defines. Files of an old Spark that
    # wrote Julian ones are marked; without this setting Spark refuses all files that are not.
    as_written = dict.fromkeys(("datetimeRebaseMode", "int96RebaseMode"), "CORRECTED")
    return spark.read.schema(schema).options(**as_written).parquet(*paths)


def _shape(file: PresentFile, source: Source) -> StoredShape:
    footer = read_footer(file)
    names = tuple(footer.fields.names)
    others = too_fine(file, footer, {column.name for column in source.columns})
    drift = drift_of(source, file, names, footer.types, others)
    return StoredShape(names, footer.types, drift=drift, rows=footer.rows)


@dataclass(frozen=True, slots=True)
class Footer:
    """
    What a file says of its columns.

    ``types`` are those that Spark reads, ``old`` the columns of 96-bit timestamps.
    """

    fields: pa.Schema
    types: tuple[pa.DataType, ...]
    old: tuple[str, ...]
    rows: int


def read_footer(file: PresentFile) -> Footer:
    """The footer of a file. Raises ``errors.unreadable_file``, also for what Spark cannot read."""
    try:
        footer = parquet.ParquetFile(file.file.arrow_file())
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error, _WANTED) from error
    with footer:
        _refuse_unread(file, footer)
        schema, old = footer.schema_arrow, int96_columns(footer)
        return Footer(
            fields=schema,
            types=tuple(map(_physical, old, schema)),
            old=tuple(name for name, is_ in zip(schema.names, old, strict=True) if is_),
            rows=footer.metadata.num_rows,
        )


def too_fine(file: PresentFile, footer: Footer, selected: Collection[str]) -> list[str]:
    """How columns of a file drift that have more digits of a second than Spark keeps."""
    finer = finer_int96(file.file, [name for name in footer.old if name in selected])
    return [f"column {name} has parts of a microsecond" for name in finer]


_FIELD_ID = b"PARQUET:field_id"


def names_by_id(fields: Iterable[pa.Field]) -> Mapping[int, str] | None:
    """
    What columns, or fields of a struct, are called, by field ids.

    None without any, or with equal ones.
    """
    ids_and_names = [
        (int(field.metadata[_FIELD_ID]), field.name)
        for field in fields
        if field.metadata and _FIELD_ID in field.metadata
    ]
    names = dict(ids_and_names)
    return names if names and len(names) == len(ids_and_names) else None


_PACKINGS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"})
"""The compressions of Parquet pages that Spark reads."""


def _refuse_unread(file: PresentFile, footer: parquet.ParquetFile) -> None:
    """Raise ``errors.unreadable_file`` where Spark cannot read what this process can."""
    metadata = footer.metadata
    if not metadata.num_columns:
        raise run_errors.unreadable_file(path=file.path, why="it has no columns")
    packings = {
        metadata.row_group(group).column(at).compression
        for group in range(metadata.num_row_groups)
        for at in range(metadata.num_columns)
    }
    for name in sorted(packings - _PACKINGS):
        raise run_errors.unreadable_file(
            path=file.path, why=f"it is compressed with {name.lower()}, which Spark does not read"
        )


def _physical(is_int96: bool, column: pa.Field) -> pa.DataType:
    # Spark reads the old type as an instant, which is what its writer meant.
    return pa.timestamp("us", "UTC") if is_int96 else plain_type(column.type)


def _is_nanos(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ns")
