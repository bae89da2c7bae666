"""Avro: headers are read in this process, rows by Spark, files of one schema together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading import avro_files
from infold.lake.reading.avro_types import arrow_type, is_long_decimal
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading.avro_decimals import text_of
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.source_jars import AVRO
from infold.spark.reading.stored_columns import AsText, StoredShape, drift_of, stored_rows

_WANTED = "an Avro file"
_PACKINGS = frozenset({"null", "deflate", "snappy", "bzip2", "xz", "zstandard"})
"""The compressions of Avro blocks that Spark reads."""

columns = declared_columns


def check_readable(source: Source, file: PresentFile) -> None:
    """See ``FormatReader``."""
    _shape(file, source)


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, AvroShape]:
    """See ``FormatReader``: by the headers."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: AvroShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    paths = [glob(file.file.location) for file in files]
    return stored_rows(source, shape, partial(_files, spark, source, paths, shape), _DECIMALS)


_DECIMALS = AsText(pa.types.is_decimal, lambda text: text)


@dataclass(frozen=True, slots=True)
class AvroShape(StoredShape):
    """
    The columns of a file, and its schema where Spark reads it by another one.

    That is where a decimal has more digits than Spark's: it opens no such file, but by a schema in
    which the decimals are bytes.
    """

    schema: str


def _files(
    spark: SparkSession,
    source: Source,
    paths: list[str],
    shape: AvroShape,
    schema: T.StructType,
) -> DataFrame:
    types = dict(zip(shape.names, shape.types, strict=True))
    scales = {name: type_.scale for name, type_ in types.items() if pa.types.is_decimal(type_)}
    binary = [
        T.StructField(one.name, T.BinaryType()) if one.name in scales else one for one in schema
    ]
    found = _stored(spark, source, paths, shape.schema, T.StructType(binary))
    if not scales.keys() & {*schema.names}:
        return found
    texts = {name: text_of(column_of(name), scale) for name, scale in scales.items()}
    return found.select(*(texts.get(name, column_of(name)).alias(name) for name in schema.names))


def _stored(
    spark: SparkSession, source: Source, paths: list[str], by: str, schema: T.StructType
) -> DataFrame:
    # Old dates are of the Gregorian calendar, as in Parquet.
    reader = spark.read.format("avro").schema(schema).options(datetimeRebaseMode="CORRECTED")
    if by:
        reader = reader.option("avroSchema", by)
    try:
        return reader.load(paths)
    except AnalysisException as error:
        if "avro" in str(error).lower() and "data source" in str(error).lower():
            raise run_errors.avro_jar_missing(source=source.name, jar=AVRO.coordinates) from error
        raise


def _shape(file: PresentFile, source: Source) -> AvroShape:
    try:
        schema, packing = avro_files.header(file.file)
        names = tuple(field["name"] for field in schema["fields"])
        types = tuple(arrow_type(field["type"], is_column=True) for field in schema["fields"])
        own = any(map(is_long_decimal, schema["fields"]))
        by = avro_files.without_decimals(file.file) if own else ""
    except OSError as error:
        raise unreadable(file, error, _WANTED) from error
    if not names:
        raise run_errors.unreadable_file(path=file.path, why="it has no columns")
    if packing not in _PACKINGS:
        why = f"it is compressed with {packing}, which Spark does not read"
        raise run_errors.unreadable_file(path=file.path, why=why)
    return AvroShape(names, types, drift=drift_of(source, file, names, types), schema=by)
