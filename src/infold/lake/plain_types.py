"""
Arrow's types without the ways to hold values: views, long offsets and dictionaries.

A Parquet file can name them beside its own types (delta-rs does). What it has is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, each of its plain type."""
    import pyarrow as pa

    return pa.schema([field.with_type(plain_type(field.type)) for field in schema])


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the same values, at any depth."""
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(type_) or types.is_large_string(type_):
        return pa.string()
    if types.is_binary_view(type_) or types.is_large_binary(type_):
        return pa.binary()
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if any(is_(type_) for is_ in (types.is_list, types.is_large_list, types.is_list_view)):
        return pa.list_(type_.value_field.with_type(plain_type(type_.value_type)))
    if types.is_map(type_):
        return pa.map_(
            type_.key_field.with_type(plain_type(type_.key_type)),
            type_.item_field.with_type(plain_type(type_.item_type)),
        )
    if types.is_struct(type_):
        return pa.struct([one.with_type(plain_type(one.type)) for one in type_])
    return type_
