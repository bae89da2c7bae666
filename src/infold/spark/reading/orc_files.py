"""
ORC: footers are read in this process, rows by Spark, files of one schema together.

ORC has nanoseconds, which Spark cuts off silently. So times are read as text, which has all of
them, and one that is no whole microsecond does not fit. A time without a zone is what the clock of
its writer showed, and read as UTC. Of a file that has a time with a zone Spark reads nothing.

Fractions of a second before 1970 are written in several ways: what Arrow writes comes out a second
earlier here. So these do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyarrow import orc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading.arrow_types import readable_type
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.stored_columns import AsText, StoredShape, drift_of, stored_rows

_WANTED = "an ORC file"

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
    paths = [glob(file.file.location) for file in files]
    return stored_rows(source, shape, partial(_files, spark, paths, shape), _TIMES)


def _exact(text: Column) -> Column:
    early = (text < F.lit("1970")) & text.rlike(r"\.[0-9]*[1-9]")
    return F.when(~early, text)


_OF_A_TRANSACTION = [
    "operation",
    "originalTransaction",
    "bucket",
    "rowId",
    "currentTransaction",
    "row",
]
"""The columns by which the library of ORC knows a file of Hive's transactions."""

_TIMES = AsText(pa.types.is_timestamp, _exact)


def _files(
    spark: SparkSession, paths: list[str], shape: StoredShape, schema: T.StructType
) -> DataFrame:
    if not all(name.startswith("_col") for name in shape.names):
        return spark.read.schema(schema).orc(paths)
    # Columns with such names, as old Hive wrote them, Spark takes by their places: all of these.
    schema_read = {field.name: field.dataType for field in schema}
    places = T.StructType()
    for at, (name, type_) in enumerate(zip(shape.names, shape.types, strict=True)):
        if name in schema_read:
            places = places.add(name, schema_read[name])
        else:
            places = places.add(f"_unread{at}", _any_of(type_))
    read = spark.read.schema(places).option("orc.force.positional.evolution", "true")
    return read.orc(paths).select(*map(column_of, schema_read))


def _any_of(type_found: pa.DataType) -> T.DataType:
    """A type that the file's can be read as, for a column that nobody looks at."""
    if pa.types.is_timestamp(type_found):
        return T.StringType()
    if pa.types.is_map(type_found):
        return T.MapType(_any_of(type_found.key_type), _any_of(type_found.item_type))
    if pa.types.is_list(type_found):
        return T.ArrayType(_any_of(type_found.value_type))
    if pa.types.is_struct(type_found):
        fields = [type_found.field(at) for at in range(type_found.num_fields)]
        return T.StructType([T.StructField(field.name, _any_of(field.type)) for field in fields])
    return readable_type(type_found) or T.StringType()


def _shape(file: PresentFile, source: Source) -> StoredShape:
    try:
        opened = orc.ORCFile(file.file.arrow_file())
        schema, rows = opened.schema, opened.nrows
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error, _WANTED) from error
    _refuse_unread(file, schema)
    names, types = tuple(schema.names), tuple(column.type for column in schema)
    return StoredShape(names, types, drift=drift_of(source, file, names, types), rows=rows)


def _refuse_unread(file: PresentFile, schema: pa.Schema) -> None:
    """Raise ``errors.unreadable_file`` where Spark cannot read what this process can."""
    why = "" if schema.names else "it has no columns"
    if schema.names == _OF_A_TRANSACTION:
        why = (
            "it is of a transactional table of Hive, in which a row is a change, and its columns"
            " are those of that: export the table"
        )
    for column in schema:
        if any("`" in name for name in _names_in(column)):
            why = (
                f"column {column.name} has a backtick in its name, or in that of a field, and the"
                " library of ORC takes it for the end of the name"
            )
        if _has_zone(column.type):
            why = f"column {column.name} has times with a time zone, and Spark reads no such file"
    if why:
        raise run_errors.unreadable_file(path=file.path, why=why)


def _names_in(field: pa.Field) -> Iterator[str]:
    """The names of a column and of all fields in it."""
    yield field.name
    for at in range(field.type.num_fields):
        yield from _names_in(field.type.field(at))


def _has_zone(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return type_.tz is not None
    return any(_has_zone(type_.field(at).type) for at in range(type_.num_fields))
