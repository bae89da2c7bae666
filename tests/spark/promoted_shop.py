"""A project for promotes and rollbacks, with an oracle in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from infold import api
from infold.api import environment_runs, promoting
from infold.core.project import Project
from infold.core.report import Exchange, RunResult

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


class Shop:
    """A project in a folder, its production, and an environment ``dev``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        self.write(MODELS)
        self.clicks: list[tuple[int, str, datetime, int]] = []
        self.files = 0

    def write(self, models: dict[str, tuple[str, str]]) -> None:
        """The files of models."""
        for name, (head, sql) in models.items():
            text = f"---\n{head}\n---\n{sql}\n"
            (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def land(self, *clicks: tuple[str, str, int]) -> None:
        """A file of clicks: who, when, how much."""
        lines = ["id,who,ts,amount"]
        for who, at, amount in clicks:
            self.clicks.append((len(self.clicks), who, datetime.fromisoformat(at), amount))
            lines.append(f"{len(self.clicks) - 1},{who},{at},{amount}")
        self.files += 1
        text = "\n".join(lines) + "\n"
        (self.root / "landing" / f"{self.files}.csv").write_text(text, encoding="utf-8")

    def project(self) -> Project:
        """Production by its applied definitions."""
        return api.open_project(self.root, "prod")

    def declared(self) -> Project:
        """The definitions in the files."""
        return api.open_project(self.root, "prod", declared=True)

    def apply(self) -> RunResult:
        """`infold apply`."""
        return api.run(api.to_apply(self.declared()), command="apply")

    def run(self) -> list[str]:
        """`infold run`; the models that it built."""
        return sorted({step.model for step, _ in api.run(self.project()).steps})

    def run_environment(self) -> None:
        """`infold run --env dev`, by the files."""
        environment_runs.run_environment(self.declared(), "dev")

    def promote(self) -> Exchange:
        """`infold promote dev`."""
        shown = promoting.find_promotion(self.project(), "dev")
        promoting.promote(self.project(), shown)
        return shown

    def rollback(self) -> Exchange:
        """`infold rollback`."""
        shown = promoting.find_rollback(self.project())
        promoting.rollback(self.project(), shown)
        return shown

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of a table of production, in order."""
        found = api.show(self.project(), table).to_pylist()
        return sorted(tuple(row.values()) for row in found)

    def exact(self, *, changed: bool, filtered: bool = False) -> None:
        """Production's tables are what plain Python computes."""
        oracle = self.expected(changed=changed, filtered=filtered)
        assert {name: self.rows(name) for name in oracle} == oracle

    def expected(self, *, changed: bool, filtered: bool) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of each table by the definitions before or after the change."""
        clicks = [click for click in self.clicks if not filtered or click[3] != 2]
        days = defaultdict(list)
        for _, _, at, amount in clicks:
            days[at.date()].append(amount)
        daily = [
            (day, len(of), sum(of), *([max(of)] if changed else [])) for day, of in days.items()
        ]
        rolling = [
            (day, sum(len(days.get(day - timedelta(n), ())) for n in range(3))) for day in days
        ]
        visits = _visits(clicks, timedelta(minutes=60 if changed else 30))
        spent: Counter[str] = Counter()
        for _, who, _, amount in clicks:
            spent[who] += amount
        return {
            "daily": sorted(daily),
            "rolling": sorted(rolling),
            "people": sorted(Counter(visits).items()),
            "spenders": sorted(spent.items()),
            **({"tops": sorted((day, max(of)) for day, of in days.items())} if changed else {}),
        }


def _visits(clicks: Iterable[tuple[int, str, datetime, int]], gap: timedelta) -> list[str]:
    """Who came, once for each session."""
    found, last = [], dict[str, datetime]()
    for _, who, at, _ in sorted(clicks, key=lambda click: click[2]):
        if who not in last or at - last[who] > gap:
            found.append(who)
        last[who] = at
    return found
