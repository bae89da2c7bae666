"""
Whether a ledger's file has values that are none: a byte of it may be anything.

SQLite says whether pages and indexes are whole. A value inside of a page may still be of another
type, no text, or no JSON of infold's, and whoever reads it fails in a way of its own. So a command
that fails in no known way asks here, and a repair before it begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from infold.core.interval import datetime_of
from infold.ledger import whole_tables
from infold.ledger.database import SCHEMA, USED_FILES, Database, Query, noted_path, remove_note
from infold.ledger.reader import SqlLedgerReader
from infold.ledger.store import SqlLedger
from infold.ledger.whole_tables import TABLES, Row, WholeTable, all_tables_of
from infold.messages import run_errors
from infold.messages.errors import InfoldError

_ALL_RUNS = 2**62

_VALUE_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError),
    ValueError,  # also what is no JSON, and no UTF-8
)


def damage_of(ledger: SqlLedgerReader) -> str:
    """Why a ledger that is there cannot be read; empty where none is, or it can."""
    database = ledger.database
    why = database.damage()
    if why or not isinstance(database, Database):
        return why
    try:
        with database.read() as query:
            why = next(_wrong_rows(query), "")
        if not why:
            _read_all(ledger)
    except InfoldError as error:
        if error.slug != "not-a-ledger":
            raise
        return dict(error.facts)["why"]
    except _VALUE_ERRORS as error:
        return f"a value of it is none: {error}"
    return why


def damaged_ledger() -> InfoldError | None:
    """The error of a ledger that this process has read, if one of them is damaged."""
    for path in tuple(USED_FILES):
        with suppress(InfoldError):
            if why := damage_of(SqlLedgerReader(Database(path))):
                return run_errors.not_a_ledger(path=str(path), why=why)
    return None


def _wrong_rows(query: Query) -> Iterator[str]:
    """The tables with a row of other types than its columns, or with a time that is none."""
    if not query.exists:
        return
    for table in all_tables_of(SCHEMA):
        for values in query.stream(table.select):
            row = table.row(values)
            if not table.fits(row) or not all(_times_of(table, row)):
                yield f"its table {table.name} has a row with a value that is none"


def _times_of(table: WholeTable, row: Row) -> Iterator[bool]:
    """Whether each instant of a row is one."""
    for name, value in zip(table.names, row, strict=True):
        if name.endswith("_at") and isinstance(value, int):
            try:
                yield bool(datetime_of(value))
            except (OverflowError, ValueError):
                yield False


def _read_all(ledger: SqlLedgerReader) -> None:
    """Ask for everything, as commands do."""
    ledger.owner()
    ledger.contradictions()
    ledger.unfinished()
    ledger.runs(_ALL_RUNS)
    ledger.environments()
    ledger.own_tables()
    ledger.swaps()
    ledger.audits()
    traces, heads = ledger.traces(), ledger.newest_versions()
    applied = (one.digest for one in ledger.applied().values())
    earlier = (part.definition for trace in traces.values() for part in trace.earlier)
    ledger.definitions({*applied, *earlier, *(trace.definition for trace in traces.values())})
    for table in {*traces, *heads}:
        ledger.changes(table, 0)
        ledger.unchanged(table, 0)
        ledger.cells(table)
        ledger.file_cells(table)
        ledger.arrivals(table)
        ledger.entries(table)
        ledger.quarantined(table)


# SQLite can say of one table whether all of its pages are whole. Only then its rows are taken, all
# of them, in one transaction. The damaged file is read, and not changed.

_ENTRIES_TABLE = next(table for table in TABLES if table.name == "manual_entries")


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
            if [*file.execute(f"PRAGMA integrity_check({_ENTRIES_TABLE.name})")] != [("ok",)]:
                return None
            rows = [_ENTRIES_TABLE.row(row) for row in file.execute(_ENTRIES_TABLE.select)]
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return rows if all(map(_ENTRIES_TABLE.fits, rows)) else None


def take_entries(ledger: SqlLedger, path: Path) -> list[Row] | None:
    """
    Begin a ledger with the manual entries of a damaged one, if they can be read; which they are.

    Afterwards the file is only kept.
    """
    rows = entries_left(ledger, path)
    if rows:
        with ledger.database.write("take entries") as query:
            whole_tables.add_rows(query, _ENTRIES_TABLE, rows)
    if isinstance(ledger.database, Database):
        remove_note(ledger.database.path)
    return rows
