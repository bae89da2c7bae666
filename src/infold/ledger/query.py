"""
What the ledger asks of a database: named statements in short transactions, all of it or nothing.

:class:`LedgerDatabase` is the port; ``database`` is a SQLite file behind it, ``postgresql`` a
schema on a server. Both take the same names and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from infold.messages.errors import InfoldError


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

    def close(self) -> None:
        """Close the connection; it opens again when needed."""

    def close_if_idle(self) -> None:
        """Close it as far as no other thread is at work in it."""
