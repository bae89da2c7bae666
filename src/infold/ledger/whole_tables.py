"""
All rows of a ledger, table by table: what a copy and an exported file have of it.

What is in them is the same for every database: columns by name, booleans as such. Left out are the
lease, and the format of the database that the rows are in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

from infold.ledger.database import FORMAT_ROW, ID_ROW, MOVED_ROW, SCHEMA, Query

Row = tuple[str | int | bool | None, ...]
Kind = type[object]

META = "meta"
LEASES = "leases"
BATCH = 5_000
"""So many rows are in memory at a time."""

_ROWS_OF_ONE_DATABASE = (FORMAT_ROW, MOVED_ROW)
"""Rows of ``meta`` that tell something of one database, and not of the ledger in it."""

_MODULUS = 2**128


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and what its values are."""

    name: str
    kind: Kind
    null: bool
    bits: int = 64

    def fits(self, value: object) -> bool:
        """Whether a value can be in the column."""
        if type(value) is not self.kind:
            return value is None and self.null
        if isinstance(value, int):
            return value.bit_length() < self.bits or value == -(1 << (self.bits - 1))
        return not isinstance(value, str) or value.isascii() or _is_text(value)


@dataclass(frozen=True, slots=True)
class WholeTable:
    """A table of the ledger, with all of its columns."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    has_booleans: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in the order of the CREATE TABLE, which is that of a row in a file."""
        return tuple(column.name for column in self.columns)

    @property
    def select(self) -> str:
        """All rows, in the order of their key."""
        columns = ", ".join(f'of."{name}"' for name in self.names)
        key = ", ".join(f'of."{name}"' for name in self.key)
        return f"SELECT {columns} FROM {self.name} AS of ORDER BY {key}"

    @property
    def insert(self) -> str:
        """One row, of values by the names of columns."""
        columns = ", ".join(f'"{name}"' for name in self.names)
        marks = ", ".join(f":{name}" for name in self.names)
        return f"INSERT INTO {self.name} ({columns}) VALUES ({marks})"

    def row(self, values: Sequence[Any]) -> Row:
        """A row as read from a database: SQLite has numbers in place of booleans."""
        if not self.has_booleans:
            return tuple(values)
        return tuple(
            bool(value) if column.kind is bool and value is not None else value
            for column, value in zip(self.columns, values, strict=True)
        )

    def fits(self, row: Sequence[object]) -> bool:
        """Whether these values can be a row of the table."""
        return len(row) == len(self.columns) and all(
            column.fits(value) for column, value in zip(self.columns, row, strict=True)
        )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _table(text: str) -> WholeTable:
    """A table from the text that makes it."""
    match = re.match(r"CREATE TABLE (\w+) \( (.+), PRIMARY KEY \(([^()]+)\) \)", text)
    assert match is not None, text
    columns = []
    for part in match[2].split(", "):
        name, kind, *rest = part.split()
        bits = 32 if kind == "INTEGER" else 64
        columns.append(Column(name.strip('"'), _KIND_OF_TYPE[kind], not rest, bits))
    booleans = any(column.kind is bool for column in columns)
    return WholeTable(match[1], tuple(columns), tuple(match[3].split(", ")), booleans)


_KIND_OF_TYPE: dict[str, Kind] = {"TEXT": str, "BIGINT": int, "INTEGER": int, "BOOLEAN": bool}


def all_tables_of(schema: Iterable[str]) -> tuple[WholeTable, ...]:
    """All tables of these texts."""
    return tuple(_table(text) for text in schema if text.startswith("CREATE TABLE"))


def tables_of(schema: Iterable[str]) -> tuple[WholeTable, ...]:
    """All tables of these texts but the lease's."""
    return tuple(table for table in all_tables_of(schema) if table.name != LEASES)


TABLES = tables_of(SCHEMA)
"""All tables but the lease's."""


class Checksum:
    """
    How many rows there are, and what they add up to, in whatever order they come.

    The sum is that of BLAKE2b hashes of 128 bits, of each row as :func:`line` has it.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, lines: Iterable[str]) -> None:
        """Count rows in."""
        for text in lines:
            self.rows += 1
            self._sum += int.from_bytes(blake2b(text.encode(), digest_size=16).digest())

    @property
    def text(self) -> str:
        """The sum as 32 hexadecimal digits."""
        return f"{self._sum % _MODULUS:032x}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checksum) and (self.rows, self.text) == (other.rows, other.text)

    __hash__ = None  # type: ignore[assignment]  # it changes


Sums = Mapping[str, Checksum]


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def line(row: Row) -> str:
    """A row as one line of JSON."""
    return _encode(row)


def batches(query: Query, table: WholeTable) -> Iterator[list[Row]]:
    """All rows of a table, some at a time."""
    rows = map(table.row, query.stream(table.select))
    if table.name == META:
        rows = (row for row in rows if row[0] not in _ROWS_OF_ONE_DATABASE)  # type: ignore[assignment]
    while batch := list(islice(rows, BATCH)):
        yield batch


def add_rows(query: Query, table: WholeTable, rows: Iterable[Row]) -> None:
    """Insert rows into a table."""
    names = table.names
    query.add(table.insert, [dict(zip(names, row, strict=True)) for row in rows])


def sums_of(query: Query, awake: Callable[[], object]) -> Sums:
    """
    The checksums of all tables, by name.

    ``awake`` is called now and then, for another transaction that is open meanwhile: a server ends
    those from which it hears nothing.
    """
    checksums = {}
    for table in TABLES:
        checksum = checksums[table.name] = Checksum()
        for rows in batches(query, table):
            checksum.add(map(line, rows))
            awake()
    return checksums


def is_empty(query: Query) -> bool:
    """Whether nothing was ever recorded in a ledger."""
    return not any(
        row
        for table in TABLES
        for rows in batches(query, table)
        for row in rows[:2]
        if (table.name, row[0]) != (META, ID_ROW)
    )
