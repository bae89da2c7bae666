"""The types that tables have for values of each type."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import types as T

from infold.core.queries import quoted
from infold.messages import apply_errors

FLOATING = (T.FloatType, T.DoubleType)
"""Types whose zeros have signs."""


def as_stored(type_: T.DataType) -> T.DataType:
    """The type of a table's column into which values of a type are written."""
    if isinstance(type_, T.ByteType | T.ShortType):
        return T.IntegerType()
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(as_stored(type_.elementType), type_.containsNull)
    if isinstance(type_, T.MapType):
        return T.MapType(as_stored(type_.keyType), as_stored(type_.valueType))
    if isinstance(type_, T.StructType):
        inner = (T.StructField(field.name, as_stored(field.dataType)) for field in type_.fields)
        return T.StructType(list(inner))
    return type_


def sql_type(of: T.DataType) -> str:
    """The type in SQL: Spark's own short text quotes no name of a field, and may be none."""
    if isinstance(of, T.ArrayType):
        return f"array<{sql_type(of.elementType)}>"
    if isinstance(of, T.MapType):
        return f"map<{sql_type(of.keyType)},{sql_type(of.valueType)}>"
    if isinstance(of, T.StructType):
        return (
            f"struct<{','.join(f'{_name(field.name)}:{sql_type(field.dataType)}' for field in of)}>"
        )
    return of.simpleString()


def _name(name: str) -> str:
    """A plain name as it is, so that texts of types are those of other versions."""
    return name if name.isascii() and name.isidentifier() else quoted(name)


def contains_type(type_: T.DataType, *sought: type[T.DataType]) -> bool:
    """Whether a type is one of some, or values of it have values of one of them in them."""
    if isinstance(type_, sought):
        return True
    if isinstance(type_, T.MapType):
        return any(contains_type(part, *sought) for part in (type_.keyType, type_.valueType))
    if isinstance(type_, T.ArrayType):
        return contains_type(type_.elementType, *sought)
    return isinstance(type_, T.StructType) and any(
        contains_type(field.dataType, *sought) for field in type_
    )


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


def refuse_other_type(model: str, stored: T.StructField, given: T.DataType) -> None:
    """
    Raise ``other_type_forward_only`` where a column that stays is given another type.

    The table keeps cells that nobody computes again.
    """
    if stored_type(given) != stored_type(stored.dataType):
        raise apply_errors.other_type_forward_only(
            column=stored.name,
            model=model,
            stored=stored.dataType.simpleString(),
            given=given.simpleString(),
        )
