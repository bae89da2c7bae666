"""Rows with columns of other types, whole or in a part."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.spark.content import column


def retyped(rows: DataFrame, parts: Mapping[tuple[str, ...], T.DataType]) -> DataFrame:
    """The rows with some columns, or parts of columns (``("tags", "element")``), of new types."""
    columns = []
    for field in rows.schema:
        name = field.name.lower()
        inner = {path[1:]: type_ for path, type_ in parts.items() if path[0].lower() == name}
        own = column(field.name)
        if inner:
            own = own.cast(_with_parts(field.dataType, (), inner)).alias(field.name)
        columns.append(own)
    return rows.select(*columns)


def _with_parts(
    type_: T.DataType, at: tuple[str, ...], new: Mapping[tuple[str, ...], T.DataType]
) -> T.DataType:
    """A type with some parts of other types."""
    if at in new:
        return new[at]
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(_with_parts(type_.elementType, (*at, "element"), new))
    if isinstance(type_, T.MapType):
        value = _with_parts(type_.valueType, (*at, "value"), new)
        return T.MapType(type_.keyType, value)
    if isinstance(type_, T.StructType):
        fields = [
            T.StructField(one.name, _with_parts(one.dataType, (*at, one.name), new))
            for one in type_
        ]
        return T.StructType(fields)
    return type_
