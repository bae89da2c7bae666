"""
A schema of a PostgreSQL database as the ledger's: one connection, short transactions, named SQL.

A transaction begins in one exchange with the server, whatever it has to say: who else writes waits
in line, the format of the ledger is read, and the server's clock. So nothing is checked once and
taken for granted later, and nothing is asked twice. Reading creates nothing, and needs no more than
the right to SELECT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from infold.core import write_points
from infold.ledger import database
from infold.ledger.database import FORMAT, FORMAT_ROW, ID_ROW, SCHEMA, SQL, Query, register
from infold.messages import ledger_errors
from infold.messages.errors import InfoldError
from infold.system import postgresql_server
from infold.system.postgresql_server import (
    BUSY_SECONDS,
    FROZEN_SECONDS,
    REMOVED,
    Fault,
    KeptConnection,
    Server,
)

if TYPE_CHECKING:
    import psycopg


NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

SERVER = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"
"""Which server answers: no two began in the same microsecond, nor does one that starts again."""


class _EarlierFormat(Exception):  # noqa: N818 - nothing is wrong
    """The ledger is of an earlier format, and only a write may upgrade it."""


class PostgresqlDatabase:
    """The ledger in ``schema`` on a server."""

    def __init__(self, server: LedgerServer, schema: str) -> None:
        self.lost: InfoldError | None = None
        self._server, self._schema = server, schema
        self._connection = KeptConnection(server)
        self._writes_to: int | None = None
        self._lock = RLock()
        register(self)

    @property
    def place(self) -> str:
        """Server, version and schema. Raises where it cannot be reached."""
        with self._lock, self._plain_errors():
            version = self._open().info.server_version
            name = f"PostgreSQL {version // 10_000}.{version % 10_000}"
            return f"{name}, {self._connection.shown}, schema {self._schema}"

    def another(self) -> PostgresqlDatabase:
        """The same place over a connection of its own."""
        return PostgresqlDatabase(self._server, self._schema)

    @contextmanager
    def read(self) -> Iterator[Query]:
        """A transaction that sees one state of the ledger."""
        with self._lock, self._plain_errors():
            connection = self._open()
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            try:
                now = self._begin(connection, begin)
            except _EarlierFormat:
                with self.write(None):
                    pass  # a write upgrades it
                now = self._begin(connection, begin)
            try:
                yield Query(None if now is None else Statements(connection), now or 0)
            finally:
                self._roll_back(connection)

    @contextmanager
    def write(self, point: str | None, *, create: bool = True) -> Iterator[Query]:
        """A transaction that no other writes beside; all of it is kept, or nothing."""
        with self._lock, self._plain_errors():
            connection = self._open()
            now = self._begin(connection, "BEGIN", lock="EXCLUSIVE")
            if now is None:
                self._roll_back(connection)
                if not create:
                    yield Query(None)
                    return
                self._create(connection)
                now = self._begin(connection, "BEGIN", lock="EXCLUSIVE")
            if now is None:
                self._roll_back(connection)
                raise self._server.error(Fault.FAILED, self._connection.shown, REMOVED)
            ends = (f"ledger {point}: before commit", f"ledger {point}: after commit")
            with self._committing(connection, ends if point else None):
                yield Query(Statements(connection), now)

    def try_create(self) -> str:
        """Make the tables, and undo that."""
        with self._lock, self._plain_errors():
            connection = self._open()
            try:
                self._make_tables(connection)
            finally:
                self._roll_back(connection)
        return self.place

    def remove(self, check: Callable[[Query], object]) -> None:
        """Drop the ledger's tables, and the schema if nothing else is in it, in one transaction."""
        with self._lock, self._plain_errors():
            connection = self._open()
            now = self._begin(connection, "BEGIN", lock="ACCESS EXCLUSIVE")
            if now is None:
                self._roll_back(connection)
                return
            with self._committing(connection, ("ledger remove: before", "ledger remove: after")):
                check(Query(Statements(connection), now))
                connection.execute(f"DROP TABLE IF EXISTS {', '.join(TABLE_NAMES)}")
                self._drop_schema(connection)
            self.close()

    def damage(self) -> str:
        """What a server stores it sees to; where a table is gone, it says so by itself."""
        return ""

    def put_aside(self) -> str:
        """A schema with damaged tables is for those to move who run the server."""
        raise NotImplementedError

    def clean(self) -> None:
        """Write the tables again: a deleted row stays in them until something needs its room."""
        with self._lock, self._plain_errors():
            connection = self._open()
            for name in TABLE_NAMES:
                connection.execute(f'VACUUM (FULL) "{self._schema}"."{name}"')

    def close(self) -> None:
        """Close the connection; it opens again when needed."""
        with self._lock:
            self._connection.close()

    def close_if_idle(self) -> None:
        """Close the connection as far as no other thread is at work over it."""
        if self._lock.acquire(timeout=1):
            try:
                self.close()
            finally:
                self._lock.release()

    def _open(self) -> psycopg.Connection[Any]:
        connection, new = self._connection.open()
        if new:
            store_any_text(connection)
        return connection

    def _begin(
        self, connection: psycopg.Connection[Any], begin: str, *, lock: str = ""
    ) -> int | None:
        """
        Begin a transaction, in one exchange; the server's time, or None where there is no ledger.

        Raises where the ledger is of a newer format. One of an earlier is upgraded where it is
        written, and cannot be read before.
        """
        import psycopg

        # With its schema: by search_path, one that this role may not use would not be there at all.
        meta = f'"{self._schema}".meta'
        text = f"{begin}; {self._settings()}"
        if lock:
            text += f"LOCK TABLE {meta} IN {lock} MODE; "
        text += f"SELECT value, {NOW}, {SERVER} FROM {meta} WHERE name = '{FORMAT_ROW}'"
        try:
            cursor = connection.execute(text)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return None
        except psycopg.errors.UndefinedColumn:
            self._roll_back(connection)
            raise self._not_a_ledger("its table meta has no columns of a ledger's") from None
        except BaseException:
            self._roll_back(connection)
            raise
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        if row is None:
            self._roll_back(connection)
            raise self._not_a_ledger("its table meta has no row of a ledger's")
        format_, now = int(row[0]), int(row[1])
        if format_ > FORMAT:
            self._roll_back(connection)
            raise ledger_errors.newer(
                place=f"{self._connection.shown}, schema {self._schema}",
                found=format_,
                known=FORMAT,
            )
        if lock:
            self._refuse_another_server(connection, int(row[2]))
        if format_ < FORMAT:
            self._upgrade(connection, format_, lock)
        return now

    def _refuse_another_server(self, connection: psycopg.Connection[Any], server: int) -> None:
        """
        Have a run whose server is another one than before lose it, though its connection lives on.

        A pooler keeps it over a failover, and the new primary may lack what was written last.
        """
        before, self._writes_to = self._writes_to, server
        if before in (None, server) or self.lost is not None:
            return
        self._roll_back(connection)
        why = "another server answers now, or it was started again"
        self.lost = self._server.error(Fault.CONNECTION_LOST, self._connection.shown, why)
        raise self.lost

    @contextmanager
    def _committing(
        self, connection: psycopg.Connection[Any], points: tuple[str, str] | None
    ) -> Iterator[None]:
        """Keep what the block did, between two write points; undo it if it fails."""
        try:
            yield
            if points:
                write_points.point(points[0])
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise
        if points:
            write_points.point(points[1])

    def _roll_back(self, connection: psycopg.Connection[Any]) -> None:
        """End a transaction that changed nothing, or must not."""
        with suppress(Exception):  # whatever was wrong before is what matters
            connection.execute("ROLLBACK")
        if connection.info.transaction_status.name != "IDLE":
            # A signal came while the server was asked: it is still at work, and keeps its locks.
            with suppress(Exception):
                connection.cancel_safe(timeout=5)
            self.close()

    def _settings(self) -> str:
        """Settings of one transaction, so that a pooler may give each another connection."""
        return (
            f'SET LOCAL search_path TO "{self._schema}"; '
            f"SET LOCAL lock_timeout TO '{BUSY_SECONDS}s'; "
            f"SET LOCAL idle_in_transaction_session_timeout TO '{FROZEN_SECONDS}s'; "
        )

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        ends = ("ledger create: before commit", "ledger create: after commit")
        with self._committing(connection, ends):
            self._make_tables(connection)

    def _make_tables(self, connection: psycopg.Connection[Any]) -> None:
        """Make schema and tables as far as they are not there, in a transaction that stays open."""
        connection.execute(f"BEGIN; {self._settings()}")
        # Two processes may come to create it at once; the second finds all of it.
        named = (f"infold ledger {self._schema}",)
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", named)
        relations, quoted = self._relations(connection), f'"{self._schema}"'
        if "meta" in relations:
            return
        if relations:
            raise self._not_a_ledger(f"it has {', '.join(sorted(relations)[:5])}")
        schema = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (quoted,)).fetchone()
        if schema is None or not schema[0]:
            connection.execute(f"CREATE SCHEMA {quoted}")
        for text in TABLES:
            connection.execute(text)
        for name, value in ((FORMAT_ROW, str(FORMAT)), (ID_ROW, str(uuid4()))):
            connection.execute(STATEMENTS["add_meta"], dict(name=name, value=value))

    def _upgrade(self, connection: psycopg.Connection[Any], format_: int, lock: str) -> None:
        """
        Make a ledger of an earlier format one of the present, in the transaction of a write.

        Only the first released format, or a later one, was ever on a server.
        """
        if not lock:
            self._roll_back(connection)
            raise _EarlierFormat
        for text in database.texts_since(format_, postgresql=True):
            connection.execute(table_statement(text))
        connection.execute("UPDATE meta SET value = %s WHERE name = %s", (str(FORMAT), FORMAT_ROW))

    def _relations(self, connection: psycopg.Connection[Any]) -> set[str]:
        """The names of what is in the schema."""
        names = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
        return {name for (name,) in connection.execute(names, (f'"{self._schema}"',))}

    def _drop_schema(self, connection: psycopg.Connection[Any]) -> None:
        """Drop the schema, unless somebody else made it or has something in it."""
        import psycopg

        connection.execute("SAVEPOINT tables_dropped")
        try:
            connection.execute(f'DROP SCHEMA "{self._schema}"')
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.DependentObjectsStillExist):
            connection.execute("ROLLBACK TO SAVEPOINT tables_dropped")

    def _not_a_ledger(self, why: str) -> InfoldError:
        return ledger_errors.other_schema(
            ledger=self._connection.shown, schema=self._schema, why=why
        )

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except InfoldError:
            raise
        except Exception as error:
            import psycopg

            if not isinstance(error, psycopg.Error):
                raise
            connection = self._connection.current
            broken = connection is None or connection.broken
            known = self._server.failed(error, self._connection.shown, broken=broken)
            if known is None:
                raise
            if known.slug == "ledger-connection-lost":
                self.lost = known
                self.close()
            raise known from error


def statement(text: str) -> str:
    """A statement of SQLite's as PostgreSQL has it, with psycopg's parameters."""
    return re.sub(r":(\w+)", r"%(\1)s", text)


def table_statement(text: str) -> str:
    """A statement that makes a table or an index; texts are in the order of their bytes."""
    text = text.removesuffix(" WITHOUT ROWID")
    is_table = text.startswith(("CREATE TABLE", "ALTER TABLE"))
    return re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', text) if is_table else text


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
        """Run the statement called ``name`` in ``STATEMENTS``."""
        return self._connection.execute(STATEMENTS[name], values)

    def executemany(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run one for each of ``rows``: inserts and deletes of several all at once."""
        self._run_for_each(STATEMENTS[name], tuple(rows))

    def stream(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of any SELECT through a cursor of the server: a table may not fit in memory."""
        with self._connection.cursor(name="stream") as cursor:
            cursor.itersize = FETCHED
            yield from cursor.execute(text)

    def add(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert ``rows`` by a text of its own."""
        self._run_for_each(statement(text), rows)

    def _run_for_each(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) > 1 and (insert := _INSERT.fullmatch(text)):
            self._insert(insert, rows)
        elif len(rows) > 1 and _DELETE.fullmatch(text):
            self._connection.execute(*_delete_all(text, rows))
        elif rows:
            with self._connection.cursor() as cursor:
                cursor.executemany(text, rows)

    def _insert(self, insert: re.Match[str], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows; of tens of thousands each takes microseconds."""
        names = re.findall(r"%\((\w+)\)s", insert[2])
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {insert[1]} FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row([row[name] for name in names])


def _delete_all(text: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, list[Any]]]:
    """A DELETE of all ``rows`` from one of a single row, by arrays of the values of keys."""
    table, condition = text.removeprefix("DELETE FROM ").split(" WHERE ")
    names = re.findall(r"%\((\w+)\)s", condition)
    kinds = (_ARRAY_TYPES[type(rows[0][name])] for name in names)
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in zip(names, kinds, strict=True))
    keys = ", ".join(f"key_{name}" for name in names)
    condition = re.sub(r"%\((\w+)\)s", r"key_\1", condition)
    text = f"DELETE FROM {table} USING unnest({arrays}) AS keys ({keys}) WHERE {condition}"
    return text, {name: [row[name] for row in rows] for name in names}


_INSERT = re.compile(r"INSERT INTO (\w+ \([^()]+\)) VALUES \((.+)\)")
_DELETE = re.compile(r"DELETE FROM \w+ WHERE [\w.]+ = %\(\w+\)s(?: AND [\w.]+ = %\(\w+\)s)*")
_ARRAY_TYPES = {str: "text", int: "bigint", bool: "boolean"}


_ERRORS: Mapping[Fault, Callable[[str, str, str], InfoldError]] = {
    Fault.DRIVER_MISSING: lambda key, _at, _why: ledger_errors.driver_missing(key=key),
    Fault.BAD_URL: lambda key, _at, why: ledger_errors.bad_url(key=key, why=why),
    Fault.UNREACHABLE: lambda key, at, why: ledger_errors.unreachable(key=key, ledger=at, why=why),
    Fault.LOGIN_REFUSED: (
        lambda key, at, why: ledger_errors.login_refused(key=key, ledger=at, why=why)
    ),
    Fault.DATABASE_MISSING: (
        lambda key, at, why: ledger_errors.database_missing(key=key, ledger=at, why=why)
    ),
    Fault.NOT_PERMITTED: (
        lambda key, at, why: ledger_errors.not_permitted(key=key, ledger=at, why=why)
    ),
    Fault.READ_ONLY: lambda key, at, why: ledger_errors.read_only(key=key, ledger=at, why=why),
    Fault.TOO_OLD: (
        lambda key, at, found: ledger_errors.server_too_old(
            key=key, ledger=at, found=found, oldest=postgresql_server.OLDEST
        )
    ),
    Fault.OTHER_ENCODING: (
        lambda key, at, found: ledger_errors.other_encoding(key=key, ledger=at, found=found)
    ),
    Fault.CONNECTION_LOST: (
        lambda key, at, why: ledger_errors.connection_lost(key=key, ledger=at, why=why)
    ),
    Fault.FAILED: lambda key, at, why: ledger_errors.server_failed(key=key, ledger=at, why=why),
}
"""The message of each: by the key, where the server is, and why."""


class LedgerServer(Server):
    """The server that a target's ledger is on."""

    __slots__ = ()

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """What ``Server`` raises, with the slug and the advice that belong to a ledger."""
        return _ERRORS[fault](self.key, place, why)


def store_any_text(connection: psycopg.Connection[Any]) -> None:
    """Have texts stored that PostgreSQL has no way to store: see ``stored_text``."""
    from psycopg.adapt import Buffer
    from psycopg.types.string import StrDumper, TextLoader

    class Dump(StrDumper):
        def dump(self, obj: str) -> Buffer | None:
            return super().dump(escaped(obj))

    class Load(TextLoader):
        def load(self, data: Buffer) -> str | bytes:
            text = super().load(data)
            return unescaped(text) if isinstance(text, str) else text

    connection.adapters.register_dumper(str, Dump)
    connection.adapters.register_loader("text", Load)


# One character of Unicode's private use area marks what stands for another one: after `MARK` a 0 is
# NUL, and a 1 is `MARK` itself. Any other text is stored as it is.

MARK = "\ue000"


def escaped(text: str) -> str:
    """The text as it is stored."""
    if "\0" not in text and MARK not in text:
        return text
    return text.replace(MARK, f"{MARK}1").replace("\0", f"{MARK}0")


def unescaped(text: str) -> str:
    """The text that :func:`escaped` stored."""
    return text.replace(f"{MARK}0", "\0").replace(f"{MARK}1", MARK) if MARK in text else text
