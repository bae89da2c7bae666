"""Types of columns, as queries give them and as tables have them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types as T


def contains_type(type_: T.DataType, *sought: type[T.DataType]) -> bool:
    """Whether a type is one of some, or has one in it."""
    found = []

    def look(part: T.DataType) -> T.DataType:
        found.append(isinstance(part, sought))
        return part

    stored_type(type_, look)
    return any(found)


def same_type(type_: T.DataType) -> T.DataType:
    """The type as it is, where no part of it is to be changed."""
    return type_


def _widened(type_: T.DataType) -> T.DataType:
    return T.IntegerType() if isinstance(type_, T.ByteType | T.ShortType) else type_


def stored_type(type_: T.DataType, of: Callable[[T.DataType], T.DataType] = _widened) -> T.DataType:
    """A type as it is stored: every value may be NULL, and small integers are ``int``."""
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(stored_type(type_.elementType, of))
    if isinstance(type_, T.MapType):
        return T.MapType(stored_type(type_.keyType, of), stored_type(type_.valueType, of))
    if isinstance(type_, T.StructType):
        return T.StructType(
            [T.StructField(field.name, stored_type(field.dataType, of)) for field in type_]
        )
    return of(type_)
