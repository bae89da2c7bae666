"""A project in one process: an Iceberg source, a lookup, a view, and models over them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from infold import api
from infold.core.project import Project

pytestmark = pytest.mark.spark

PROJECT = """
name: ice
sources:
  raw.clicks:
    table: db.clicks
    catalog: src/catalog.db
    format: iceberg
    event_time_column: ts
    columns: {id: string, user_id: string, ts: timestamp, amount: "decimal(18,2)"}
  raw.users:
    path: users/*.csv
    columns: {user_id: string, country: string}
"""

MODELS = {
    "events": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: ts}
---
SELECT id, user_id, ts, amount FROM raw.clicks""",
    "sessions": """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS revenue FROM events""",
    "countries": """---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day}
incremental: {}
---
SELECT cast(s.session_start AS date) AS day, u.country, count(*) AS sessions
FROM sessions s LEFT JOIN raw.users u ON s.user_id = u.user_id GROUP BY ALL""",
    "paying": """---
materialization: view
---
SELECT session_id, user_id, revenue FROM sessions WHERE revenue > 0""",
    "top": """---
materialization: table
---
SELECT user_id, sum(revenue) AS revenue FROM paying GROUP BY user_id""",
}

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("user_id", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("amount", pa.decimal128(18, 2)),
    ]
)


def clicks(text: str) -> pa.Table:
    """Rows written as ``id user time amount``, one a line."""
    found = []
    for line in text.strip().splitlines():
        id_, user, time, amount = line.split()
        ts = dt.datetime.fromisoformat(f"{time}+00:00")
        found.append({"id": id_, "user_id": user, "ts": ts, "amount": Decimal(amount)})
    return pa.Table.from_pylist(found, schema=SCHEMA)


class Lake:
    """The project, its outside Iceberg table, and what runs do to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "users", "src"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        for name, text in MODELS.items():
            (root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")
        self.users("ann,de", "bob,us")
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{root}/src/catalog.db", warehouse=str(root / "src")
        )
        catalog.create_namespace("db")
        self.clicks = catalog.create_table("db.clicks", schema=SCHEMA)

    @property
    def project(self) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root)

    def users(self, *lines: str) -> None:
        """Write the lookup file."""
        text = "\n".join(("user_id,country", *lines, ""))
        (self.root / "users" / "users.csv").write_text(text, encoding="utf-8")

    def run(self) -> list[str]:
        """Run, and name the models that were built."""
        return [step.model for step, _ in api.run(self.project).steps]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """A table's rows, in order."""
        found = api.lake(self.project).rows(table).to_pylist()
        return sorted(tuple(row.values()) for row in found)


def test_each_outside_change_rebuilds_exactly_what_it_affects(tmp_path: Path) -> None:
    """
    Appended rows, a deleted one and a changed lookup reach the tables that they matter to.

    A session over midnight counts for the day it started, also where that is another day now. A
    view is evaluated over the current tables, and a long process collects no temporary names.
    """
    lake = Lake(tmp_path / "project")
    lake.clicks.append(
        clicks("""
            1 ann 2024-03-09T23:50 0.00
            2 ann 2024-03-10T00:05 9.99
            3 bob 2024-03-10T12:00 1.00
        """)
    )
    lake.run()
    ninth, tenth = dt.date(2024, 3, 9), dt.date(2024, 3, 10)
    assert lake.rows("countries") == [(ninth, "de", 1), (tenth, "us", 1)]
    assert lake.rows("top") == [("ann", Decimal("9.99")), ("bob", Decimal("1.00"))]

    lake.clicks.append(clicks("4 bob 2024-03-10T12:20 2.00"))
    assert lake.run() == ["events", "sessions", "countries", "top"]
    assert lake.rows("top") == [("ann", Decimal("9.99")), ("bob", Decimal("3.00"))]

    lake.clicks.delete("id = '1'")
    lake.run()
    assert lake.rows("countries") == [(tenth, "de", 1), (tenth, "us", 1)]

    lake.users("ann,fr", "bob,us")
    assert lake.run() == ["raw.users", "countries"]
    assert lake.rows("countries") == [(tenth, "fr", 1), (tenth, "us", 1)]

    found = api.evaluate(lake.project, "paying").to_pylist()
    assert sorted(row["user_id"] for row in found) == ["ann", "bob"]
    text = MODELS["top"].replace("SELECT", "-- richest first\nSELECT  ")
    (lake.root / "models" / "top.sql").write_text(text, encoding="utf-8")
    assert lake.run() == []
    assert api.verify(lake.project).equal
    # The public list fails where the session's catalog is Iceberg's.
    views = api.session(lake.project)._jsparkSession.sessionState().catalog()
    assert views.listLocalTempViews("*").isEmpty()
