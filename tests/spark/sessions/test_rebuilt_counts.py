"""The counts of sessions in the receipt of a rebuilt table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.reading.landing import LandingProject

from infold import api
from infold.core import interval
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT id, at, u FROM raw.c"""

SESSIONS = """---
materialization: sessions
sessions: {user: u, gap: 30 minutes, quarantine_after: 1 hour}
---
SELECT count(*) AS NAME FROM c"""

TABLE = """---
materialization: table
---
SELECT id, at AS session_end FROM c"""

LONG = ("10:00", "10:25", "10:50", "11:15")
"""Of a session that is longer than its model's limit."""


class Visits(LandingProject):
    """Events of users, and sessions made of them."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        super().__init__(root, warehouse, "landing/*.json")
        self.declare("", "{id: string, at: timestamp, u: string}")
        self.model(EVENTS)

    def visit(self, user: str, *times: str) -> None:
        """A file of events of one user on a day."""
        ids = [(f"{user}{time}", f"2024-03-01T{time}") for time in times]
        rows = [json.dumps({"id": id_, "at": at, "u": user}) for id_, at in ids]
        self.put(f"{ids[0][0].replace(':', '')}.json", "\n".join(rows) + "\n")

    def built(self, text: str) -> Receipt:
        """The receipt of the sessions, after a run with this definition of theirs."""
        self.model(text, "s")
        found = api.run(
            api.open_project(self.root), as_of=interval.parse_instant_text("2024-03-10")
        )
        (receipt,) = (made for step, made in found.steps if step.model == "s")
        return receipt


def became(receipt: Receipt) -> tuple[int, int, int]:
    """How many sessions are new, extended and removed, as a receipt says."""
    return receipt.sessions_new, receipt.sessions_extended, receipt.sessions_removed


def test_sessions_that_were_there_before_are_not_new(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Sessions that existed before a rebuild are not new; new minus removed is the rows gained.

    A rebuild of an incompatible or damaged table counts all its sessions as new and removed.
    """
    land = Visits(tmp_path, warehouse)
    for user, times in {"x": ("10:00",), "y": ("11:00",), "z": ("12:00",), "q": LONG}.items():
        land.visit(user, *times)
    found = land.built(SESSIONS.replace("NAME", "a"))
    assert (found.written, found.removed) == (3, 0)
    assert (became(found), found.sessions_quarantined) == ((3, 0, 0), 1)

    # x ends later; y begins earlier and so is another session; q was in quarantine, r was not
    for user, times in {"x": ("10:20",), "y": ("10:45",), "w": ("09:00",), "r": LONG}.items():
        land.visit(user, *times)
    again = SESSIONS.replace("count(*) AS NAME", "count(id) AS b")
    found = land.built(again)
    assert (found.written, found.removed) == (4, 3)
    assert (became(found), found.sessions_quarantined) == ((2, 1, 1), 1)

    # a query that leaves most of them out
    found = land.built(
        SESSIONS.replace("count(*) AS NAME FROM c", "max(id) AS b FROM c WHERE u = 'x'")
    )
    assert (found.written, found.removed) == (1, 4)
    assert (became(found), found.sessions_quarantined) == ((0, 0, 3), 0)

    land.built(TABLE)
    found = land.built(again)
    assert (found.written, found.removed, became(found)) == (4, 14, (4, 0, 14))
    for file in (warehouse / land.name / "s" / "data").rglob("*.parquet"):
        file.write_bytes(b"PAR1" + b"x" * (file.stat().st_size - 8) + b"PAR1")
    found = land.built(SESSIONS.replace("count(*) AS NAME", "max(id) AS b"))
    assert (found.written, found.removed, became(found)) == (4, 4, (4, 0, 4))
    assert land.proven()
