"""Environments with Spark: their tables equal a rebuild by their definitions, production stays."""

from __future__ import annotations

import json
import random
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.running.commands import infold

from infold import api
from infold.api.environment_runs import plan_environment, run_environment
from infold.api.environments import (
    diff_environment,
    drop_environment,
    environment_status,
    list_environments,
    show_environment,
    verify_environment,
)
from infold.core.manual_entry import ManualEntry
from infold.core.model import table_name
from infold.core.project import Project

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, amount: int, kind: string}
    on_drift: set_aside
  raw.kinds:
    path: kinds.csv
    columns: {kind: string, name: string}
"""
KINDS = "columns: {kind: string, name: string}"
SERIES = "timeseries: {{event_time_column: {0}, partition_column: {1}, granularity: day}}\n"
CELLS = "---\nmaterialization: table\n" + SERIES + "incremental: {{}}\n---\n"
MODELS = {
    "taken": "---\nmaterialization: view\n---\nSELECT * FROM raw.clicks WHERE amount >= 0\n",
    "clicks": "---\nmaterialization: events\nunique_key: [id]\n"
    + SERIES.format("ts", "ts")
    + "---\nSELECT id, who, ts, amount, kind FROM taken\n",
    "sessions": "---\nmaterialization: sessions\nsessions: {user: who, gap: 30 minutes}\n---\n"
    "SELECT count(*) AS events, sum(amount) AS revenue FROM clicks\n",
    "daily": CELLS.format("session_start", "day")
    + "SELECT cast(session_start AS date) AS day, count(*) AS sessions, sum(revenue) AS revenue\n"
    "FROM sessions GROUP BY 1\n",
    "good": "---\nmaterialization: view\n---\nSELECT * FROM daily WHERE sessions > 0\n",
    "weekly": "---\nmaterialization: table\n---\n"
    "SELECT date_trunc('WEEK', day) AS week, sum(sessions) AS sessions FROM good GROUP BY 1\n",
    "users": "---\nmaterialization: cumulative_aggregate\n---\n"
    "SELECT who, count(*) AS clicks, sum(amount) AS amount FROM clicks GROUP BY who\n",
    "raw_days": CELLS.format("ts", "day")
    + "SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks GROUP BY 1\n",
    "kinds": CELLS.format("ts", "day")
    + "SELECT cast(clicks.ts AS date) AS day, kinds.name, count(*) AS n FROM clicks\n"
    "LEFT JOIN raw.kinds ON clicks.kind = kinds.kind GROUP BY 1, 2\n",
}


class Shop:
    """A project in a folder, with files that arrive, and an environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        (root / "kinds.csv").write_text("kind,name\na,apple\nb,pear\n", encoding="utf-8")
        self.random, self.files = random.Random(7), 0
        self.write(MODELS)

    def write(self, models: dict[str, str]) -> None:
        """Make these the models of the project."""
        for file in (self.root / "models").iterdir():
            file.unlink()
        for name, text in models.items():
            (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def arrive(self, rows: int = 12) -> None:
        """A file of clicks of some days, some of them late, copies, or unusable."""
        some, lines = self.random, ["id,who,ts,amount,kind"]
        for _ in range(rows):
            at = (
                f"2024-03-0{some.randint(1, 4)}T{some.randint(0, 3):02}:{some.randint(0, 59):02}:00"
            )
            amount = some.choice(["1", "2", "3", "-1", "?"])
            lines.append(
                f"{some.randint(1, 60)},{some.choice('abc')},{at},{amount},{some.choice('abx')}"
            )
        self.files += 1
        file = self.root / "landing" / f"{self.files}.csv"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def project(self) -> Project:
        """The project of the files."""
        return api.open_project(self.root)

    def own(self, name: str) -> set[str]:
        """The models with tables of the environment's own."""
        return set(api.ledger(self.project()).environments()[name].own)

    def production(self) -> tuple[Any, ...]:
        """Everything of production: files, catalog, and rows of the ledger."""
        project = self.project()
        book = api.ledger(project)
        own = {one.key for each in book.environments().values() for one in each.tables}
        with sqlite3.connect(project.catalog_db) as catalog:
            rows = catalog.execute("SELECT table_name, metadata_location FROM iceberg_tables")
            tables = sorted(row for row in rows if "__" not in row[0].removeprefix("raw__"))
        folders = [project.warehouse / "shop" / name for name, _ in tables]
        files = sorted(
            (str(file), sha256(file.read_bytes()).hexdigest())
            for folder in folders
            for file in folder.rglob("*")
            if file.is_file()
        )
        names = [name for name in book.newest_versions() if name not in own]
        known = [
            (book.versions(n), book.cells(n), book.files(n), book.changes(n, 0)) for n in names
        ]
        traces = {n: trace for n, trace in book.traces().items() if n not in own}
        theirs = {table_name(key) for key in own}
        where = {
            n: at for n, at in book.locations().items() if table_name(n.split()[-1]) not in theirs
        }
        return tables, files, names, known, traces, book.applied(), where


def with_text(name: str, old: str, new: str, models: dict[str, str] = MODELS) -> dict[str, str]:
    """The models, with another text in one of them."""
    assert old in models[name]
    return {**models, name: models[name].replace(old, new)}


def test_an_environment_through_changes_and_arrivals(tmp_path: Path) -> None:
    """Changes of every kind, with arrivals in production in between: each environment has tables of
    its own where rows differ and nowhere else; each equals a rebuild, and production is untouched.
    """
    shop = Shop(tmp_path / "shop")
    shop.arrive(20)
    api.run(shop.project())
    before = shop.production()

    models = with_text("daily", "count(*) AS sessions", "count(*) + 1 AS sessions")
    shop.write(with_text("sessions", "sum(amount)", "max(amount) AS top, sum(amount)", models))
    done = run_environment(shop.project(), "dev")
    assert [step.model for step, _ in done.steps] == ["sessions", "daily", "weekly"]
    assert shop.own("dev") == {"sessions", "daily", "weekly"}
    found = {table.model: table for table in diff_environment(shop.project(), "dev").tables}
    assert (found["daily"].added, found["daily"].removed) == (0, 0)
    assert found["daily"].changed == found["daily"].rows[0] == found["daily"].rows[1] > 1
    assert all(
        one.before and one.after and one.after["sessions"] == one.before["sessions"] + 1
        for one in found["daily"].sample
    )
    assert found["weekly"].added == found["weekly"].removed > 0  # nothing tells its rows apart
    assert [name for name, old, new in found["sessions"].columns if not old] == ["top"]
    sessions = found["sessions"]
    assert (sessions.added, sessions.removed, sessions.changed) == (0, 0, 0)

    shop.write(with_text("daily", "FROM sessions", "FROM sessions WHERE events > 0"))
    done = run_environment(shop.project(), "same")
    assert shop.own("same") == {"daily"}
    code, printed = infold(shop.project(), "diff", "same", "--json")
    assert (code, json.loads(printed)["tables"][0]["equal"]) == (5, True)
    assert any("production's has the same rows" in note for note in done.notes)
    assert shop.production() == before

    shop.arrive()
    shop.write(MODELS)
    api.run(shop.project())
    before = shop.production()
    entry = ManualEntry(0, "a", in_quarantine=True)
    api.ledger(shop.project()).add_entries("sessions", [entry])
    models = with_text("taken", ">= 0", ">= 2")
    models = with_text("raw_days", "count(*) AS n", "count(*) AS n, max(ts) AS last", models)
    models = with_text("kinds", "kinds.name", "kinds.kind AS name", models)
    models["best"] = "---\nmaterialization: table\n---\nSELECT max(clicks) AS n FROM users\n"
    shop.write(models)
    text = PROJECT.replace(KINDS, "columns: {kind: string}\n    on_new_columns: ignore")
    (shop.root / "infold.yml").write_text(text, encoding="utf-8")
    run_environment(shop.project(), "dev")

    assert shop.own("dev") == {
        *("clicks", "sessions", "daily", "weekly", "users", "kinds", "raw_days", "best"),
        "raw.kinds",
    }
    assert not plan_environment(shop.project(), "dev").plan
    report = verify_environment(shop.project(), "dev")
    assert [v.model for v in report.models if not v.equal] == []
    assert {v.model for v in report.models} == shop.own("dev")
    theirs = show_environment(shop.project(), "dev", "raw.kinds").to_pylist()
    assert sorted(row["kind"] for row in theirs) == ["a", "b"]
    people = show_environment(shop.project(), "dev", "sessions").column("user_identifier")
    assert {*people.to_pylist()} == {"b", "c"}
    _, states = environment_status(shop.project(), "dev")
    assert {state.model for state in states} >= shop.own("dev")
    size = next(one for one in list_environments(shop.project()) if one.environment.name == "dev")
    assert size.bytes > 0 < size.rows["clicks"]

    for name in ("dev", "same"):
        drop_environment(shop.project(), name)
    assert api.ledger(shop.project()).environments() == {}
    left = {place.name for place in (shop.project().warehouse / "shop").iterdir()}
    assert left == {*MODELS, "raw__clicks", "raw__kinds", "infold__set_aside"} - {"taken", "good"}
    assert shop.production() == before
