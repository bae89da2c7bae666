"""A project of models over days of clicks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut

from infold import api
from infold.core.interval import Interval, parse_instant_text
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.report import RunResult

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.csv
    event_time_column: ts
    columns: {id: int, who: string, ts: timestamp, day: date, amount: "decimal(18,2)"}
"""


SERIES = "timeseries: {{event_time_column: {0}, partition_column: {0}, granularity: {1}}}"


DAILY = """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM raw.clicks GROUP BY 1"""


HOURLY = "SELECT date_trunc('HOUR', ts) AS hour, count(*) AS n FROM raw.clicks GROUP BY 1"


ROLLING = """SELECT day, n, sum(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week
FROM daily"""


def model(sql: str, incremental: str = "{}", column: str = "day", granularity: str = "day") -> str:
    """A model's file."""
    series = SERIES.format(column, granularity)
    return f"---\nmaterialization: table\n{series}\nincremental: {incremental}\n---\n{sql}\n"


class DailyProject:
    """A project in a folder, with files of clicks, run in this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("models", "landing"):
            (root / folder).mkdir(parents=True)
        (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
        self.files = 0
        self.ids = 0

    def models(self, **models: str) -> None:
        """Write models by name."""
        for name, text in models.items():
            (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def land(self, *times: str, who: str = "ann", day: str | None = "2024-03-01") -> str:
        """A file of clicks at some times; the name of the file."""
        lines = ["id,who,ts,day,amount"]
        for time in times:
            self.ids += 1
            lines.append(f"{self.ids},{who},{time},{day or ''},1.00")
        self.files += 1
        name = f"{self.files}.csv"
        (self.root / "landing" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return name

    def project(self, *, downgrade: bool = False) -> Project:
        """The project, read again as each command does."""
        return api.open_project(self.root, downgrade=downgrade)

    def run(self) -> RunResult:
        """One run, after which all tables equal their definitions."""
        result = self.go()
        self.verify()
        return result

    def go(
        self, asked: PlanOptions | None = None, *, downgrade: bool = False, **options: Any
    ) -> RunResult:
        """One run; ``options`` are those of ``PlanOptions``."""
        project = self.project(downgrade=downgrade)
        return api.run(project, asked=asked or PlanOptions(**options))

    def die_at(self, model: str, point: str, asked: PlanOptions | None = None) -> None:
        """A run of one model after the other that dies at that write point of that model."""
        with living(met=AllBut([(model, point)])) as life:
            api.run(self.project(), asked=asked, progress=life, jobs=1)
        assert life.dead

    def verify(self, *, differing: Collection[str] = ()) -> None:
        """Compare with the definitions over everything; some tables have to differ."""
        found = [verdict for verdict in api.verify(self.project()).models if not verdict.equal]
        wrong = {verdict.model: (verdict.note, verdict.differing[:3]) for verdict in found}
        assert wrong.keys() == {*differing}, wrong

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """A table's rows, in order."""
        found = api.lake(self.project(downgrade=True)).rows(table).to_pylist()
        return sorted(tuple(row.values()) for row in found)


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
