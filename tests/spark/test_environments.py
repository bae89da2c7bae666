"""Environments with Spark, beside production; one becomes production, and goes again."""

from __future__ import annotations

import json
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.running.commands import infold
from tests.spark.project import SparkProject

from infold import api
from infold.api import environments
from infold.api.environments import (
    diff_environment,
    drop_environment,
    environment_status,
    list_environments,
    show_environment,
    verify_environment,
)
from infold.api.opening import published_lake
from infold.core.model import table_name
from infold.core.report import SwapPreview

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
dev_target: dev
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, amount: int}
targets:
  dev: {}
  prod: {warehouse: tables, ledger: "sqlite:///prod.db", apply: manual}
"""
EVENTS = "materialization: events\nunique_key: [id]\ntimeseries: {event_time_column: ts}"
SERIES = "timeseries: {event_time_column: day, partition_column: day, granularity: day}"
TABLE = f"materialization: table\n{SERIES}\nincremental: {{}}"
CUMULATIVE = "materialization: cumulative_aggregate"
MODELS = {
    "clicks": (EVENTS, "SELECT id, who, ts, amount FROM raw.clicks"),
    "daily": (
        TABLE.replace("event_time_column: day", "event_time_column: ts"),
        """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM clicks GROUP BY 1""",
    ),
    "rolling": (
        TABLE,
        """SELECT day, sum(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS n
FROM daily""",
    ),
    "visits": (
        "materialization: sessions\nsessions: {user: who, gap: 30 minutes}",
        "SELECT count(*) AS clicks, sum(amount) AS amount FROM clicks",
    ),
    "people": (CUMULATIVE, "SELECT who, count(*) AS visits FROM visits GROUP BY who"),
    "spenders": (CUMULATIVE, "SELECT who, sum(amount) AS amount FROM clicks GROUP BY who"),
}
CHANGED = {
    "daily": (
        MODELS["daily"][0],
        MODELS["daily"][1].replace("\nFROM", ", max(amount) AS top\nFROM"),
    ),
    "visits": (MODELS["visits"][0].replace("30 min", "60 min"), MODELS["visits"][1]),
    "tops": (TABLE, "SELECT day, top FROM daily"),
}
"""
Another environment: a column more in the middle (``rolling`` uses none of it), another gap (of
which ``people`` has other rows), and a new model. ``clicks`` and ``spenders`` are shared.
"""
FILTERED = {"clicks": (EVENTS, f"{MODELS['clicks'][1]} WHERE amount <> 2")}
"""Other events as well: all that reads them has other rows."""


class Shop(SparkProject):
    """Production, and an environment ``dev``."""

    target = "prod"

    def __init__(self, root: Path) -> None:
        super().__init__(root, PROJECT)
        self.define(MODELS)
        self.clicks = self.files = 0

    def define(self, models: dict[str, tuple[str, str]]) -> None:
        """The files of models."""
        for name, (head, sql) in models.items():
            self.model(name, f"---\n{head}\n---\n{sql}\n")

    def land(self, *clicks: tuple[str, str, int]) -> None:
        """A file of clicks: who, when, how much."""
        lines = ["id,who,ts,amount"]
        for click in clicks:
            lines.append(",".join(map(str, (self.clicks, *click))))
            self.clicks += 1
        self.files += 1
        self.write(f"landing/{self.files}.csv", "\n".join(lines) + "\n")

    def begin(self) -> None:
        """Three days of clicks, applied."""
        self.land(
            ("ann", "2024-03-01T10:00:00", 1),
            ("ann", "2024-03-01T10:45:00", 2),
            ("bob", "2024-03-02T10:00:00", 3),
            ("bob", "2024-03-03T10:00:00", 4),
        )
        self.apply()

    def run(self) -> list[str]:
        """`infold run`; the models that it built."""
        return sorted(self.receipts())

    def run_environment(self) -> None:
        """`infold run --env dev`, by the files."""
        environments.run_environment(self.project(declared=True), "dev")

    def promote(self) -> SwapPreview:
        """`infold promote dev`."""
        shown = environments.find_promotion(self.project(), "dev")
        environments.promote(self.project(), shown)
        return shown

    def rollback(self) -> SwapPreview:
        """`infold rollback`."""
        shown = environments.find_rollback(self.project())
        environments.rollback(self.project(), shown)
        return shown

    def seen(self) -> tuple[list[int], list[int], list[int], dict[str, int]]:
        """What readers see: of each day the clicks, the largest amount, and the clicks of three
        days; how often each came.
        """
        tables = published_lake(self.project())
        daily, rolling, people = (
            sorted(tables.rows(name).to_pylist(), key=lambda row: next(iter(row.values())))
            for name in ("daily", "rolling", "people")
        )
        return (
            [row["n"] for row in daily],
            [row["top"] for row in daily if "top" in row],
            [row["n"] for row in rolling],
            {row["who"]: row["visits"] for row in people},
        )


NAMES = "columns: {who: string, name: string}"
LOOKUP = f"  raw.names:\n    path: names.csv\n    {NAMES}\n"
NAMED = """SELECT cast(c.ts AS date) AS day, n.{0} AS name, count(*) AS n
FROM clicks c JOIN raw.names n ON c.who = n.who GROUP BY 1, 2"""
MORE = {
    "active": ("materialization: view", "SELECT * FROM daily WHERE n > 0"),
    "weekly": (
        "materialization: table",
        "SELECT date_trunc('WEEK', day) AS week, sum(n) AS n FROM active GROUP BY 1",
    ),
    "named": (MODELS["daily"][0], NAMED.format("name")),
}
"""A view and a table over it, and a lookup."""


def production(shop: Shop) -> tuple[Any, ...]:
    """Everything of production: files, rows of the catalog, and what the ledger knows."""
    project = shop.project()
    book = api.ledger_of(project)
    own = {one.key for each in book.environments().values() for one in each.tables}
    with sqlite3.connect(project.catalog_db) as catalog:
        rows = catalog.execute("SELECT table_name, metadata_location FROM iceberg_tables")
        tables = sorted(row for row in rows if "__" not in row[0].removeprefix("raw__"))
    files = sorted(
        (str(file), sha256(file.read_bytes()).hexdigest())
        for name, _ in tables
        for file in (project.warehouse / "shop" / name).rglob("*")
        if file.is_file()
    )
    names = [name for name in book.newest_versions() if name not in own]
    known = [(book.versions(n), book.cells(n), book.files(n), book.changes(n, 0)) for n in names]
    traces = {name: trace for name, trace in book.traces().items() if name not in own}
    return tables, files, names, known, traces, book.applied()


def own(shop: Shop, name: str) -> set[str]:
    """The models with tables of an environment's own."""
    return set(api.ledger_of(shop.project()).environments()[name].own)


def test_an_environment_beside_production(tmp_path: Path) -> None:
    """It has tables of its own where rows differ and nowhere else, also of sources that are read in
    another way; production is untouched, and nothing stays of it.
    """
    shop = Shop(tmp_path / "shop")
    shop.configure("targets:", f"{LOOKUP}targets:")
    shop.write("names.csv", "who,name\nann,Ann\nbob,Bob\n")
    shop.define(MORE)
    shop.begin()
    before = production(shop)
    other = "columns: {who: string}\n    on_new_columns: ignore"
    shop.configure(NAMES, other)
    head, daily = MODELS["daily"]
    shop.define({"daily": (head, daily.replace("count(*) AS n", "count(*) + 1 AS n"))})
    shop.define({"named": (MODELS["daily"][0], NAMED.format("who"))})
    shop.run_environment()

    assert own(shop, "dev") == {"daily", "rolling", "weekly", "raw.names", "named"}
    report = verify_environment(shop.project(declared=True), "dev")
    assert {verdict.model for verdict in report.models if verdict.equal} == own(shop, "dev")
    found = {
        table.model: table for table in diff_environment(shop.project(declared=True), "dev").tables
    }
    assert (found["daily"].added, found["daily"].removed) == (0, 0)
    assert found["daily"].changed == found["daily"].rows[0] == found["daily"].rows[1] == 3
    assert all(
        one.before and one.after and one.after["n"] == one.before["n"] + 1
        for one in found["daily"].sample
    )
    assert found["weekly"].added == found["weekly"].removed > 0  # nothing tells its rows apart
    names = show_environment(shop.project(declared=True), "dev", "raw.names").to_pylist()
    assert sorted(row["who"] for row in names) == ["ann", "bob"]
    _, states = environment_status(shop.project(declared=True), "dev")
    assert {state.model for state in states} >= {"daily", "raw.names"}
    [size] = list_environments(shop.project())
    assert size.bytes > 0 < size.rows["daily"]

    shop.configure(other, NAMES)
    shop.define({"named": MORE["named"]})
    shop.define({"daily": (head, daily.replace("FROM clicks", "FROM clicks WHERE id >= 0"))})
    shop.run_environment()
    assert own(shop, "dev") == {"daily"}  # the same rows
    code, printed = infold(shop.project(declared=True), "diff", "dev", "--json")
    assert (code, json.loads(printed)["tables"][0]["equal"]) == (5, True)

    drop_environment(shop.project(), "dev")
    left = {place.name for place in (shop.project().warehouse / "shop").iterdir()}
    assert left == {*MODELS, "weekly", "named", "raw__names"}
    assert production(shop) == before
    active = api.evaluate(shop.project(), "active").to_pylist()
    assert sorted(row["n"] for row in active) == [1, 1, 2]
    # The public list fails where the session's catalog is Iceberg's.
    views = api.session(shop.project())._jsparkSession.sessionState().catalog()
    assert views.listLocalTempViews("*").isEmpty()


def test_production_and_back(tmp_path: Path) -> None:
    """
    A promote swaps the tables that differ. Readers shared by proof are not built again.

    Runs go on with the new tables; a rollback gives the names back to the old ones, which the next
    run brings up to date. A second promote follows the first, and what is not kept any more is
    dropped. Where a target publishes together, readers see all tables of each at once.
    """
    shop = Shop(tmp_path / "shop")
    shop.configure("apply: manual", "apply: manual, publish: together")
    shop.begin()
    shop.define(CHANGED)
    shop.run_environment()
    assert shop.seen() == ([2, 1, 1], [], [2, 3, 4], {"ann": 2, "bob": 2})
    book, tables = api.ledger_of(shop.project()), api.lake_of(shop.project())
    at = {model: tables.location(key) for model, key in book.environments()["dev"].own.items()}
    [daily] = diff_environment(shop.project(declared=True), "dev", ["daily"]).tables
    assert [name for name, old, new in daily.columns if not old] == ["top"]
    assert (daily.added, daily.removed, daily.changed) == (0, 0, 0)

    promoted = shop.promote()

    assert {one.model for one in promoted.tables} == {"daily", "visits", "people", "tops"}
    assert promoted.readers == ()
    assert {model: tables.location(model) for model in at} == at
    assert [step for run in book.runs(1) for step in run.steps if step.action == "promote"]
    assert shop.seen() == ([2, 1, 1], [2, 3, 4], [2, 3, 4], {"ann": 1, "bob": 2})
    assert shop.run() == []

    shop.land(("ann", "2024-03-01T11:40:00", 5), ("cyd", "2024-03-05T09:00:00", 6))
    assert shop.run() == sorted([*MODELS, "tops"])
    late = [5, 3, 4, 6]
    assert shop.seen() == ([3, 1, 1, 1], late, [3, 4, 5, 2], {"ann": 1, "bob": 2, "cyd": 1})

    rolled = shop.rollback()

    assert set(rolled.readers) == {"rolling"}
    assert tables.location("tops") is None
    assert shop.seen()[:2] == ([2, 1, 1], [])
    assert set(shop.run()) == {"daily", "visits", "people", "rolling"}
    assert shop.seen() == ([3, 1, 1, 1], [], [3, 4, 5, 2], {"ann": 3, "bob": 2, "cyd": 1})

    shop.define(FILTERED)
    shop.run_environment()
    everything = shop.promote()
    assert {one.model for one in everything.tables} == {*MODELS, "tops"}
    assert shop.seen() == ([2, 1, 1, 1], late, [2, 3, 4, 2], {"ann": 2, "bob": 2, "cyd": 1})

    kept = [key for swap in book.swaps() for key in swap.kept.values() if key is not None]
    there = [key for key in kept if tables.location(table_name(key)) is not None]
    assert there == kept
    shop.configure("apply: manual", "apply: manual, keep_old: 1 millisecond")
    notes = api.run(shop.project()).notes
    assert [note for note in notes if "replaced were dropped" in note]
    assert book.swaps() == ()
    assert [key for key in there if tables.location(table_name(key)) is not None] == []
    folders = {path.name for path in (shop.root / "tables" / "shop").iterdir()}
    used = {Path(at).parent.parent.name for at in book.locations().values() if "/" in at}
    assert folders == used
