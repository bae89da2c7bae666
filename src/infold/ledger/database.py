"""
What the ledger asks of a database, and a SQLite file that does it: short transactions, named SQL.

Reading never creates anything: where there is no ledger, every query has no rows. Writing takes
the write lock at the start (``BEGIN IMMEDIATE``), so it waits in line instead of failing halfway.
The file is in WAL mode: readers never wait for a writer, nor a writer for them.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakSet, finalize

from infold.core import write_points
from infold.core.interval import now
from infold.core.trace import UNKNOWN
from infold.messages import run_errors
from infold.messages.errors import InfoldError

# Formats are numbered. The first one that was released is :data:`RELEASED`; each later one is an
# :class:`Upgrade` of :data:`UPGRADES`, with statements as `schema.sql` has them. All upgrades that
# a ledger lacks are carried out in one transaction, by whoever opens it first. What the statements
# do is never changed once they were released.
#
# Statements are valid in SQLite and PostgreSQL alike, unless PostgreSQL has its own. The SQLite may
# be an old one, as that of a distribution's Python: one before 3.35 drops no column, so there the
# table is made anew. Its old one is renamed and not the new one: then the new one's text is as in a
# new ledger.
#
# A new upgrade comes with: the changed `schema.sql`, its statements here, the tables as they were
# before, and the ledger of the format before it in `tests/ledger/released`. Tests upgrade each of
# those in both databases, and compare what comes out with a new ledger. Exported files are of any
# of these formats, too (`earlier_files`).

RELEASED = 10
"""The format of the first released ledgers; earlier ones are seen to by ``before_release``."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """
    What makes a ledger of the format before it one of ``format``, and why, for people.

    ``postgresql`` takes the place of ``texts`` there, if it has any. ``before`` has the texts that
    made tables in the format before, of those tables that are other ones now, by name; an empty one
    is of a table that was not there.
    """

    format: int
    why: str
    texts: tuple[str, ...]
    postgresql: tuple[str, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)


UPGRADES: tuple[Upgrade, ...] = (
    Upgrade(
        11,
        "changes have no `last`: nobody asked for that of a cell as it was",
        (
            "ALTER TABLE changes RENAME TO changes_before",
            (
                "CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, "
                "cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, "
                "removed BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, "
                "content_before BIGINT NOT NULL, content_after BIGINT NOT NULL, PRIMARY KEY "
                "(table_name, version, cell_start, cell_end) ) WITHOUT ROWID"
            ),
            (
                "INSERT INTO changes SELECT table_name, version, cell_start, cell_end, added, "
                "removed, rows_before, rows_after, content_before, content_after "
                "FROM changes_before"
            ),
            "DROP TABLE changes_before",
        ),
        postgresql=("ALTER TABLE changes DROP COLUMN last",),
        before={
            "changes": "CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, "
            "cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, removed "
            "BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, "
            "content_before BIGINT NOT NULL, content_after BIGINT NOT NULL, last BIGINT, PRIMARY "
            "KEY (table_name, version, cell_start, cell_end) ) WITHOUT ROWID",
        },
    ),
    Upgrade(
        12,
        "requests to erase are kept, and how far back tables go",
        (
            (
                "CREATE TABLE erased_keys ( number BIGINT NOT NULL, key TEXT NOT NULL, "
                "PRIMARY KEY (number, key) ) WITHOUT ROWID"
            ),
            (
                "CREATE TABLE erasure_columns ( erasure TEXT NOT NULL, source TEXT NOT NULL, "
                "column_name TEXT NOT NULL, PRIMARY KEY (erasure, source) ) WITHOUT ROWID"
            ),
            (
                "CREATE TABLE erasures ( number BIGINT NOT NULL, id TEXT NOT NULL, erasure TEXT "
                "NOT NULL, source TEXT, before_at BIGINT, reason TEXT NOT NULL, made_at BIGINT "
                "NOT NULL, PRIMARY KEY (number) ) WITHOUT ROWID"
            ),
            (
                "CREATE TABLE trace_retention ( model TEXT NOT NULL, starts BIGINT NOT NULL, "
                "lost_until BIGINT NOT NULL, frozen_until BIGINT NOT NULL, PRIMARY KEY (model) ) "
                "WITHOUT ROWID"
            ),
        ),
        before={"erased_keys": "", "erasure_columns": "", "erasures": "", "trace_retention": ""},
    ),
)


def newest_format() -> int:
    """The format that this program writes."""
    return RELEASED + len(UPGRADES)


def texts_since(format_: int, *, postgresql: bool = False) -> Iterator[str]:
    """The statements that a ledger of a released format lacks, in order."""
    for upgrade in _since(format_):
        yield from (postgresql and upgrade.postgresql) or upgrade.texts


def tables_of(format_: int, schema: Iterable[str]) -> tuple[str, ...]:
    """What makes the tables of a released format, in the order of their names, without indexes."""
    tables = {text.split()[2]: text for text in schema if text.startswith("CREATE TABLE")}
    for upgrade in reversed([*_since(format_)]):
        tables |= upgrade.before
    return tuple(text for _, text in sorted(tables.items()) if text)


def _since(format_: int) -> Iterator[Upgrade]:
    for number, upgrade in enumerate(UPGRADES, RELEASED + 1):
        assert upgrade.format == number, f"{upgrade.format} is not the format after {number - 1}"
        if upgrade.format > format_:
            yield upgrade


# :class:`LedgerDatabase` is the port; a SQLite file is behind it here, `postgresql` a schema
# on a server. Both take the same names and values.


class Cursor(Protocol):
    """The rows of one statement."""

    @property
    def rowcount(self) -> int:
        """How many rows were found."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""


class Statements(Protocol):
    """A connection that runs statements by their names."""

    def execute(self, name: str, values: Mapping[str, Any]) -> Cursor:
        """Run the statement of this name; ``values`` are its parameters by name."""

    def executemany(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run that statement once for each of ``rows``, which may be none."""

    def stream(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of a text's own, as they are read: all of a table need not fit in memory."""

    def add(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert ``rows`` by a text of its own."""


class Query:
    """
    Named statements in one transaction; without a connection there are no rows.

    ``now`` is when it began, by the clock of the database.
    """

    def __init__(self, statements: Statements | None, now: int = 0) -> None:
        self._statements = statements
        self.now = now

    @property
    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self._statements is not None

    def all(self, name: str, /, **values: Any) -> list[Any]:
        """All rows of the named statement; none where there is no ledger yet."""
        return [] if self._statements is None else self._statements.execute(name, values).fetchall()

    def one(self, name: str, /, **values: Any) -> Any:
        """The first row, or None."""
        if self._statements is None:
            return None
        return self._statements.execute(name, values).fetchone()

    def run(self, name: str, /, **values: Any) -> int:
        """Change rows; how many were found."""
        if self._statements is None:
            raise RuntimeError("a write outside a writing transaction")
        return self._statements.execute(name, values).rowcount

    def many(self, name: str, /, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run one statement for each of ``rows``."""
        if self._statements is None:
            raise RuntimeError("a write outside a writing transaction")
        self._statements.executemany(name, rows)

    def stream(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of a SELECT that has no name, as they are read."""
        return iter(()) if self._statements is None else self._statements.stream(text)

    def add(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows by an INSERT that has no name."""
        if self._statements is None:
            raise RuntimeError("a write outside a writing transaction")
        self._statements.add(text, rows)


class LedgerDatabase(Protocol):
    """Where a ledger is. One connection, one transaction at a time, from any thread."""

    lost: InfoldError | None
    """The error of a connection that broke since somebody last took the lease through this one."""

    @property
    def place(self) -> str:
        """Where it is, as people may see it: without any password."""

    def read(self) -> AbstractContextManager[Query]:
        """A transaction that sees one state of the ledger; it creates nothing."""

    def write(self, point: str | None, *, create: bool = True) -> AbstractContextManager[Query]:
        """
        A transaction that no other writes beside; all of it is kept, or nothing.

        ``point`` names it as a write point (see ``write_points``); None for what happens by the
        clock. Where there is no ledger, ``create`` makes one; otherwise the query says so.
        """

    def try_create(self) -> str:
        """Make a ledger as the first write would, undo that, and say where it was."""

    def remove(self, check: Callable[[Query], object]) -> None:
        """Delete the ledger; ``check`` raises where that must not be."""

    def damage(self) -> str:
        """Why a ledger that is there cannot be read; empty where none is, or it can."""

    def put_aside(self) -> str:
        """Give a ledger that cannot be read another name, which is returned."""

    def another(self) -> LedgerDatabase:
        """The same place over a connection of its own."""

    def clean(self) -> None:
        """Leave nothing of rows that were deleted where the ledger is."""

    def close(self) -> None:
        """Close the connection; it opens again when needed."""

    def close_if_idle(self) -> None:
        """Close it as far as no other thread is at work in it."""


FORMAT = newest_format()
"""The version of the tables. A ledger with a greater one was written by a newer program."""

FORMAT_ROW = "infold.ledger"
"""The row of ``meta`` with the format; a database without it is no ledger."""

PROJECT_ROW = "infold.project"
"""The row of ``meta`` that names the project that the ledger belongs to."""

ID_ROW = "infold.id"
"""The row of ``meta`` that tells this ledger from every other, also from one made in its place."""

WAREHOUSE_ROW = "infold.warehouse"
"""The row of ``meta`` that names where its tables are, as the project says it."""

ERASURES_ROW = "infold.erasures"
"""The row of ``meta`` with the fingerprint of the secret that erased keys are hashed with."""

PURGED_ROW = "infold.purged"
"""The row of ``meta`` with the number of the newest request whose rows are in no file any more."""

MOVED_ROW = "infold.moved"
"""The row of ``meta`` of a ledger that was copied, and is not to be used: where the copy is."""

BUSY_SECONDS = 30.0  # for so long SQLite waits for the lock of another process

_NOT_WRITABLE_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)

_SCHEMA_ERROR = sqlite3.SQLITE_ERROR
"""SQLite's code where a statement does not fit the tables that there are, or a table is broken."""


class SqliteStatements:
    """Runs statements by name over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, name: str, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run the statement called ``name`` in ``SQL``."""
        return self._connection.execute(SQL[name], values)

    def executemany(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run that statement once for each of ``rows``."""
        self._connection.executemany(SQL[name], rows)

    def stream(self, text: str) -> Iterator[Sequence[Any]]:
        """The rows of any SELECT, fetched as they are asked for: a table may not fit in memory."""
        return iter(self._connection.execute(text))

    def add(self, text: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert ``rows`` by a text of its own."""
        self._connection.executemany(text, rows)


class Database:
    """The file at ``path``. One connection, one transaction at a time, from any thread."""

    lost: InfoldError | None = None  # a file is there or is not

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        # Python's connections are in a circle with their statements: left alone they stay open. So
        # this closes one, at most once: when asked to, or when nothing refers to the database.
        self._closing: Callable[[], object] = _nothing
        self._inode = 0
        self._lock = RLock()
        register(self)
        USED_FILES.add(path)

    @contextmanager
    def read(self) -> Iterator[Query]:
        """A transaction that sees one state of the ledger."""
        with self._lock, self._plain_errors():
            connection = self._open(create=False)
            if connection is None:
                yield Query(None)
                return
            connection.execute("BEGIN")
            try:
                yield Query(SqliteStatements(connection), now())
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def write(self, point: str | None, *, create: bool = True) -> Iterator[Query]:
        """
        A transaction with the write lock; all of it is kept, or nothing.

        ``point`` names it as a write point (see ``write_points``); None for what happens by the
        clock. Where there is no ledger, ``create`` makes one; otherwise the query says so.
        """
        with self._lock, self._plain_errors():
            connection = self._open(create=create)
            if connection is None:
                yield Query(None)
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Query(SqliteStatements(connection), now())
                if point:
                    write_points.point(f"ledger {point}: before commit")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if point:
                write_points.point(f"ledger {point}: after commit")

    @property
    def place(self) -> str:
        """The path of the file, for messages."""
        return str(self.path)

    def another(self) -> Database:
        """The same file over a connection of its own."""
        return Database(self.path)

    def try_create(self) -> str:
        """Make a ledger beside the place where this one would be, and remove it again."""
        beside = Database(self.path.with_name(f".doctor-{os.getpid()}.db"))
        with beside.write(None):
            pass
        beside.remove(lambda _: None)
        return self.place

    def remove(self, check: Callable[[Query], object]) -> None:
        """
        Delete the file, its log before it; then all of the log is in it, so that a crash in between
        leaves a whole ledger. A log that outlived its file could get into the next one.
        """
        with self.write(None, create=False) as query:
            check(query)
        with self._lock, self._plain_errors():
            connection = self._open(create=False)
            until = time.monotonic() + BUSY_SECONDS
            while (
                connection and connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            ):
                if time.monotonic() > until:
                    raise run_errors.ledger_unusable(
                        path=str(self.path), why="somebody is reading it"
                    )
                time.sleep(0.01)
            self.close()
            write_points.point("ledger remove: before")
            remove_note(self.path)
            for suffix in ("-wal", "-shm", ""):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            write_points.point("ledger remove: after")

    def damage(self) -> str:
        """Why the file cannot be read as a ledger: pages or tables of it are broken or gone."""
        with self._lock:
            try:
                with self._plain_errors(), self.read() as query:
                    return "; ".join(_broken(query))
            except InfoldError as error:
                if error.slug != "not-a-ledger" or self._is_something_else():
                    raise
                return dict(error.facts)["why"]

    def _is_something_else(self) -> bool:
        """Whether the file is a database of somebody else's."""
        try:
            with closing(sqlite3.connect(self.path)) as connection:
                names = {name for (name,) in connection.execute(_SELECT_TABLES)}
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False
        return not names & {"versions", "traces", "ingests"}

    def put_aside(self) -> str:
        """
        Give the file and its log other names, the file last: without it, there is no ledger.

        Returns the file's new name.
        """
        with self._lock:
            path = damaged_path(self.path)
            with suppress(sqlite3.Error):
                self.close()
            write_points.point("ledger put aside: before")
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").replace(f"{path}{suffix}")
            write_points.point("ledger put aside: after")
        return str(path)

    def clean(self) -> None:
        """Write the file again, and empty its log: pages that are free have what was deleted."""
        with self._lock, self._plain_errors():
            connection = self._open(create=False)
            if connection is not None:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file, which empties its log into it; it opens again when needed."""
        with self._lock:
            self._connection = None
            self._closing()

    def close_if_idle(self) -> None:
        """Close the file as far as no other thread is at work in it."""
        if self._lock.acquire(timeout=1):
            try:
                with suppress(sqlite3.Error):
                    self.close()
            finally:
                self._lock.release()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            # Without a code it is Python that cannot decode a text.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if code == _SCHEMA_ERROR:
                raise run_errors.not_a_ledger(path=str(self.path), why=str(error)) from error
            raise run_errors.ledger_unusable(path=str(self.path), why=str(error)) from error
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:
                raise
            raise run_errors.not_a_ledger(path=str(self.path), why=str(error)) from error
        except UnicodeDecodeError as error:  # in the names of tables
            raise run_errors.not_a_ledger(path=str(self.path), why=str(error)) from error

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is not None and self._still_there():
            return self._connection
        self.close()
        if not self.path.exists():
            if not create:
                return None
            self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._connected("mode=rwc" if create else "mode=rw", create=create)
        except sqlite3.OperationalError as error:
            if create or error.sqlite_errorcode & 0xFF not in _NOT_WRITABLE_CODES:
                raise
        # Without its log a file is all there is; SQLite wants to make one beside it even to read.
        alone = "" if Path(f"{self.path}-wal").exists() else "&immutable=1"
        connection = self._connected(f"mode=ro{alone}", create=False)
        self._inode = 0  # it is opened anew each time: others may write to it from elsewhere
        return connection

    def _connected(self, how: str, *, create: bool) -> sqlite3.Connection | None:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{how}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        self._closing = finalize(self, connection.close)
        try:
            if self._check(connection) or (create and self._create(connection)):
                self._connection, self._inode = connection, self.path.stat().st_ino
        finally:
            if self._connection is None:
                self.close()
        return self._connection

    def _still_there(self) -> bool:
        """Whether the file is still the one that was opened: a teardown removes it."""
        try:
            return self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _check(self, connection: sqlite3.Connection) -> bool:
        """Whether the ledger's tables are there; an error when the file is something else."""
        names = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        if not names:  # new, or a crash came between the file and its tables
            return False
        row = (
            connection.execute("SELECT value FROM meta WHERE name = ?", (FORMAT_ROW,)).fetchone()
            if "meta" in names
            else None
        )
        if row is None or not str(row[0]).isdecimal():
            why = f"it has {', '.join(sorted(names)[:5])}"
            raise run_errors.not_a_ledger(path=str(self.path), why=why)
        if int(row[0]) > FORMAT:
            raise run_errors.ledger_newer(path=str(self.path), found=int(row[0]), known=FORMAT)
        if int(row[0]) < FORMAT and not connection.in_transaction:
            _upgrade(connection)
        return True

    def _create(self, connection: sqlite3.Connection) -> bool:
        _write_ahead(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._check(connection):  # another process may have been first
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute(SQL["add_meta"], {"name": FORMAT_ROW, "value": str(FORMAT)})
                _name(connection)
            write_points.point("ledger create: before commit")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        write_points.point("ledger create: after commit")
        return True


_SELECT_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def _broken(query: Query) -> Iterator[str]:
    """What is wrong with the pages of a file, and which tables it lacks."""
    if not query.exists:
        return
    yield from (text for (text,) in query.stream("PRAGMA integrity_check(1)") if text != "ok")
    tables = {name for (name,) in query.stream(_SELECT_TABLES)}
    matches = (re.match(r"CREATE TABLE (\w+)", text) for text in SCHEMA)
    missing = [match[1] for match in matches if match and match[1] not in tables]
    if missing:
        yield f"it has no table {', '.join(missing[:5])}"


def _nothing() -> None:
    """What closes a database that was never opened."""


def _upgrade(connection: sqlite3.Connection) -> None:
    """Make a ledger of an earlier format one of the present, unless another process has."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        format_ = int(connection.execute(SQL["meta"], {"name": FORMAT_ROW}).fetchone()[0])
        if format_ < RELEASED:
            upgrade_to_release(connection, _schema_of_release())
            if connection.execute(SQL["meta"], {"name": ID_ROW}).fetchone() is None:
                _name(connection)
        for text in texts_since(format_):
            connection.execute(text)
        newest = str(max(format_, FORMAT))
        connection.execute("UPDATE meta SET value = ? WHERE name = ?", (newest, FORMAT_ROW))
        write_points.point("ledger upgrade: before commit")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    write_points.point("ledger upgrade: after commit")


def _name(connection: sqlite3.Connection) -> None:
    connection.execute(SQL["add_meta"], {"name": ID_ROW, "value": str(uuid4())})


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL for good. SQLite does not wait for its busy timeout here, so this does."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


USED_FILES: set[Path] = set()
"""The files that ledgers of this process were read from, or would have been."""

_used_databases: WeakSet[LedgerDatabase] = WeakSet()


def register(database: LedgerDatabase) -> None:
    """Have it closed at the end of the process; see :func:`close_all`."""
    _used_databases.add(database)


def close_all() -> None:
    """
    Close every ledger of this process, as far as no other thread is at work in it.

    What was written is safe without that, in the log beside the file. But people copy the file
    alone, and only a connection that is closed leaves all in it.
    """
    for database in tuple(_used_databases):
        database.close_if_idle()


# Tables that a later upgrade changes are in all of them, as the first release had
# them; a table that is made here is as the newest has it.

_SELECT_COLUMNS = "SELECT name FROM pragma_table_info('quarantined')"
_SELECT_STRICT_ENTRIES = (
    """SELECT 1 FROM pragma_table_info('manual_entries') WHERE name = 'held' AND "notnull" = 1"""
)


def _schema_of_release() -> Iterator[str]:
    """What makes the tables and indexes of a new ledger, without tables that came later."""
    later = {name for upgrade in UPGRADES for name, text in upgrade.before.items() if not text}
    return (text for text in SCHEMA if text.split()[2] not in later)


def upgrade_to_release(connection: sqlite3.Connection, schema: Iterable[str]) -> None:
    """
    Give a ledger of an older format the tables and columns that it lacks.

    Up to format 3 nobody wrote down the campaigns of sessions in quarantine. A rebuild finds them,
    so the traces of models that have such sessions are made to hold no longer. Up to format 4 a
    manual entry excluded sessions or released them, and took no earlier entry back. Up to format 6
    no definition was kept: a run adopts those in the files for tables that they built. Up to format
    7 every reader of a replaced table was built again. Up to format 8 a changed definition held for
    all cells of a table, there were no environments, and no table took the place of another. Up to
    format 9 there were no audits.
    """
    columns = {name for (name,) in connection.execute(_SELECT_COLUMNS)}
    if columns and "campaign" not in columns:
        for column in ("carried", "campaign"):
            connection.execute(f"ALTER TABLE quarantined ADD COLUMN {column} TEXT")
        connection.execute(
            "UPDATE traces SET fingerprint = ? WHERE model IN (SELECT model FROM quarantined)",
            (UNKNOWN,),
        )
    strict = connection.execute(_SELECT_STRICT_ENTRIES).fetchone() is not None
    if strict:
        connection.execute("ALTER TABLE manual_entries RENAME TO manual_entries_before")
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for statement in schema:
        words = statement.split()
        if words[words.index("INDEX" if "INDEX" in words[:3] else "TABLE") + 1] not in known:
            connection.execute(statement)
    if strict:
        connection.execute("INSERT INTO manual_entries SELECT * FROM manual_entries_before")
        connection.execute("DROP TABLE manual_entries_before")


# It is there before the file is moved, and until what can be read of that is taken over. So a
# repair that died goes on with its own file, and never takes that of an earlier repair.


def damaged_path(ledger: Path) -> Path:
    """Where a damaged file goes, as the note says from now on."""
    noted = noted_path(ledger)
    if noted is not None and not noted.exists():
        return noted  # a process died before it moved the file, perhaps after it moved the log
    stamp = time.strftime("damaged-%Y%m%dT%H%M%S", time.gmtime())
    path = Path(f"{ledger}.{stamp}")
    _note(ledger).write_text(path.name, encoding="utf-8")
    return path


def noted_path(ledger: Path) -> Path | None:
    """The damaged file of a repair that goes on or died, there or not; None without a note."""
    with suppress(FileNotFoundError):
        name = _note(ledger).read_text(encoding="utf-8")
        return ledger.with_name(name) if name else None
    return None


def remove_note(ledger: Path) -> None:
    """Nothing is to be taken out of a damaged file any more."""
    _note(ledger).unlink(missing_ok=True)


def _note(ledger: Path) -> Path:
    return Path(f"{ledger}.repairing")


# Both are SQLite's; what PostgreSQL has otherwise is in `postgresql`. A test parses all of them for
# both, and the contract of a ledger is tested on both (docs/decisions/0007-ledger-statements.md).

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)


def _texts(file: str) -> str:
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def _on_one_line(text: str) -> str:
    return " ".join(_COMMENT.sub("", text).split())


SCHEMA = tuple(filter(None, map(str.strip, _on_one_line(_texts("schema.sql")).split(";"))))
"""What makes each table, and its indexes; a stored ledger has these texts."""

_PARTS = _NAME.split(_texts("statements.sql"))
SQL = {
    name: _on_one_line(text).removesuffix(";")
    for name, text in zip(_PARTS[1::2], _PARTS[2::2], strict=True)
}
"""Every statement by its name, with parameters as ``:name``."""
