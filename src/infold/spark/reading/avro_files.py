"""Avro: headers are read in this process, rows by Spark, files of one schema together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.reading import avro_files
from infold.lake.reading.avro_types import arrow_type, is_long_decimal
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.stored_columns import AsText, StoredShape, drift_of, stored_rows
from infold.spark.tables.catalog import Jar

_WANTED = "an Avro file"
_PACKINGS = frozenset({"null", "deflate", "snappy", "bzip2", "xz", "zstandard"})
"""The compressions of Avro blocks that Spark reads."""

columns = declared_columns


def check_readable(source: Source, file: PresentFile) -> None:
    """Raise ``errors.unreadable_file`` where its header cannot be read."""
    _shape(file, source)


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, AvroShape]:
    """The shapes of files, by their headers; no row is read."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: AvroShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The rows of files of one shape, read by Spark; all of them as text where they drift."""
    paths = [glob(file.file.location) for file in files]
    return stored_rows(source, shape, partial(_read_files, spark, source, paths, shape), _DECIMALS)


_DECIMALS = AsText(pa.types.is_decimal, lambda text: text)


@dataclass(frozen=True, slots=True)
class AvroShape(StoredShape):
    """
    The columns of a file, and its schema where Spark reads it by another one.

    That is where a decimal has more digits than Spark's: it opens no such file, but by a schema in
    which the decimals are bytes.
    """

    schema: str


def _read_files(
    spark: SparkSession,
    source: Source,
    paths: list[str],
    shape: AvroShape,
    schema: T.StructType,
) -> DataFrame:
    types = dict(zip(shape.names, shape.types, strict=True))
    scales = {name: type_.scale for name, type_ in types.items() if pa.types.is_decimal(type_)}
    binary = [
        T.StructField(field.name, T.BinaryType()) if field.name in scales else field
        for field in schema
    ]
    stored = _stored(spark, source, paths, shape.schema, T.StructType(binary))
    if not scales.keys() & {*schema.names}:
        return stored
    texts = {name: text_of(column_of(name), scale) for name, scale in scales.items()}
    return stored.select(*(texts.get(name, column_of(name)).alias(name) for name in schema.names))


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
        has_long_decimal = any(map(is_long_decimal, schema["fields"]))
        by = avro_files.without_decimals(file.file) if has_long_decimal else ""
    except OSError as error:
        raise unreadable(file, error, _WANTED) from error
    if not names:
        raise run_errors.unreadable_file(path=file.path, why="it has no columns")
    if packing not in _PACKINGS:
        why = f"it is compressed with {packing}, which Spark does not read"
        raise run_errors.unreadable_file(path=file.path, why=why)
    return AvroShape(names, types, drift=drift_of(source, file, names, types), schema=by)


# They are whole numbers of any length beside a scale, and the precision of a file is its writer's
# word. Spark reads none with more than 38 digits, fails at a value beyond the precision, and of one
# that is far beyond it takes the last digits. So it reads bytes here, and what they say is a text,
# which fits the declared type or does not.

_BYTES = 16
"""More than a decimal of 38 digits has."""
_DIGITS = 2 * _BYTES
_HALF = _BYTES  # of the hexadecimal digits


def text_of(unscaled: Column, scale: int) -> Column:
    """The number that bytes are: two's complement, the highest first; in hex where it is longer."""
    digits = F.hex(unscaled)
    negative = F.substring(digits, 1, 1).rlike("[89A-F]")
    fill = F.when(negative, F.lit("F")).otherwise(F.lit("0"))
    filled = F.concat(F.repeat(fill, F.lit(_DIGITS)), digits)
    last = F.right(filled, F.lit(_DIGITS))
    before = F.substring(filled, 1, F.length(filled) - F.lit(_DIGITS))
    fits = (
        (F.length(digits) > 0)
        & (F.replace(before, fill, F.lit("")) == F.lit(""))
        & (F.substring(last, 1, 1).rlike("[89A-F]") == negative)
    )
    high, low = (
        F.conv(half, 16, 10).cast("decimal(20,0)")
        for half in (F.substring(last, 1, _HALF), F.substring(last, _HALF + 1, _HALF))
    )
    turn = F.lit(str(2**64)).cast("decimal(20,0)")
    # Of both parts the sign of the whole, so that none of 38 digits overflows on the way.
    turns = F.when(negative, high - turn + F.lit(1)).otherwise(high)
    rest = F.when(negative, low - turn).otherwise(low)
    whole = F.try_add(F.try_multiply(turns, turn), rest)
    return F.coalesce(F.when(fits, _with_point(whole, scale)), F.concat(F.lit("0x"), digits))


def _with_point(whole: Column, scale: int) -> Column:
    """A whole number as a text with so many of its digits behind the point."""
    if not scale:
        return whole.cast("string")
    # Not its `abs`, which Spark rounds to 34 digits.
    digits = F.replace(whole.cast("string"), F.lit("-"), F.lit(""))
    digits = F.lpad(digits, F.greatest(F.length(digits), F.lit(scale + 1)), F.lit("0"))
    point = F.length(digits) - F.lit(scale)
    sign = F.when(whole < 0, F.lit("-")).otherwise(F.lit(""))
    return F.concat(
        sign, F.substring(digits, F.lit(1), point), F.lit("."), F.right(digits, F.lit(scale))
    )


AVRO = Jar(
    "org.apache.spark",
    "spark-avro_2.13",
    "4.1.1",
    "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
)
"""Spark's own reader of Avro, 0.1 MB. It fits all of Spark 4.1."""


def source_jars(project: Project) -> tuple[Jar, ...]:
    """Those of the formats that a project has sources of."""
    return (AVRO,) if any(each.format is Format.AVRO for each in project.sources.values()) else ()
