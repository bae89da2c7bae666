"""The columns of a table: the types are those of every storage, whatever Delta could store."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.spark.content import column
from infold.spark.stored_types import as_stored


def in_types_of_tables(rows: DataFrame) -> DataFrame:
    """Rows with ``byte`` and ``short`` as ``int``, also inside of other types."""
    if all(as_stored(field.dataType) == field.dataType for field in rows.schema):
        return rows
    return rows.select(
        *(
            column(field.name)
            if as_stored(field.dataType) == field.dataType
            else column(field.name).cast(as_stored(field.dataType)).alias(field.name)
            for field in rows.schema
        )
    )


_USUAL = 32
"""Of so many columns, the first ones, Delta keeps the least and the greatest value in a file."""


def columns_with_statistics(schema: T.StructType, time: str | None) -> str:
    """Of how many columns a table has statistics: files are skipped by those of its time."""
    before = 0
    for field in schema:
        before += 1 + len([*names_in(field.dataType)])
        if field.name == time:
            return str(max(_USUAL, before))
    return str(_USUAL)


def names_in(type_: T.DataType) -> Iterator[str]:
    """The names of all fields of a type, whatever they are inside of."""
    if isinstance(type_, T.StructType):
        for field in type_:
            yield field.name
            yield from names_in(field.dataType)
    elif isinstance(type_, T.ArrayType):
        yield from names_in(type_.elementType)
    elif isinstance(type_, T.MapType):
        yield from names_in(type_.keyType)
        yield from names_in(type_.valueType)
