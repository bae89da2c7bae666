"""Avro: headers are read in this process, rows by Spark, files of one schema together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading import avro_files
from infold.lake.reading.avro_types import arrow_type
from infold.messages import run_errors
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.source_jars import AVRO
from infold.spark.reading.stored_columns import StoredShape, drift_of, stored_rows

_WANTED = "an Avro file"
_PACKINGS = frozenset({"null", "deflate", "snappy", "bzip2", "xz", "zstandard"})
"""The compressions of Avro blocks that Spark reads."""

columns = declared_columns


def check_readable(_: Source, file: PresentFile) -> None:
    """See ``FormatReader``."""
    try:
        avro_files.read_through(file.file)
    except OSError as error:
        raise unreadable(file, error, _WANTED) from error


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, StoredShape]:
    """See ``FormatReader``: by the headers."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: StoredShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    paths = [glob(file.file.location) for file in files]
    return stored_rows(source, shape, partial(_files, spark, source, paths))


def _files(
    spark: SparkSession, source: Source, paths: list[str], schema: T.StructType
) -> DataFrame:
    # Old dates are of the Gregorian calendar, as in Parquet.
    reader = spark.read.format("avro").schema(schema).options(datetimeRebaseMode="CORRECTED")
    try:
        return reader.load(paths)
    except AnalysisException as error:
        if "avro" in str(error).lower() and "data source" in str(error).lower():
            raise run_errors.avro_jar_missing(source=source.name, jar=AVRO.coordinates) from error
        raise


def _shape(file: PresentFile, source: Source) -> StoredShape:
    try:
        schema, packing = avro_files.header(file.file)
        names = tuple(field["name"] for field in schema["fields"])
        types = tuple(arrow_type(field["type"]) for field in schema["fields"])
    except OSError as error:
        raise unreadable(file, error, _WANTED) from error
    if not names:
        raise run_errors.unreadable_file(path=file.path, why="it has no columns")
    if packing not in _PACKINGS:
        why = f"it is compressed with {packing}, which Spark does not read"
        raise run_errors.unreadable_file(path=file.path, why=why)
    return StoredShape(names, types, drift=drift_of(source, file, names, types))
