"""
ORC: footers are read in this process, rows by Spark, files of one schema together.

ORC has nanoseconds, which Spark cuts off silently. So times are read as text, which has all of
them, and one that is no whole microsecond does not fit. A time without a zone is what the clock of
its writer showed, and read as UTC. Of a file that has a time with a zone Spark reads nothing.

Fractions of a second before 1970 are written in several ways: what Arrow writes comes out a second
earlier here. So these do not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyarrow import orc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.spark.reading.drift import PresentFile, declared_columns, unreadable
from infold.spark.reading.paths import glob
from infold.spark.reading.stored_columns import AsText, StoredShape, drift_of, stored_rows

_WANTED = "an ORC file"

columns = declared_columns


def check_readable(_: Source, file: PresentFile) -> None:
    """See ``FormatReader``."""
    try:
        opened = orc.ORCFile(file.file.arrow_file())
        _refuse_unread(file, opened.schema)
        for stripe in range(opened.nstripes):
            opened.read_stripe(stripe)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file, error, _WANTED) from error


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, StoredShape]:
    """See ``FormatReader``: by the footers."""
    return {file.id: _shape(file, source) for file in files}


def rows(
    spark: SparkSession, source: Source, shape: StoredShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    paths = [glob(file.file.location) for file in files]
    return stored_rows(source, shape, partial(_files, spark, paths), _TIMES)


def _exact(text: Column) -> Column:
    early = (text < F.lit("1970")) & text.rlike(r"\.[0-9]*[1-9]")
    return F.when(~early, text)


_TIMES = AsText(pa.types.is_timestamp, _exact)


def _files(spark: SparkSession, paths: list[str], schema: T.StructType) -> DataFrame:
    return spark.read.schema(schema).orc(paths)


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
    for column in schema:
        if _has_zone(column.type):
            why = f"column {column.name} has times with a time zone, and Spark reads no such file"
    if why:
        raise run_errors.unreadable_file(path=file.path, why=why)


def _has_zone(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return type_.tz is not None
    return any(_has_zone(type_.field(at).type) for at in range(type_.num_fields))
