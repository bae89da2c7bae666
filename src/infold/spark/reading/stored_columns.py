"""
Files and tables whose columns have types of their own: as what is declared, or how they drift.

A frame of *stored* rows has the columns as they are stored, and Spark's ``_metadata``; from it
comes the frame that ``reading`` describes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Column, Drift, NewColumns, Source
from infold.lake.reading.source_file import SourceFile
from infold.messages import run_errors
from infold.spark.content import column as column_of
from infold.spark.reading import fit
from infold.spark.reading.arrow_types import TypeFit, readable_type, type_fit
from infold.spark.reading.drift import Drifted, FileShape, PresentFile, differences
from infold.spark.stored_types import sql_type


@dataclass(frozen=True, slots=True)
class StoredShape(FileShape):
    """The columns of a file with their types."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]


Read = Callable[[T.StructType], DataFrame]


@dataclass(frozen=True, slots=True)
class AsText:
    """
    Times that are to be read as text, by their types, and which texts of them say what they are.

    The texts are as ISO 8601 has them; ``exact`` gives NULL for one that may be wrong.
    """

    types: Callable[[pa.DataType], bool]
    exact: Callable[[SparkColumn], SparkColumn]


NO_TEXT = AsText(lambda _: False, lambda value: value)


def stored_rows(
    source: Source, shape: StoredShape, read: Read, as_text: AsText = NO_TEXT
) -> DataFrame:
    """The rows of files of one shape; ``read`` gives the stored ones of some columns."""
    if shape.drift is not None:
        return _drifted_rows(source, shape, read, as_text)
    by_name = dict(zip(shape.names, shape.types, strict=True))
    fits: list[TypeFit] = []
    for column in source.columns:
        declared_type, stored_type = fit.datatype(column), by_name.get(column.name)
        if stored_type is not None and as_text.types(stored_type):
            fits.append(_of_text(declared_type, as_text))
        else:
            fits.append(column_fit(stored_type, column, declared_type, source.timestamp_format))
    schema = T.StructType(
        [
            T.StructField(column.name, entry.stored)
            for column, entry in zip(source.columns, fits, strict=True)
            if entry.stored is not None
        ]
    )
    return declared_values(read(schema), source.columns, fits, F.col("_metadata.file_path"))


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


def _of_text(type_: T.DataType, as_text: AsText) -> TypeFit:
    def convert(value: SparkColumn) -> SparkColumn:
        return fit.fitted(as_text.exact(value), type_, "iso")

    return TypeFit(T.StringType(), convert, checked=True)


def _drifted_rows(source: Source, shape: StoredShape, read: Read, as_text: AsText) -> DataFrame:
    """All rows of files that drifted, as text of the columns that Spark can read."""
    lower = [name.lower() for name in shape.names]
    schema = T.StructType()
    for name, type_ in zip(shape.names, shape.types, strict=True):
        text_type = T.StringType() if as_text.types(type_) else readable_type(type_)
        if text_type is not None and lower.count(name.lower()) == 1:
            schema = schema.add(name, text_type)
    stored = read(schema)
    raw = F.to_json(F.struct(*map(column_of, stored.columns)))
    how = F.lit(f"drift: {shape.drift.how if shape.drift else ''}")
    return fit.unusable_rows(stored, source.columns, F.col("_metadata.file_path"), raw, how)


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
    arrow: pa.DataType | None, column: Column, wanted: T.DataType, timestamp_format: str
) -> TypeFit:
    """How a stored column is type_fit for a declared one; one that is not there is its default."""
    if arrow is None:
        value = fit.fitted(F.lit(column.default).cast("string"), wanted, timestamp_format)
        return TypeFit(None, lambda _: value)
    entry = type_fit(arrow, wanted, timestamp_format)
    assert entry is not None, "a type that does not fit is drift"
    return entry


def check_table_readable(_source: Source, _file: PresentFile) -> None:
    """Nothing is checked: damaged files of a table are an error, and are not set aside."""


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
    return tuple(Column(field.name, sql_type(field.dataType)) for field in schema)
