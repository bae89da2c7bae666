"""A project in one process: an Iceberg source, a lookup, a view, and models over them."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
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
        """Run, prove every table, and name the models that were built."""
        result = api.run(self.project)
        report = api.verify(self.project)
        assert [verdict.model for verdict in report.models if not verdict.equal] == []
        return [step.model for step, _ in result.steps]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """A table's rows, in order."""
        found = api.lake(self.project).rows(table).to_pylist()
        return sorted(tuple(row.values()) for row in found)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A project that was run once."""
    root = tmp_path_factory.mktemp("project")
    made = Lake(root)
    made.clicks.append(
        clicks("""
            1 ann 2024-03-09T23:50 0.00
            2 ann 2024-03-10T00:05 9.99
            3 bob 2024-03-10T12:00 1.00
        """)
    )
    made.run()
    yield made
    shutil.rmtree(root)


class TestProject:
    """Each outside change rebuilds exactly the affected tables; the tests build on each other."""

    def test_the_first_run_builds_everything(self, lake: Lake) -> None:
        """A first run builds everything, and a session over midnight counts for the day it
        started.
        """
        assert lake.rows("countries") == [
            (dt.date(2024, 3, 9), "de", 1),
            (dt.date(2024, 3, 10), "us", 1),
        ]
        assert lake.rows("top") == [("ann", Decimal("9.99")), ("bob", Decimal("1.00"))]

    def test_only_an_appended_row_is_read(self, lake: Lake) -> None:
        """A row appended to the Iceberg source extends a
        session; the counts by country are unchanged.
        """
        lake.clicks.append(clicks("4 bob 2024-03-10T12:20 2.00"))

        assert lake.run() == ["events", "sessions", "countries", "top"]
        assert lake.rows("top") == [("ann", Decimal("9.99")), ("bob", Decimal("3.00"))]

    def test_a_delete_moves_a_session_to_another_day(self, lake: Lake) -> None:
        """When its first event is deleted, a session starts later, on the next day."""
        lake.clicks.delete("id = '1'")

        lake.run()

        assert lake.rows("countries") == [
            (dt.date(2024, 3, 10), "de", 1),
            (dt.date(2024, 3, 10), "us", 1),
        ]

    def test_a_changed_lookup_rebuilds_its_readers_alone(self, lake: Lake) -> None:
        """A corrected row of a lookup makes stale the cells that read it, and no others."""
        lake.users("ann,fr", "bob,us")

        assert lake.run() == ["raw.users", "countries"]
        assert lake.rows("countries") == [
            (dt.date(2024, 3, 10), "fr", 1),
            (dt.date(2024, 3, 10), "us", 1),
        ]

    def test_nothing_new_is_nothing_done(self, lake: Lake) -> None:
        """A run with nothing new carries out no step."""
        assert lake.run() == []

    def test_temporary_views_do_not_accumulate(self, lake: Lake) -> None:
        """The temporary names of a query's inputs are dropped
        after it, so a long process does not collect them.
        """
        catalog = api.session(lake.project)._jsparkSession.sessionState().catalog()

        # The public list fails where the session's catalog is Iceberg's.
        assert catalog.listLocalTempViews("*").isEmpty()

    def test_a_view_is_always_current(self, lake: Lake) -> None:
        """A view is evaluated over the current tables."""
        found = api.evaluate(lake.project, "paying").to_pylist()

        assert sorted(row["user_id"] for row in found) == ["ann", "bob"]

    def test_a_reformatted_query_changes_nothing(self, lake: Lake) -> None:
        """Comments and layout are not part of a definition, so a reformatted query builds
        nothing.
        """
        text = MODELS["top"].replace("SELECT", "-- richest first\nSELECT  ")
        (lake.root / "models" / "top.sql").write_text(text, encoding="utf-8")

        assert lake.run() == []

    def test_a_changed_query_rebuilds_the_model(self, lake: Lake) -> None:
        """A changed query makes the whole model stale."""
        text = MODELS["top"].replace("sum(revenue)", "max(revenue)")
        (lake.root / "models" / "top.sql").write_text(text, encoding="utf-8")

        assert lake.run() == ["top"]
