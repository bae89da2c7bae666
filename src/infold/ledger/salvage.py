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
from infold.ledger.put_aside import noted_path, remove_note
from infold.ledger.store import SqlLedger
from infold.ledger.whole_tables import TABLES, Row

_ENTRIES = next(table for table in TABLES if table.name == "manual_entries")


def damaged_file(ledger: SqlLedger) -> Path | None:
    """
    The damaged file that a repair put aside which goes on, or died before it had looked into it.

    A file of an earlier repair is none: its entries were taken over then, or went with a ledger.
    """
    database = ledger.database
    path = noted_path(database.path) if isinstance(database, Database) else None
    return path if path is not None and path.exists() else None


def entries_left(ledger: SqlLedger, path: Path) -> list[Row] | None:
    """The manual entries of a damaged file that are still to be taken over: all of them, or none.

    None where they cannot be read.
    """
    return [] if ledger.newest_entries() else entries_in(path)


def entries_in(path: Path) -> list[Row] | None:
    """The manual entries in a damaged file; None where they cannot all be read."""
    try:
        log = Path(f"{path}-wal").exists()  # without one, nothing is written beside the file
        uri = f"{path.absolute().as_uri()}?mode=ro" + ("" if log else "&immutable=1")
        with closing(sqlite3.connect(uri, uri=True)) as file:
            if [*file.execute(f"PRAGMA integrity_check({_ENTRIES.name})")] != [("ok",)]:
                return None
            rows = [_ENTRIES.row(row) for row in file.execute(_ENTRIES.select)]
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return rows if all(map(_ENTRIES.fits, rows)) else None


def take_entries(ledger: SqlLedger, path: Path) -> list[Row] | None:
    """
    Begin a ledger with the manual entries of a damaged one, if they can be read; which they are.

    Afterwards the file is only kept.
    """
    rows = entries_left(ledger, path)
    if rows:
        with ledger.database.write("take entries") as query:
            whole_tables.add_rows(query, _ENTRIES, rows)
    if isinstance(ledger.database, Database):
        remove_note(ledger.database.path)
    return rows
