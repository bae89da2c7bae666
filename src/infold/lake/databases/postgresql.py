"""
A table of PostgreSQL: one transaction that sees one state, read by a cursor of the server's.

Values come in PostgreSQL's binary form, so no setting of a user or a database rounds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from infold.core.model import Source
from infold.lake.databases.columns import (
    BATCH,
    ColumnType,
    KeyRange,
    Row,
    StoredColumn,
    WantedColumn,
)
from infold.messages import database_errors
from infold.messages.errors import InfoldError
from infold.system import postgresql_server
from infold.system.postgresql_server import BUSY_SECONDS, Fault, Server

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

_TYPES = {
    "boolean": ColumnType.BOOLEAN,
    "smallint": ColumnType.INT16,
    "integer": ColumnType.INT32,
    "bigint": ColumnType.INT64,
    "real": ColumnType.FLOAT,
    "double precision": ColumnType.DOUBLE,
    "numeric": ColumnType.DECIMAL,
    "text": ColumnType.TEXT,
    "character varying": ColumnType.TEXT,
    "character": ColumnType.TEXT,
    "bytea": ColumnType.BINARY,
    "date": ColumnType.DATE,
    "timestamp without time zone": ColumnType.LOCAL_TIME,
    "timestamp with time zone": ColumnType.INSTANT,
    "json": ColumnType.TEXT,
    "jsonb": ColumnType.TEXT,
    "uuid": ColumnType.TEXT,
}
_AS_TEXT = ("json", "jsonb", "uuid")
_ENUM = "e"

_COLUMNS = """
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, t.typtype
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""

_ERRORS: Mapping[Fault, Callable[[str, str, str], InfoldError]] = {
    Fault.DRIVER_MISSING: lambda key, _at, _why: database_errors.driver_missing(key=key),
    Fault.BAD_URL: lambda key, _at, why: database_errors.bad_url(key=key, why=why),
    Fault.UNREACHABLE: lambda key, at, why: database_errors.unreachable(key=key, at=at, why=why),
    Fault.LOGIN_REFUSED: (
        lambda key, at, why: database_errors.login_refused(key=key, at=at, why=why)
    ),
    Fault.DATABASE_MISSING: (
        lambda key, at, why: database_errors.database_missing(key=key, at=at, why=why)
    ),
    Fault.NOT_PERMITTED: (
        lambda key, at, why: database_errors.not_permitted(key=key, at=at, why=why)
    ),
    Fault.TOO_OLD: (
        lambda key, at, found: database_errors.unreachable(
            key=key,
            at=at,
            why=f"it is PostgreSQL {found}; {postgresql_server.OLDEST} is the oldest that works",
        )
    ),
}


class SourceServer(Server):
    """The server that a source's table is on."""

    __slots__ = ()

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """See ``Server``: an error of ``database_errors``."""
        if (named := _ERRORS.get(fault)) is not None:
            return named(self.key, place, why)
        return database_errors.read_failed(key=self.key, at=place, why=why)

    def _check(self, connection: psycopg.Connection[Any], shown: str) -> None:
        # The server may store text in any encoding: it sends UTF-8.
        self._check_version(connection, shown)


@contextmanager
def opened(source: Source, root: Path) -> Iterator[PostgresqlTable]:
    """The table of a source. Raises what ``SourceServer`` names."""
    import psycopg

    assert source.url is not None
    assert source.table is not None
    server = SourceServer(source.url, root, f"source {source.name}")
    connection, shown = server.connect()
    try:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SET LOCAL TIME ZONE 'UTC'")
        connection.execute(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
        yield PostgresqlTable(connection, source.table, server.key, shown)
    except psycopg.Error as error:
        broken = connection.broken or connection.closed
        named = server.failed(error, shown, broken=broken)
        why = server.words(error)
        raise named or database_errors.read_failed(key=server.key, at=shown, why=why) from None
    finally:
        connection.close()


class PostgresqlTable:
    """One table, read in one transaction that sees one state."""

    def __init__(self, connection: psycopg.Connection[Any], name: str, key: str, at: str) -> None:
        self._connection, self._name = connection, name
        self._key, self._at = key, at

    @property
    def _quoted(self) -> str:
        return ".".join(map(_quoted, self._name.split(".")))

    def columns(self) -> Mapping[str, StoredColumn]:
        """By the server's catalog. Raises ``table_missing``."""
        name = self._quoted.replace("%%", "%")
        described = self._connection.execute(_COLUMNS, [name]).fetchall()
        if not described:
            raise database_errors.table_missing(key=self._key, table=self._name, at=self._at)
        return {name: _column(name, *details) for name, *details in described}

    def has_null(self, column: StoredColumn) -> bool:
        """One row is looked for, and none in a column that is NOT NULL."""
        text = f"SELECT 1 FROM {self._quoted} WHERE {_quoted(column.name)} IS NULL LIMIT 1"
        return column.nullable and bool(self._connection.execute(text.encode(), []).fetchall())

    def rows(
        self, columns: Sequence[WantedColumn], within: KeyRange | None
    ) -> Iterator[Sequence[Row]]:
        """See ``OpenTable``."""
        values = ", ".join(
            _quoted(one.name) + ("::text" if one.stored.as_text else "") for one in columns
        )
        text = f"SELECT {values} FROM {self._quoted}"
        limits: list[Any] = []
        if within is not None:
            key = _quoted(within.key.name)
            type_ = within.key.written
            bounds = ((">=", within.start), ("<=", within.end))
            tests = [f"{key} {sign} %s::{type_}" for sign, value in bounds if value is not None]
            limits = [value for _, value in bounds if value is not None]
            text += f" WHERE {' AND '.join(tests)}" if tests else ""
            text += f" ORDER BY {key}" if within.in_order else ""
        with self._connection.cursor(name="infold") as cursor:
            cursor.execute(text.encode(), limits, binary=True)
            while batch := cursor.fetchmany(BATCH):
                yield batch


def _column(name: str, written: str, not_null: bool, typtype: str) -> StoredColumn:
    """A column by the name of its type, such as ``numeric(12,2)``."""
    plain = re.sub(r"\([\d,-]+\)", "", written)
    type_ = ColumnType.TEXT if typtype == _ENUM else _TYPES.get(plain)
    digits = None
    if type_ is ColumnType.DECIMAL and (precision := re.search(r"\((\d+),(-?\d+)\)", written)):
        digits = (int(precision[1]), int(precision[2]))
        if digits[1] < 0:  # 12 digits before three zeros
            digits = (digits[0] - digits[1], 0)
    as_text = typtype == _ENUM or plain in _AS_TEXT
    return StoredColumn(name, written, type_, not not_null, digits, as_text)


def _quoted(name: str) -> str:
    """A name in a statement with parameters, which `%` would be one of."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
