"""Environments with Spark: their tables equal a rebuild by their definitions, production stays."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
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
from infold.core.report import RunResult

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

    def run(self, name: str = "dev") -> RunResult:
        """Run the environment; production has not changed by that, and all is verified."""
        before = self.production()
        result = run_environment(self.project(), name)
        assert self.production() == before
        report = verify_environment(self.project(), name)
        assert [v.model for v in report.models if not v.equal] == []
        assert {v.model for v in report.models} == self.own(name)
        assert not plan_environment(self.project(), name).plan
        return result

    def own(self, name: str = "dev") -> set[str]:
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

    def rows(self, name: str | None = None) -> dict[str, list[str]]:
        """The rows of every stored model, of production or of an environment."""
        project, found = self.project(), {}
        for node in project:
            if node.model.kind.value == "view":
                continue
            table = (
                api.show(project, node.name)
                if name is None
                else show_environment(project, name, node.name)
            )
            found[node.name] = sorted(map(str, table.to_pylist()))
        return found

    def rebuilt(self) -> dict[str, list[str]]:
        """The rows of every stored model in another target, built from nothing by these files."""
        copy = Shop.__new__(Shop)
        copy.root = self.root.parent / f"copy{len(list(self.root.parent.iterdir()))}"
        shutil.copytree(
            self.root, copy.root, ignore=shutil.ignore_patterns("warehouse", ".infold", "*.db")
        )
        api.run(copy.project())
        return copy.rows()


def with_text(name: str, old: str, new: str, models: dict[str, str] = MODELS) -> dict[str, str]:
    """The models, with another text in one of them."""
    assert old in models[name]
    return {**models, name: models[name].replace(old, new)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Production, built."""
    made = Shop(tmp_path_factory.mktemp("environments") / "shop")
    made.arrive(20)
    api.run(made.project())
    return made


def test_an_environment_through_changes_and_arrivals(shop: Shop) -> None:
    """Changes of every kind, with arrivals in production in between: the environment has tables of
    its own where rows differ and nowhere else; each equals a rebuild, and production is untouched.
    """
    assert [step.model for step, _ in shop.run().steps] == []
    assert shop.own() == set()

    other = with_text("daily", "count(*) AS sessions", "count(*) + 1 AS sessions")
    shop.write(other)
    assert shop.own() == set()
    assert [step.model for step, _ in shop.run().steps] == ["daily", "weekly"]
    assert shop.own() == {"daily", "weekly"}

    found = {table.model: table for table in diff_environment(shop.project(), "dev").tables}
    assert (found["daily"].added, found["daily"].removed) == (0, 0)
    assert found["daily"].changed == found["daily"].rows[0] == found["daily"].rows[1] > 1
    assert all(
        one.before and one.after and one.after["sessions"] == one.before["sessions"] + 1
        for one in found["daily"].sample
    )
    assert found["weekly"].added == found["weekly"].removed > 0  # nothing tells its rows apart

    shop.arrive()
    shop.write(MODELS)
    api.run(shop.project())
    shop.write(other)
    done = shop.run()
    assert {step.model for step, _ in done.steps} == {"daily", "weekly"}

    shop.write(with_text("daily", "FROM sessions", "FROM sessions WHERE events > 0"))
    done = shop.run()  # the same rows
    assert shop.own() == {"daily"}
    same = diff_environment(shop.project(), "dev")
    assert ([table.equal for table in same.tables], same.equal) == ([True], False)
    code, printed = infold(shop.project(), "diff", "dev", "--json")
    assert (code, json.loads(printed)["tables"][0]["equal"]) == (5, True)
    assert any("production's has the same rows" in note for note in done.notes)
    assert shop.rows("dev") == shop.rows()

    shop.write(with_text("sessions", "sum(amount)", "max(amount) AS top, sum(amount)"))
    shop.run()
    assert shop.own() == {"sessions"}
    [table] = diff_environment(shop.project(), "dev", ["sessions"]).tables
    assert [name for name, old, new in table.columns if not old] == ["top"]
    assert (table.added, table.removed, table.changed) == (0, 0, 0)

    models = with_text("taken", ">= 0", ">= 2")
    models = with_text("raw_days", "count(*) AS n", "count(*) AS n, max(ts) AS last", models)
    models["best"] = "---\nmaterialization: table\n---\nSELECT max(clicks) AS n FROM users\n"
    shop.write(models)
    shop.arrive()
    shop.run()
    assert shop.own() == {
        *("clicks", "sessions", "daily", "weekly", "users", "kinds", "raw_days", "best")
    }
    api.run(by_production(shop, models))
    shop.run()
    assert shop.rows("dev") == shop.rebuilt()
    _, states = environment_status(shop.project(), "dev")
    assert {state.model for state in states} >= shop.own()
    [size] = list_environments(shop.project())
    assert size.bytes > 0 < size.rows["clicks"]

    drop_environment(shop.project(), "dev")
    assert api.ledger(shop.project()).environments() == {}
    left = {place.name for place in (shop.project().warehouse / "shop").iterdir()}
    assert left == {*MODELS, "raw__clicks", "raw__kinds", "infold__set_aside"} - {"taken", "good"}
    shop.write(MODELS)
    assert [v.model for v in api.verify(shop.project()).models if not v.equal] == []


def by_production(shop: Shop, after: dict[str, str]) -> Project:
    """The project with production's models; its files are as they were afterwards."""
    shop.write(MODELS)
    project = shop.project()
    shop.write(after)
    return project


def test_other_sources_and_entries_made_by_hand(shop: Shop) -> None:
    """A source that is read in another way, a lookup too, lands in the environment alone; entries
    that were made by hand hold there as well. Two environments do not touch each other.
    """
    shop.write(with_text("sessions", "30 minutes", "20 minutes"))
    text = PROJECT.replace(
        "columns: {kind: string, name: string}",
        "columns: {kind: string}\n    on_new_columns: ignore",
    )
    api.ledger(shop.project()).add_entries("sessions", [ManualEntry(0, "a", in_quarantine=True)])
    shop.run("gap")
    assert shop.own("gap") >= {"sessions", "daily"}
    assert not any("'a'" in row for row in shop.rows("gap")["sessions"])

    (shop.root / "infold.yml").write_text(text, encoding="utf-8")
    shop.write(with_text("kinds", "kinds.name", "kinds.kind AS name"))
    shop.run("other")
    assert shop.own("other") == {"raw.kinds", "kinds"}
    theirs = shop.rows("other")
    assert theirs["raw.kinds"] == ["{'kind': 'a'}", "{'kind': 'b'}"]
    assert all(rows == theirs[name] for name, rows in shop.rows().items() if "kinds" not in name)
    (shop.root / "infold.yml").write_text(PROJECT, encoding="utf-8")
    shop.write(MODELS)
    api.run(shop.project())
    assert sorted(api.ledger(shop.project()).environments()) == ["gap", "other"]


def test_killed(shop: Shop) -> None:
    """A run that is killed before it builds, after a commit, or when it drops what it no longer
    needs, is carried on by the next. Production goes on as it was in between, and takes the
    environment's tables neither for its own nor for those of removed models.
    """
    shop.write(with_text("daily", "count(*) AS sessions", "count(*) + 1 AS sessions"))
    run_environment(shop.project(), "dev")
    other = with_text("daily", "count(*) AS sessions", "count(*) + 2 AS sessions")
    shop.write(other)
    before = shop.production()

    for at in (
        "put_environment: after commit",
        "finish_step: before commit",
        "forget: after commit",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "infold", "-C", str(shop.root), "run", "--env", "dev"],
            env={**os.environ, "INFOLD_CRASH_AT": f"ledger {at}"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        assert shop.production() == before

    notes = api.run(by_production(shop, other)).notes
    assert not [note for note in notes if "no longer in" in note]
    shop.run()
    assert shop.own() == {"daily", "weekly"}
    left = {place.name for place in (shop.project().warehouse / "shop").iterdir()}
    known = api.ledger(shop.project()).environments().values()
    own = {one.key for each in known for one in each.tables if one.model == "daily"}
    assert {name for name in left if name.startswith("daily__")} == own
