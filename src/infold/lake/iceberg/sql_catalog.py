"""
An Iceberg catalog in a database (Iceberg's JDBC catalog), read and changed by its own statements.

One look at its one table answers which tables there are and whether one has moved. The table is the
engine's. infold reads it, drops tables as the engine does, and lets names point to other tables:
several in one transaction (:meth:`SqlCatalog.change`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from infold.core import write_points
from infold.core.swap import Renaming
from infold.messages import run_errors
from infold.system.sqlite_file import connect_to_read

if TYPE_CHECKING:
    from infold.lake.iceberg.table_catalog import Key, Row

NAME = "infold"
"""The name that Spark gives the catalog: it is a part of the key of each row."""

OWN = f"catalog_name = '{NAME}'"
"""Condition on rows of this catalog: one database may have the tables of several."""


class TakenError(Exception):
    """A row has the key of another one."""


class Statements(Protocol):
    """A transaction of a database; ``undone`` ends it without a change."""

    undone: bool

    def rows(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """The rows that a query has; ``?`` stands for each value."""

    def change(self, text: str, values: Sequence[Any] = ()) -> int:
        """Change rows; how many. Raises ``TakenError``."""


class CatalogDatabase(Protocol):
    """The database of a catalog; errors have names."""

    @property
    def place(self) -> str:
        """What errors call it."""

    def read(self) -> AbstractContextManager[Statements | None]:
        """A look that sees one state; None where there is no table of a catalog yet."""

    def write(self, namespace: str) -> AbstractContextManager[Statements | None]:
        """A transaction that nobody changes the rows of a namespace beside; None as above."""


@dataclass(frozen=True, slots=True)
class SqlCatalog:
    """The tables in a database; by ``own``, those of one of its catalogs."""

    database: CatalogDatabase
    own: str = OWN

    @property
    def at_once(self) -> bool:
        """Several tables change in one transaction."""
        return True

    @property
    def place(self) -> str:
        """The file or the server as messages name it."""
        return self.database.place

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``: one query, whatever the number of tables."""
        keys = set(tables)
        spaces = sorted({namespace for namespace, _ in keys})
        if not spaces:
            return {}
        marks = ", ".join("?" * len(spaces))
        rows = self._read(
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            f" WHERE {self.own} AND table_namespace IN ({marks})"
            " AND metadata_location IS NOT NULL",
            spaces,
        )
        return {(space, name): at for space, name, at in rows if (space, name) in keys}

    def locations(self, namespace: str) -> Mapping[str, str]:
        """One query; of tables that are held back, by both of their names."""
        return {name: row.location for name, row in self.rows(namespace).items()}

    def names(self, namespace: str) -> Collection[str]:
        """One query."""
        return self.rows(namespace).keys()

    def rows(self, namespace: str) -> dict[str, Row]:
        """All tables of a namespace, by name."""
        return _rows_by_name(self._read(*self._rows_query(namespace)))

    def drop(self, namespace: str, names: Sequence[str]) -> None:
        """
        See ``TableCatalog``: as the engine does, by deleting rows.

        A commit of the engine's at the same time finds no row to change, and fails.
        """
        with self.database.write(namespace) as statements:
            for name in names if statements else ():
                assert statements is not None
                statements.change(
                    f"DELETE FROM iceberg_tables WHERE {self.own}"
                    " AND table_namespace = ? AND table_name = ?",
                    (namespace, name),
                )

    def change(
        self,
        namespace: str,
        expected: Mapping[str, str | None],
        targets: Mapping[str, Row | None],
        before_commit: str = "",
    ) -> str | None:
        """
        Let names point elsewhere, or nowhere, all at one instant: so tables are renamed, published,
        set back, and views are made.

        ``expected`` is where the names point now, None for nowhere. If one does not, or is taken by
        somebody else meanwhile, nothing is changed, and that name is returned. ``before_commit`` is
        the write point that is passed while the transaction is open.
        """
        with self.database.write(namespace) as statements:
            rows = () if statements is None else statements.rows(*self._rows_query(namespace))
            known = _rows_by_name(rows)
            locations = {name: row.location for name, row in known.items()}
            moved = next(
                (name for name in sorted(expected) if locations.get(name) != expected[name]), None
            )
            if statements is not None:
                moved = moved or self._replace(statements, namespace, known, targets)
                statements.undone = moved is not None
                if before_commit and moved is None:
                    write_points.point(before_commit)
        return moved

    def _replace(
        self,
        statements: Statements,
        namespace: str,
        known: Mapping[str, Row],
        targets: Mapping[str, Row | None],
    ) -> str | None:
        """Change rows, unless one moved that no lock has kept: its name."""
        # All leave their names before one takes another's: two can change places.
        for name in [name for name in targets if name in known]:
            gone = statements.change(
                f"DELETE FROM iceberg_tables WHERE {self.own}"
                " AND table_namespace = ? AND table_name = ? AND metadata_location = ?",
                (namespace, name, known[name].location),
            )
            if gone != 1:
                return name
        for name, row in targets.items():
            if row is None:
                continue
            try:
                statements.change(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                    " metadata_location, previous_metadata_location, iceberg_type)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (NAME, namespace, name, row.location, row.previous, row.type),
                )
            except TakenError:
                return name
        return None

    def rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """See ``TableCatalog``: one transaction."""
        rows = self.rows(namespace)
        if any(r.table not in rows for r in renamings):
            return False
        expected: dict[str, str | None] = dict.fromkeys(r.to for r in renamings)
        expected |= {r.table: r.location for r in renamings}
        targets = dict.fromkeys(expected) | {r.to: rows[r.table] for r in renamings}
        before_commit = "rename: before commit"
        done = self.change(namespace, expected, targets, before_commit) is None
        write_points.point("rename: after commit")
        return done

    def set_back(self, table: Key, location: str, snapshot: int) -> bool:
        """See ``TableCatalog``: a new metadata file, and one row."""
        from infold.lake.iceberg.metadata_file import metadata_file_of
        from infold.lake.iceberg.table_catalog import Row

        namespace, name = table
        row = Row(metadata_file_of(location, snapshot), previous=location)
        return self.change(namespace, {name: location}, {name: row}) is None

    def finish_rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """See ``TableCatalog``: all of them happened, or none."""
        locations = self.locations(namespace)
        return any(locations.get(renaming.to) == renaming.location for renaming in renamings)

    def _rows_query(self, namespace: str) -> tuple[str, tuple[str]]:
        text = (
            "SELECT table_name, metadata_location, previous_metadata_location"
            f" FROM iceberg_tables WHERE {self.own} AND table_namespace = ?"
            " AND metadata_location IS NOT NULL"
        )
        return text, (namespace,)

    def _read(self, text: str, values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        with self.database.read() as statements:
            return () if statements is None else statements.rows(text, values)


def tables_named(database: CatalogDatabase, table: Key) -> Mapping[str, str]:
    """
    Where the metadata of tables of this name is, by the name of their catalog.

    Others may have made the database, and one may have the tables of several catalogs.
    """
    with database.read() as statements:
        if statements is None:
            return {}
        rows = statements.rows(
            "SELECT catalog_name, metadata_location FROM iceberg_tables"
            " WHERE table_namespace = ? AND table_name = ? AND metadata_location IS NOT NULL"
            " ORDER BY catalog_name",
            table,
        )
        return {str(name): str(at) for name, at in rows}


def _rows_by_name(rows: Sequence[tuple[Any, ...]]) -> dict[str, Row]:
    from infold.lake.iceberg.table_catalog import Row

    return {name: Row(location, previous) for name, location, previous in rows}


# The file belongs to the engine. It is opened for each look and each change, and never made here.

BUSY_SECONDS = 30.0


def sqlite_catalog(file: Path) -> SqlCatalog:
    """The target's catalog."""
    return SqlCatalog(SqliteDatabase(file), OWN)


@dataclass(slots=True)
class _Connection:
    """``Statements`` over SQLite."""

    connection: sqlite3.Connection
    undone: bool = False

    def rows(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """All rows, fetched at once."""
        return self.connection.execute(text, values).fetchall()

    def change(self, text: str, values: Sequence[Any] = ()) -> int:
        """How many rows changed. Raises ``TakenError`` for a key that is there."""
        try:
            return self.connection.execute(text, values).rowcount
        except sqlite3.IntegrityError as error:
            raise TakenError(", ".join(map(str, values))) from error


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """A catalog in a file, opened anew for each transaction."""

    file: Path

    @property
    def place(self) -> str:
        """The path of the file."""
        return str(self.file)

    @contextmanager
    def read(self) -> Iterator[Statements | None]:
        """See ``CatalogDatabase``; a query sees one state."""
        if not self.file.exists():
            yield None
            return
        if not self.file.is_file():  # a pipe: SQLite would wait for a writer
            raise run_errors.catalog_unreadable(path=self.place, why="it is no file")
        with self._opened(lambda: connect_to_read(self.file, BUSY_SECONDS)) as statements:
            yield statements

    @contextmanager
    def write(self, namespace: str) -> Iterator[Statements | None]:
        """See ``CatalogDatabase``; nobody else writes to the file meanwhile."""
        del namespace
        if not self.file.exists():
            yield None
            return
        with self._opened(self._connect_to_write) as statements:
            if statements is None:
                yield None
                return
            statements.connection.execute("BEGIN IMMEDIATE")
            yield statements
            statements.connection.execute("ROLLBACK" if statements.undone else "COMMIT")

    def _connect_to_write(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, timeout=BUSY_SECONDS, isolation_level=None)

    @contextmanager
    def _opened(self, connect: Callable[[], sqlite3.Connection]) -> Iterator[_Connection | None]:
        """A connection; None where the engine has made the file and no table in it."""
        try:
            with closing(connect()) as connection:
                has_tables = connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'"
                ).fetchone()
                yield _Connection(connection) if has_tables else None
        except sqlite3.DatabaseError as error:
            raise run_errors.catalog_unreadable(path=self.place, why=str(error)) from error


def table_rows(file: Path) -> tuple[tuple[Any, ...], ...]:
    """All tables, as :func:`restore_rows` takes them; none when there is no catalog yet."""
    with SqliteDatabase(file).read() as statements:
        return () if statements is None else tuple(statements.rows("SELECT * FROM iceberg_tables"))


def restore_rows(file: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Let the catalog have exactly the tables that it had: each as it was."""
    with SqliteDatabase(file).write("") as statements:
        if statements is None:
            return
        statements.change("DELETE FROM iceberg_tables")
        for row in rows:
            marks = ", ".join("?" * len(row))
            statements.change(f"INSERT INTO iceberg_tables VALUES ({marks})", row)
