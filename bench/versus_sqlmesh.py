"""One more day into sixty: three models built cell by cell, against SQLMesh with the same SQL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from bench import runs
from bench.first_builds import forget
from bench.generate import DAY, FIRST_DAY, file_name, sessions, write
from bench.measure import Clock, Line, Size, ratio
from bench.project import DATA, SOURCES

from infold import api

SQLMESH = "0.236.4"
DAYS = 60
CORES = 2
TASKS = 4
"""How many models may be in hand at the same time: SQLMesh's default for Spark."""
FIRST = 30
"""Days that are not counted: each JVM still compiles much of what a day takes."""
LEAST = 15
"""Days that are counted, if not more: they are over in a second."""
PAUSE = 3.0
"""Seconds before each begins: its JVM has compiled and swept by then what the others leave."""

MODELS = {
    "daily_pages": """SELECT cast(event_ts AS date) AS day, url, count(*) AS events,
  sum(amount) AS revenue
FROM raw.clicks
WHERE event_ts BETWEEN @start_ts AND @end_ts
GROUP BY cast(event_ts AS date), url""",
    "daily_users": """SELECT cast(event_ts AS date) AS day, count(*) AS events,
  count(DISTINCT user_id) AS users, max(amount) AS largest
FROM raw.clicks
WHERE event_ts BETWEEN @start_ts AND @end_ts
GROUP BY cast(event_ts AS date)""",
    "hourly": """SELECT cast(event_ts AS date) AS day, hour(event_ts) AS hour, count(*) AS events,
  count(DISTINCT user_id) AS users, sum(amount) AS revenue
FROM raw.clicks
WHERE event_ts BETWEEN @start_ts AND @end_ts
GROUP BY cast(event_ts AS date), hour(event_ts)""",
}
"""The very same text for both; the filters that SQLMesh needs are accepted by infold."""

OURS = """\
---
materialization: table
timeseries: {{event_time_column: day, partition_column: day, granularity: day}}
incremental: {{}}
---
{sql}
"""
THEIRS = """\
MODEL (
  name shop.{name},
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  start '{start}',
  cron '@daily',
  table_format iceberg
);
{sql}
"""
PROJECT = f"""\
name: shop
{SOURCES}targets:
  dev: {{engine: {{master: "local[{CORES}]"}}}}
"""
COLUMNS = """\
- name: raw.clicks
  columns:
    event_id: string
    user_id: string
    event_ts: timestamp
    url: string
    amount: decimal(18,2)
"""


def one_day_into_sixty(size: Size) -> list[Line]:
    """A day of events into sixty, three models in a warm session, against SQLMesh's same SQL."""
    repeats = max(size.repeats, LEAST)
    files = _files(size, DAYS + FIRST + repeats)
    with (
        _SqlmeshProcess(_sqlmesh_project("spark"), "spark") as stock,
        _SqlmeshProcess(_sqlmesh_project("infold"), "infold") as tuned,
    ):
        return _measured(files, _infold_project(), stock, tuned)


@dataclass(frozen=True)
class _Day:
    """What one day took: to take in its file, to build the models; and how that was done."""

    landed: float
    models: float
    about: str


@dataclass
class _Timed:
    """One of those that are compared: carries out the day of a number, and is timed."""

    day: Callable[[int], _Day]
    models: Clock = field(default_factory=Clock)
    whole: Clock = field(default_factory=Clock)
    about: str = ""

    def carry_out(self, at: int, *, counted: bool) -> None:
        """One day more; the first ones are not counted."""
        time.sleep(PAUSE)
        took = self.day(at)
        self.about = took.about
        if counted:
            self.models.add(took.models)
            self.whole.add(took.landed + took.models)


def _measured(
    files: list[Path], root: Path, stock: _SqlmeshProcess, tuned: _SqlmeshProcess
) -> list[Line]:
    for one in (stock, tuned):
        one.ask("build", files=[str(file) for file in files[:DAYS]], until=_until(DAYS))
    _deliver(root, files[:DAYS])
    runs.large_session(api.open_project(root))
    runs.run(root)

    def our_day(at: int) -> _Day:
        _deliver(root, [files[at]])
        landed = runs.run(root, ["raw.clicks"])
        cost = runs.run(root, jobs=TASKS)
        commits = cost.result.receipt.commits
        return _Day(
            landed.seconds, cost.seconds, f"{cost.by_step}; {cost.jobs} jobs, {commits} commits"
        )

    def their_day(one: _SqlmeshProcess, at: int) -> _Day:
        times = one.ask("day", file=str(files[at]), until=_until(at + 1))
        return _Day(times["append"], times["run"], f"{times['jobs']} jobs")

    ours = _Timed(our_day)
    theirs, with_ours = (_Timed(partial(their_day, one)) for one in (stock, tuned))
    sides = (ours, theirs, with_ours)
    for at in range(DAYS, len(files)):
        # Who goes first changes from day to day: what one leaves in the caches helps the next.
        for turn in range(len(sides)):
            sides[(at + turn) % len(sides)].carry_out(at, counted=at >= DAYS + FIRST)
    for one in (stock, tuned):
        _compare(root, one)
    what = f"one day into {DAYS}, events in their table, three models, against SQLMesh {SQLMESH}"
    last = f"; the last day: {ours.about}, against {theirs.about}; all tables the same rows"
    settings = "the same, SQLMesh in a session with infold's settings"
    return [
        _line(what, ours.models, theirs.models, 0.8, last),
        _line(settings, ours.models, with_ours.models),
        _line(
            "from the day's file, ingest included, against one append and SQLMesh",
            ours.whole,
            theirs.whole,
        ),
        _line(settings, ours.whole, with_ours.whole),
    ]


def _line(
    what: str, ours: Clock, theirs: Clock, target: float | None = None, more: str = ""
) -> Line:
    detail = f"{ours} against {theirs}, ratio of the least {ratio(ours, theirs):.2f}{more}"
    return Line(what, ours.median / theirs.median, target, detail=detail)


def _until(days: int) -> str:
    """The midnight after so many days."""
    return str(date(1970, 1, 1) + timedelta(days=FIRST_DAY + days))


def _files(size: Size, days: int) -> list[Path]:
    """A file of events for each day, none of them late: both sides get the same rows."""
    folder = DATA / f"m-files-{size.scale:g}"
    rng = np.random.default_rng(1)
    number, found = 0, []
    for day in range(days):
        path = folder / file_name(day)
        rows = sessions(rng, size.rows(5_000_000) // DAYS, 300_000, FIRST_DAY + day, number)
        number += len(rows)
        if not path.exists():
            write(path, rows.take(rows.at < (FIRST_DAY + day + 1) * DAY))
        found.append(path)
    return found


def _deliver(root: Path, files: list[Path]) -> None:
    for file in files:
        (root / "landing" / file.name).hardlink_to(file)


def _infold_project() -> Path:
    root = DATA / "m-infold"
    forget(root)
    shutil.rmtree(root, ignore_errors=True)
    lay_out(root)
    return root


def lay_out(root: Path) -> None:
    """Write infold's project: its files, and no events yet."""
    (root / "models").mkdir(parents=True)
    (root / "landing").mkdir()
    (root / "infold.yml").write_text(PROJECT)
    for name, sql in MODELS.items():
        (root / "models" / f"{name}.sql").write_text(OURS.format(sql=sql))


def _sqlmesh_project(settings: str) -> Path:
    root = DATA / f"m-sqlmesh-{settings}"
    shutil.rmtree(root, ignore_errors=True)
    (root / "models").mkdir(parents=True)
    (root / "external_models.yaml").write_text(COLUMNS)
    for name, sql in MODELS.items():
        text = THEIRS.format(name=name, sql=sql, start=_until(0))
        (root / "models" / f"{name}.sql").write_text(text)
    return root


def _compare(ours: Path, sqlmesh: _SqlmeshProcess) -> None:
    """Both sides hold the same rows; else the times say nothing."""
    tables = api.lake_of(api.open_project(ours))
    for name in MODELS:
        rows = tables.rows(name)
        mine = {tuple(map(str, row.values())) for row in rows.to_pylist()}
        columns = ", ".join(rows.column_names)
        theirs = {
            tuple(row) for row in sqlmesh.ask("rows", query=f"SELECT {columns} FROM shop.{name}")
        }
        if mine != theirs or not mine:
            raise SystemExit(
                f"{name}: {len(mine - theirs)} rows here only, {len(theirs - mine)} there"
            )


class _SqlmeshProcess:
    """SQLMesh in a process of its own environment, which is made when it is missing."""

    def __init__(self, root: Path, settings: str) -> None:
        python, top = sqlmesh_python(), Path(__file__).parent.parent
        arguments = [str(root), str(CORES), str(TASKS), settings]
        self._process = subprocess.Popen(
            [python, Path(__file__).parent / "sqlmesh_process.py", *arguments],
            env={**os.environ, "PYTHONPATH": f"{top / 'src'}{os.pathsep}{top}"},
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(root / "sqlmesh.log").open("w"),
            text=True,
        )
        self._log = root / "sqlmesh.log"

    def ask(self, do: str, **arguments: object) -> Any:
        """One command, and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"SQLMesh ended; its last words:\n{self._log.read_text()[-3000:]}")
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def sqlmesh_python() -> Path:
    """The Python of an environment with SQLMesh and this environment's PySpark."""
    folder = DATA / f"sqlmesh-{SQLMESH}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"Installing SQLMesh {SQLMESH} into {folder}.", file=sys.stderr, flush=True)
        venv.create(folder, clear=True, with_pip=True)
        wanted = [f"sqlmesh=={SQLMESH}", f"pyspark=={version('pyspark')}"]
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted], check=True)
        (folder / "installed").touch()
    return python
