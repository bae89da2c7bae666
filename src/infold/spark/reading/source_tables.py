"""What is the same for sources that are tables, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import types as T

from infold.core.model import Column, Drift, NewColumns, Source
from infold.lake.reading.source_file import SourceFile
from infold.messages import run_errors
from infold.spark.reading.drift import PresentFile
from infold.spark.reading.stored_columns import drift_of
from infold.spark.sql_types import sql_type


def check_table_readable(_source: Source, _file: PresentFile) -> None:
    """See ``FormatReader``; a table whose files are damaged is an error of its owner's."""


def as_a_whole(source: Source) -> Source:
    """The source with one answer for all of its files, as none of a table's can be set aside."""
    return replace(source, on_drift=Drift.ERROR, on_new_columns=NewColumns.IGNORE)


def refuse_drift(source: Source, place: str, types: Mapping[str, pa.DataType]) -> None:
    """Raise ``table_drift`` where the columns of the table at ``place`` are not those declared."""
    itself = PresentFile(0, place, SourceFile(place, 0))
    drift = drift_of(as_a_whole(source), itself, tuple(types), tuple(types.values()))
    if drift is not None:
        raise run_errors.table_drift(source=source.name, place=place, how=drift.how)


def columns_of(schema: T.StructType) -> tuple[Column, ...]:
    """The columns of a table, as a source would declare them."""
    return tuple(Column(one.name, sql_type(one.dataType)) for one in schema)
