"""
Ledgers of formats before the first released one: files of SQLite, as nobody had one on a server.

Tables that a later upgrade changes (``upgrades``) are in all of them, as the first release had
them; a table that is made here is as the newest has it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from infold.core.trace import UNKNOWN

_COLUMNS = "SELECT name FROM pragma_table_info('quarantined')"
_ALWAYS_SAID = (
    """SELECT 1 FROM pragma_table_info('manual_entries') WHERE name = 'held' AND "notnull" = 1"""
)


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
    held = {name for (name,) in connection.execute(_COLUMNS)}
    if held and "campaign" not in held:
        for column in ("carried", "campaign"):
            connection.execute(f"ALTER TABLE quarantined ADD COLUMN {column} TEXT")
        connection.execute(
            "UPDATE traces SET fingerprint = ? WHERE model IN (SELECT model FROM quarantined)",
            (UNKNOWN,),
        )
    strict = connection.execute(_ALWAYS_SAID).fetchone() is not None
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
