"""
Column mapping of a Delta table: what its columns, and the parts of them, are called in files.

A *path* leads to a column or to a field of a struct in one: the names from the column on, with
``element``, ``key`` and ``value`` for what a list or a map has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]

ELEMENT, KEY, VALUE = "element", "key", "value"

_STORED = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_PARTS = (("elementType", ELEMENT), ("keyType", KEY), ("valueType", VALUE))


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """
    Where values are in files, if the table maps its columns: of every column and field, by paths.

    Either by their names in all files (``names``), or by the field ids of Parquet (``ids``): then
    one may have any name in a file. What else a file has is of a column that was dropped.
    """

    names: Mapping[Path, str] = field(default_factory=dict)
    ids: Mapping[Path, int] = field(default_factory=dict)

    def others(self, columns: Collection[str]) -> Sequence[tuple[str | Path, str | int]]:
        """
        What is not found by what it is called, in some columns, or for none in all.

        A column itself is there by its name alone.
        """
        stored: dict[Path, str | int] = {**self.names, **self.ids}
        return [
            (path if len(path) > 1 else path[0], at)
            for path, at in sorted(stored.items())
            if path[-1] != at and (path[0] in columns or not columns)
        ]


def mapping_of(mode: str, fields: Iterable[Mapping[str, Any]]) -> ColumnMapping:
    """
    How a table with these columns maps them, in one of the protocol's modes.

    If it does, all have a name and an id: deltalake opens no table with one that lacks them.
    """
    if mode == "name":
        return ColumnMapping(names={path: about[_STORED] for path, about in _every(fields)})
    if mode == "id":
        return ColumnMapping(ids={path: int(about[_ID]) for path, about in _every(fields)})
    return ColumnMapping()


def _every(
    fields: Iterable[Mapping[str, Any]], above: Path = ()
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The metadata of columns and of all fields in them."""
    for one in fields:
        path = (*above, one["name"])
        yield path, one.get("metadata") or {}
        yield from _within(one["type"], path)


def _within(type_: str | Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(type_, str):
        return
    yield from _every(type_.get("fields", ()), path)
    for key, name in _PARTS:
        if key in type_:
            yield from _within(type_[key], (*path, name))
