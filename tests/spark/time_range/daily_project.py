"""A project of models over days of clicks; each run is verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

    def run(self, *, equal: bool = True, **asked: Any) -> RunResult:
        """Run, and see whether all tables equal their definitions."""
        as_of, given = asked.pop("as_of", None), asked.pop("asked", None)
        project = self.project(downgrade=asked.pop("downgrade", False))
        result = api.run(
            project,
            asked=given or PlanOptions(**asked),
            as_of=parse_instant_text(as_of) if as_of else None,
        )
        self.verify(equal=equal, project=project)
        return result

    def verify(self, *, equal: bool = True, project: Project | None = None) -> None:
        """Compare with the definitions over everything."""
        found = api.verify(project or self.project())
        wrong = [(v.model, v.note, v.differing[:3]) for v in found.models if not v.equal]
        assert (not wrong) is equal, wrong

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """A table's rows, in order."""
        found = api.lake(self.project(downgrade=True)).rows(table).to_pylist()
        return sorted(tuple(row.values()) for row in found)

    def plan(self, as_of: str, **asked: Any) -> dict[str, str]:
        """What would be built, and why the rest is not, by model."""
        project = self.project()
        found = api.make_plan(
            project, api.observe(project, as_of=parse_instant_text(as_of)), PlanOptions(**asked)
        )
        skipped = {left.model: left.why for left in found.skipped}
        return skipped | {step.model: str(step.action) for step in found.steps}


def window(start: str, end: str) -> Interval:
    """A stretch of days."""
    return Interval(parse_instant_text(start), parse_instant_text(end))
