"""The types that tables have for values of each type."""

from __future__ import annotations

from pyspark.sql import types as T


def as_stored(type_: T.DataType) -> T.DataType:
    """The type of a table's column into which values of a type are written."""
    if isinstance(type_, T.ByteType | T.ShortType):
        return T.IntegerType()
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(as_stored(type_.elementType), type_.containsNull)
    if isinstance(type_, T.MapType):
        return T.MapType(as_stored(type_.keyType), as_stored(type_.valueType))
    if isinstance(type_, T.StructType):
        inner = (T.StructField(one.name, as_stored(one.dataType)) for one in type_.fields)
        return T.StructType(list(inner))
    return type_
