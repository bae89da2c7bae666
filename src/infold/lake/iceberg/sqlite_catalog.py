"""
The catalog in a SQLite file: the one of a target that names no other.

The file belongs to the engine. It is opened for each look and each change, and never made here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infold.lake.iceberg.sql_catalog import OWN, SqlCatalog, Statements, TakenError
from infold.messages import run_errors

BUSY_SECONDS = 30.0


def sqlite_catalog(file: Path) -> SqlCatalog:
    """The target's catalog."""
    return SqlCatalog(SqliteDatabase(file), OWN)


@dataclass(slots=True)
class _Connection:
    """See ``Statements``."""

    connection: sqlite3.Connection
    undone: bool = False

    def rows(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """See ``Statements``."""
        return self.connection.execute(text, values).fetchall()

    def change(self, text: str, values: Sequence[Any] = ()) -> int:
        """See ``Statements``."""
        try:
            return self.connection.execute(text, values).rowcount
        except sqlite3.IntegrityError as error:
            raise TakenError(", ".join(map(str, values))) from error


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """See ``CatalogDatabase``."""

    file: Path

    @property
    def place(self) -> str:
        """See ``CatalogDatabase``."""
        return str(self.file)

    @contextmanager
    def read(self) -> Iterator[Statements | None]:
        """See ``CatalogDatabase``; a query sees one state."""
        if not self.file.exists():
            yield None
            return
        if not self.file.is_file():  # a pipe: SQLite would wait for a writer
            raise run_errors.catalog_unreadable(path=self.place, why="it is no file")
        with self._opened(f"{self.file.absolute().as_uri()}?mode=ro", uri=True) as found:
            yield found

    @contextmanager
    def write(self, namespace: str) -> Iterator[Statements | None]:
        """See ``CatalogDatabase``; nobody else writes to the file meanwhile."""
        del namespace
        if not self.file.exists():
            yield None
            return
        with self._opened(str(self.file), uri=False) as found:
            if found is None:
                yield None
                return
            found.connection.execute("BEGIN IMMEDIATE")
            yield found
            found.connection.execute("ROLLBACK" if found.undone else "COMMIT")

    @contextmanager
    def _opened(self, name: str, *, uri: bool) -> Iterator[_Connection | None]:
        """A connection; None where the engine has made the file and no table in it."""
        try:
            made = sqlite3.connect(name, uri=uri, timeout=BUSY_SECONDS, isolation_level=None)
            with closing(made) as connection:
                there = connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'"
                ).fetchone()
                yield _Connection(connection) if there else None
        except sqlite3.DatabaseError as error:
            raise run_errors.catalog_unreadable(path=self.place, why=str(error)) from error


def table_rows(file: Path) -> tuple[tuple[Any, ...], ...]:
    """All tables, as :func:`put_back` takes them; none when there is no catalog yet."""
    with SqliteDatabase(file).read() as found:
        return () if found is None else tuple(found.rows("SELECT * FROM iceberg_tables"))


def put_back(file: Path, kept: Sequence[tuple[Any, ...]]) -> None:
    """Let the catalog have exactly the tables that it had: each as it was."""
    with SqliteDatabase(file).write("") as found:
        if found is None:
            return
        found.change("DELETE FROM iceberg_tables")
        for row in kept:
            marks = ", ".join("?" * len(row))
            found.change(f"INSERT INTO iceberg_tables VALUES ({marks})", row)
