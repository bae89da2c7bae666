"""
A table of SQLite: a file, opened to be read only, in one transaction.

SQLite stores any value in any column, and times as text. A value that is not of its column's
declared type is left as it is here, and refused by whoever wants the column.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

from infold.core.model import Source
from infold.lake.databases.columns import (
    BATCH,
    ColumnType,
    KeyRange,
    KeyValue,
    Row,
    StoredColumn,
    WantedColumn,
)
from infold.messages import database_errors
from infold.system.sqlite_file import connect_to_read

SQLITE = "sqlite:///"
"""What the URL of a file begins with; the path is relative to the project."""

_INTEGER_TYPES = ("INT", "INTEGER", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT")
_TYPES = {
    **dict.fromkeys(_INTEGER_TYPES, ColumnType.INT64),
    **dict.fromkeys(("REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT"), ColumnType.DOUBLE),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "CHARACTER", "CLOB", "JSON"), ColumnType.TEXT),
    "BLOB": ColumnType.BINARY,
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    "DATETIME": ColumnType.LOCAL_TIME,
    "TIMESTAMP": ColumnType.LOCAL_TIME,
}
_NO_NUMBER = "typeof({0}) <> 'integer'"
_NO_TIME = "{0} NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(_DAY.pattern + r"([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")


@contextmanager
def opened(source: Source, root: Path) -> Iterator[SqliteTable]:
    """The table of a source."""
    assert source.url is not None
    assert source.table is not None
    key, file = f"source {source.name}", root / source.url.removeprefix(SQLITE)
    try:
        connection = connect_to_read(file)
    except sqlite3.Error as error:
        why = str(error)
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CANTOPEN:
            raise database_errors.unreachable(key=key, at=source.url, why=why) from None
        raise database_errors.read_failed(key=key, at=source.url, why=why) from None
    try:
        connection.execute("BEGIN")
        yield SqliteTable(connection, source.table, key, source.url)
    except sqlite3.Error as error:
        raise database_errors.read_failed(key=key, at=source.url, why=str(error)) from None
    finally:
        connection.close()


class SqliteTable:
    """One table, whose columns may have values of any type."""

    def __init__(self, connection: sqlite3.Connection, name: str, key: str, at: str) -> None:
        self._connection, self._name = connection, name
        self._key, self._at = key, at

    def columns(self) -> Mapping[str, StoredColumn]:
        """By their declared types; hidden ones are left out. Raises ``table_missing``."""
        text = 'SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE hidden <> 1'
        described = self._connection.execute(text, [self._name]).fetchall()
        if not described:
            raise database_errors.table_missing(key=self._key, table=self._name, at=self._at)
        return {name: _column(name, written, not_null) for name, written, not_null in described}

    def has_null(self, column: StoredColumn) -> bool:
        """One row is looked for, and none in a column that is NOT NULL."""
        text = f"SELECT 1 FROM {_quoted(self._name)} WHERE {_quoted(column.name)} IS NULL LIMIT 1"
        return column.nullable and bool(self._connection.execute(text).fetchall())

    def rows(
        self, columns: Sequence[WantedColumn], within: KeyRange | None
    ) -> Iterator[Sequence[Row]]:
        """See ``OpenTable``."""
        values = ", ".join(_quoted(one.name) for one in columns)
        text, limits = f"SELECT {values} FROM {_quoted(self._name)}", []
        if within is not None:
            key = _quoted(within.key.name)
            if within.start is not None:
                # A value of another kind may be anywhere in SQLite's order. It is to be found.
                other = _NO_NUMBER if isinstance(within.start, int) else _NO_TIME
                text += f" WHERE {key} >= ? OR {other.format(key)}"
                limits = [_not_after(within.start)]
            text += f" ORDER BY {key}" if within.in_order else ""
        makers = [_CONVERTERS.get(one.stored.type) if one.stored.type else None for one in columns]
        cursor = self._connection.execute(text, limits)
        while batch := cursor.fetchmany(BATCH):
            yield [_values(row, makers) for row in batch]


def _not_after(start: KeyValue) -> Any:
    """
    A value that no row from ``start`` on is before, as SQLite compares.

    Times are texts, which may have a T or a blank in the middle and any digits at the end: so all
    of the day is asked for.
    """
    return start if isinstance(start, int) else f"{start:%Y-%m-%d}"


def _values(row: Row, makers: Sequence[Callable[[Any], Any] | None]) -> Row:
    return tuple(
        value if make is None or value is None else make(value)
        for value, make in zip(row, makers, strict=True)
    )


def _truth(value: object) -> object:
    return bool(value) if type(value) is int and value in (0, 1) else value


def _date(value: object) -> object:
    return _parsed_text(value, _DAY, date.fromisoformat)


def _time(value: object) -> object:
    return _parsed_text(value, _TIME, datetime.fromisoformat)


def _parsed_text(value: object, form: re.Pattern[str], make: Callable[[str], Any]) -> object:
    if not isinstance(value, str) or not form.fullmatch(value):
        return value
    try:
        return make(value)
    except ValueError:  # 31 February
        return value


_CONVERTERS = {ColumnType.BOOLEAN: _truth, ColumnType.DATE: _date, ColumnType.LOCAL_TIME: _time}


def _column(name: str, written: str, not_null: int) -> StoredColumn:
    plain = re.sub(r"\s*\(.*\)", "", written).strip().upper()
    return StoredColumn(name, written or "no type", _TYPES.get(plain), not not_null)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
