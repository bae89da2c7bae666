"""
What people entered, out of a damaged ledger's file: nobody can compute that again.

SQLite can say of one table whether all of its pages are whole. Only then its rows are taken, all of
them, in one transaction. The damaged file is read, and not changed.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from infold.ledger import whole_tables
from infold.ledger.database import Database
from infold.ledger.store import SqlLedger
from infold.ledger.whole_tables import TABLES, Row

_ENTRIES = next(table for table in TABLES if table.name == "manual_entries")


def damaged_file(ledger: SqlLedger) -> Path | None:
    """The newest damaged file that was put aside of a ledger in which nothing is recorded yet."""
    database = ledger.database
    if not isinstance(database, Database):
        return None
    with database.read() as query:
        if not whole_tables.is_empty(query):
            return None
    found = database.path.parent.glob(f"{database.path.name}.damaged-*[0-9]")
    return max(found, default=None, key=lambda path: path.name)


def entries_in(path: Path) -> list[Row] | None:
    """The manual entries in a damaged file; None where they cannot all be read."""
    try:
        log = Path(f"{path}-wal").exists()  # without one, nothing is written beside the file
        uri = f"{path.absolute().as_uri()}?mode=ro" + ("" if log else "&immutable=1")
        with closing(sqlite3.connect(uri, uri=True)) as file:
            if [*file.execute(f"PRAGMA integrity_check({_ENTRIES.name})")] != [("ok",)]:
                return None
            return [_ENTRIES.row(row) for row in file.execute(_ENTRIES.select)]
    except sqlite3.Error:
        return None


def take_entries(ledger: SqlLedger, path: Path) -> None:
    """Begin a ledger with the manual entries of a damaged one, if they can be read."""
    if rows := entries_in(path):
        with ledger.database.write("take entries") as query:
            whole_tables.add_rows(query, _ENTRIES, rows)
