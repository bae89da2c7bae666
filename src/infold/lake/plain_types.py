"""
Arrow's types without the ways to hold values: views, long offsets and dictionaries.

A Parquet file can name them beside its own types (delta-rs does). What it has is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


# Where values repeat, Parquet stores each once in a part of a file, and rows as numbers. Reading
# these dictionaries is some twenty times faster than counting rows by value.

_ROWS = 1 << 20
"""How many rows are read at a time: values that do not repeat are all in memory."""


def distinct_values(
    files: Iterable[Path | AbstractContextManager[Any]], column: str, limit: int
) -> pa.Array | None:
    """
    The values of a column in some files, each once, NULL left out.

    When there are more than ``limit``, some that are more than that. None: a file does not have
    the column by this name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    distinct = pa.array([], pa.string())
    for each in files:
        with each.open("rb") if isinstance(each, Path) else each as file:
            known = pq.read_metadata(file)
            if column not in known.schema.names:  # written when it had another name
                return None
            parts = pq.ParquetFile(file, metadata=known, read_dictionary=[column])
            for batch in parts.iter_batches(_ROWS, columns=[column]):
                own = batch.column(0).dictionary.cast(pa.string())
                distinct = pa.chunked_array([distinct, own]).unique().drop_null()
                if len(distinct) > limit:
                    return distinct
    return distinct
