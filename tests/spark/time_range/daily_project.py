"""A project of models over days of clicks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from tests.spark.project import SparkProject, model

from infold import api
from infold.core.interval import Interval, parse_instant_text
from infold.core.report import RunResult

__all__ = ("DAILY", "DailyProject", "model")

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, day: date, amount: "decimal(18,2)"}
"""
PRODUCTION = """
dev_target: dev
targets:
  dev: {}
  prod: {warehouse: tables, ledger: "sqlite:///prod.db"}
"""
"""A target where definitions are applied by hand."""

DAILY = """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM raw.clicks GROUP BY 1"""
HOURLY = "SELECT date_trunc('HOUR', ts) AS hour, count(*) AS n FROM raw.clicks GROUP BY 1"
ROLLING = """SELECT day, n, sum(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week
FROM daily"""


class DailyProject(SparkProject):
    """Files of clicks, and models of them."""

    def __init__(self, root: Path, config: str = PROJECT) -> None:
        super().__init__(root, config)
        self.files = 0
        self.ids = 0

    def land(self, *times: str, who: str = "ann", day: str | None = "2024-03-01") -> str:
        """A file of clicks at some times; the name of the file."""
        lines = ["id,who,ts,day,amount"]
        for time in times:
            self.ids += 1
            lines.append(f"{self.ids},{who},{time},{day or ''},1.00")
        self.files += 1
        self.write(f"landing/{self.files}.csv", "\n".join(lines) + "\n")
        return f"{self.files}.csv"

    def run(self) -> RunResult:
        """One run, after which all tables equal their definitions."""
        result = self.go()
        self.verify()
        return result

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """A table's rows with the values that they have, in order."""
        lake = api.lake_of(self.project(downgrade=True))
        found = lake.rows(table, columns=list(columns) or None).to_pylist()
        return sorted(tuple(row.values()) for row in found)


class Production(DailyProject):
    """A project whose definitions are applied by hand."""

    target = "prod"

    def __init__(self, root: Path) -> None:
        super().__init__(root, PROJECT + PRODUCTION)


def days(first: str, count: int, at: str = "12:00") -> list[str]:
    """One time on each of some days."""
    start = dt.date.fromisoformat(first)
    return [f"{start + dt.timedelta(days=n)}T{at}:00Z" for n in range(count)]


def cells(result: RunResult, name: str) -> int:
    """How many cells of a model a run built."""
    return sum(receipt.cells_built for step, receipt in result.steps if step.model == name)


def commits(result: RunResult, name: str) -> int:
    """How often a run committed a model."""
    return sum(receipt.commits for step, receipt in result.steps if step.model == name)


def window(start: str, end: str) -> Interval:
    """A stretch of days."""
    return Interval(parse_instant_text(start), parse_instant_text(end))
