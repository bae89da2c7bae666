"""
Columns of a Delta table as they are in one file: by which names, and of which types.

The table says what its columns are. A file may be older: it lacks fields that a struct gained, and
has others that were dropped. Spark reads NULL for what it does not find, and leaves out what it is
not asked for, so it is given the table's own type with the names that the file has. What is
read then gets the table's names by a cast: Spark casts structs by the positions of fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from infold.lake.reading.delta_mapping import ELEMENT, KEY, VALUE, ColumnMapping, Path
from infold.spark.reading.parquet_files import Footer, names_by_id

At = tuple[tuple[Path, str], ...]
"""What columns, and fields in them, are called in a file."""


class NoIdsError(Exception):
    """A file, or a struct in it, has no field ids, or one of them twice."""


@dataclass(frozen=True, slots=True)
class FileFields:
    """
    The columns of a table that a file has: ``types`` by their names, and what all is called there.

    A type has the table's names and fields, and what the file stores of each.
    """

    types: Mapping[str, pa.DataType]
    at: At


def fields_in(
    footer: Footer, columns: Iterable[T.StructField], mapping: ColumnMapping
) -> FileFields:
    """
    Some columns of the table in a file. Raises :class:`NoIdsError`.

    One that the file lacks is not among them.
    """
    stored = dict(zip(footer.fields.names, footer.types, strict=True))
    name_of = _names(mapping, footer.fields)
    types, at = {}, dict[Path, str]()
    for one in columns:
        path = (one.name,)
        name = name_of(path)
        if name is None or name not in stored:
            continue
        at[path] = name
        types[one.name] = _as_in_table(stored[name], one.dataType, path, mapping, at)
    return FileFields(types, tuple(sorted(at.items())))


Name = Callable[[Path], str | None]


def _names(mapping: ColumnMapping, fields: Iterable[pa.Field]) -> Name:
    """What each column, or field of a struct, is called; None for one that is not there by id."""
    if not mapping.ids:
        return lambda path: mapping.names.get(path, path[-1])
    by_id = names_by_id(fields)
    if by_id is None:  # "must refuse to read that file", says the protocol
        raise NoIdsError
    return lambda path: by_id.get(mapping.ids[path])


def _as_in_table(
    found: pa.DataType, wanted: T.DataType, path: Path, mapping: ColumnMapping, at: dict[Path, str]
) -> pa.DataType:
    """A type of a file with the table's names and fields; ``at`` gets those of the file."""
    if pa.types.is_struct(found) and isinstance(wanted, T.StructType):
        own = {one.name: one.type for one in found}
        name_of, taken = _names(mapping, found), {one.name.lower() for one in found}
        parts = []
        for one in wanted:
            below = (*path, one.name)
            name = name_of(below)
            if name is not None and name in own:
                type_ = _as_in_table(own[name], one.dataType, below, mapping, at)
            else:
                name, type_ = _free(name or one.name, taken), to_arrow_type(one.dataType)
            at[below] = name
            parts.append(pa.field(one.name, type_))
        return pa.struct(parts)
    if pa.types.is_list(found) and isinstance(wanted, T.ArrayType):
        return pa.list_(
            _as_in_table(found.value_type, wanted.elementType, (*path, ELEMENT), mapping, at)
        )
    if pa.types.is_map(found) and isinstance(wanted, T.MapType):
        return pa.map_(
            _as_in_table(found.key_type, wanted.keyType, (*path, KEY), mapping, at),
            _as_in_table(found.item_type, wanted.valueType, (*path, VALUE), mapping, at),
        )
    return found


def _free(name: str, taken: set[str]) -> str:
    """A name that no field of a struct has, however Spark compares names; it is taken then."""
    while name.lower() in taken:
        name = f"{name}_"
    taken.add(name.lower())
    return name


def as_in_file(type_: T.DataType, path: Path, at: Mapping[Path, str]) -> T.DataType:
    """A type of the table by the names that a file has."""
    if isinstance(type_, T.StructType):
        found = T.StructType()
        for one in type_:
            below = (*path, one.name)
            found = found.add(at.get(below, one.name), as_in_file(one.dataType, below, at))
        return found
    if isinstance(type_, T.ArrayType):
        return T.ArrayType(as_in_file(type_.elementType, (*path, ELEMENT), at))
    if isinstance(type_, T.MapType):
        return T.MapType(
            as_in_file(type_.keyType, (*path, KEY), at),
            as_in_file(type_.valueType, (*path, VALUE), at),
        )
    return type_
