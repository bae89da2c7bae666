"""
The ledger's statements as PostgreSQL has them, run over a connection by their names.

They are SQLite's, with other marks of parameters; a test compares them with what SQLAlchemy
compiles for PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infold.ledger.generated_sql import SCHEMA, SQL

if TYPE_CHECKING:
    import psycopg


def statement(text: str) -> str:
    """A statement of SQLite's as PostgreSQL has it, with psycopg's parameters."""
    return re.sub(r":(\w+)", r"%(\1)s", text)


def table_statement(text: str) -> str:
    """A statement that makes a table or an index; texts are in the order of their bytes."""
    text = text.removesuffix(" WITHOUT ROWID")
    made = text.startswith(("CREATE TABLE", "ALTER TABLE"))
    return re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', text) if made else text


STATEMENTS = {name: statement(text) for name, text in SQL.items()}
TABLES = tuple(map(table_statement, SCHEMA))
"""What makes the tables, and their indexes."""

TABLE_NAMES = tuple(found[1] for text in SCHEMA if (found := re.match(r"CREATE TABLE (\w+)", text)))

FETCHED = 5_000
"""So many rows of a stream come with one exchange."""


class Statements:
    """Runs statements by name over one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, name: str, values: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        """Run one."""
        return self._connection.execute(STATEMENTS[name], values)

    def executemany(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run one for each of ``rows``: inserts and deletes of several all at once."""
        self._each(STATEMENTS[name], tuple(rows))

    def stream(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of a text's own, as they are read."""
        with self._connection.cursor(name="stream") as cursor:
            cursor.itersize = FETCHED
            yield from cursor.execute(text)

    def add(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert ``rows`` by a text of its own."""
        self._each(statement(text), rows)

    def _each(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) > 1 and (found := _INSERT.fullmatch(text)):
            self._insert(found, rows)
        elif len(rows) > 1 and _DELETE.fullmatch(text):
            self._connection.execute(*_delete(text, rows))
        elif rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(text, rows)

    def _insert(self, found: re.Match[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; of tens of thousands each takes microseconds."""
        names = re.findall(r"%\((\w+)\)s", found[2])
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {found[1]} FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row([row[name] for name in names])


def _delete(text: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, list[Any]]]:
    """A DELETE of all ``rows`` from one of a single row, by arrays of the values of keys."""
    table, condition = text.removeprefix("DELETE FROM ").split(" WHERE ")
    names = re.findall(r"%\((\w+)\)s", condition)
    kinds = (_KINDS[type(rows[0][name])] for name in names)
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in zip(names, kinds, strict=True))
    keys = ", ".join(f"key_{name}" for name in names)
    condition = re.sub(r"%\((\w+)\)s", r"key_\1", condition)
    text = f"DELETE FROM {table} USING unnest({arrays}) AS keys ({keys}) WHERE {condition}"
    return text, {name: [row[name] for row in rows] for name in names}


_INSERT = re.compile(r"INSERT INTO (\w+ \([^()]+\)) VALUES \((.+)\)")
_DELETE = re.compile(r"DELETE FROM \w+ WHERE [\w.]+ = %\(\w+\)s(?: AND [\w.]+ = %\(\w+\)s)*")
_KINDS = {str: "text", int: "bigint", bool: "boolean"}
