"""
The sessions that are looked up: the newest of a table, and the history of one.

They are read from the tables when somebody asks, without a JVM. There are too many of them for an
export.
"""

from __future__ import annotations

from infold import api
from infold.core.arrow_values import rows_of
from infold.core.interval import EVER, show_instant
from infold.core.model import table_name
from infold.core.ports import Lake
from infold.core.project import Project
from infold.ledger import SqlLedger
from infold.page.shapes import JsonObject, plain
from infold.render.session_history import session_history_shape

NEWEST = 20
"""How many sessions of a table are listed."""


def sessions_document(ledger: SqlLedger, lake: Lake, name: str) -> JsonObject:
    """Some sessions of the newest cell of a table, by start."""
    cells = [one.cell for one in ledger.cells(name) if one.cell != EVER]
    if name not in ledger.traces() or not cells:
        return {"model": name, "sessions": []}
    where = f"session_start >= '{show_instant(cells[-1].start)}'"
    found = rows_of(lake.rows(table_name(name), where=where, limit=NEWEST))
    found.sort(key=lambda row: (row["session_start"], row["session_id"]))
    return {"model": name, "sessions": [plain(row) for row in found]}


def session_document(project: Project, id_: str) -> JsonObject:
    """
    The history of a session, or of the first sessions of an identifier.

    Raises ``unknown_session`` for what is none.
    """
    return plain(session_history_shape(api.session_history(project, id_)))
