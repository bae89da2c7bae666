"""Models built cell by cell: plans over many of them, bounds, and batches."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from pathlib import Path

from bench import runs
from bench.first_builds import year_of_events
from bench.measure import Clock, Line, Size, ratio
from bench.processes import infold
from bench.project import DATA, lay_out

from infold import api
from infold.core.interval import (
    DAY,
    HOUR,
    MINUTE,
    Granularity,
    Interval,
    Ranges,
    parse_instant_text,
)
from infold.core.plan import PlanOptions
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace

YEARS = 5
MODEL = """\
---
materialization: table
timeseries: {{event_time_column: {column}, partition_column: hour, granularity: hour}}
incremental: {{}}
---
SELECT date_trunc('hour', {column}) AS hour, {what} FROM {table}
"""
ROLLING = """\
---
materialization: table
timeseries: {event_time_column: day, partition_column: day, granularity: day}
incremental: {}
---
SELECT day, sessions, sum(sessions) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week
FROM daily
"""


def many_models(size: Size) -> list[Line]:
    """`infold plan` over 500 models of hourly cells in five years, nothing new: whole process."""
    root = DATA / "j"
    shutil.rmtree(root, ignore_errors=True)
    count = size.rows(500, 10)
    many(root, count)
    all_built(root, YEARS * 365)
    infold(root, "plan")  # reads the project and keeps what it read
    clock = Clock()
    for _ in range(max(5, size.repeats)):
        clock.add(infold(root, "plan")[0])
    what = f"`infold plan`, {count:,} models of {YEARS * 365 * 24:,} hourly cells, nothing new"
    return [Line(what, clock.least, 1.0, "s", str(clock)), *_algebra()]


def many(root: Path, count: int) -> None:
    """A project of ten chains of models."""
    lay_out(root)
    for file in (root / "models").iterdir():
        file.unlink()
    for number in range(count):
        first = number < 10  # ten chains
        text = MODEL.format(
            table="raw.clicks" if first else f"m{number - 10}",
            column="event_ts" if first else "hour",
            what="count(*) AS n FROM raw.clicks GROUP BY 1" if first else "n",
        )
        text = text.replace("GROUP BY 1 FROM raw.clicks", "GROUP BY 1")
        (root / "models" / f"m{number}.sql").write_text(text)


def all_built(root: Path, days: int) -> None:
    """A ledger in which every model is built for so many days, each cell with a row."""
    project = api.open_project(root)
    book = api.ledger_of(project)
    start = parse_instant_text("2020-01-01")
    cells = list(Granularity.HOUR.cells(Interval(start, start + days * DAY)))
    changes = tuple(
        CellChange(cell, 1, 0, 0, 1, 0, hash(cell) % 2**60, cell.start) for cell in cells
    )
    names = [node.name for node in project]
    book.acquire("r")
    book.begin_run("r", "run", start, {})
    for seq, name in enumerate(names):
        node = project[name]
        inputs = {entry.name: 1 for entry in node.inputs if entry.name in project}
        trace = Trace(name, node.fingerprint, inputs)
        book.begin_step("r", f"r-{seq}", seq, name, "build", {})
        given = changes if seq == 0 else ()
        book.finish_step(f"r-{seq}", Outcome(name, 1, trace, given))
    book.release()
    book.close()
    with sqlite3.connect(root / ".infold" / "ledger.db") as database:
        for name in names[1:]:
            database.execute(
                "INSERT INTO cells SELECT ?, cell_start, cell_end, rows, content, last "
                "FROM cells WHERE table_name = ?",
                (name, names[0]),
            )


def _algebra() -> list[Line]:
    """One missing cell among five years of cells of five minutes."""
    start = parse_instant_text("2020-01-01")
    whole = Ranges((Interval(start, start + YEARS * 365 * DAY),))
    at = start + 700 * DAY + 7 * HOUR
    hole = Ranges((Interval(at, at + 5 * MINUTE),))
    covered = whole - hole
    clock = Clock()
    for _ in range(200):
        begun = time.perf_counter()
        missing = whole - covered
        clock.add(time.perf_counter() - begun)
    assert missing == hole
    what = "one missing among five years of cells of five minutes"
    detail = f"{len(covered.parts)} ranges kept"
    return [Line(what, clock.least * 1000, 1.0, "ms", detail)]


def rolling_week(size: Size) -> list[Line]:
    """One late event under a rolling week: days of its input that are read."""
    shape = year_of_events(Size(size.scale * 0.1, size.repeats))
    from bench.generate import Deliveries, history

    root = lay_out(DATA / "k")
    shutil.rmtree(root / "landing", ignore_errors=True)
    (root / "landing").mkdir()
    (root / "models" / "rolling.sql").write_text(ROLLING)
    history(root / "landing", shape)
    deliveries = Deliveries(shape, root / "landing", 0)
    runs.run(root)
    deliveries.deliver_one(100)
    cost = runs.run(root)
    receipt = cost.receipt("rolling")
    return [
        Line(
            "days of the input that a rolling week reads for one late day",
            float(receipt.read),
            14.0,
            "days",
            f"{receipt.cells_built} days built, of {shape.days} that the table has",
        )
    ]


def sixty_days(size: Size) -> list[Line]:
    """Sixty days as one query, against a query for each day."""
    root = DATA / "l"
    shutil.rmtree(root, ignore_errors=True)
    lay_out(root)
    rows = size.rows(1_000_000)
    lines = ["event_id,user_id,event_ts,url,amount"]
    draw = random.Random(1)
    start = parse_instant_text("2024-01-01")
    for number in range(rows):
        at = start + draw.randrange(60 * DAY)
        seconds, micros = divmod(at, 1_000_000)
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        lines.append(f"{number},u{number % 5000},{text}.{micros:06}Z,/,1.00")
    (root / "landing" / "1.csv").write_text("\n".join(lines) + "\n")
    text = (root / "infold.yml").read_text()
    text = text.replace("*.parquet", "*.csv").replace("format: parquet", "format: csv")
    (root / "infold.yml").write_text(text)
    for name in ("sessions", "daily"):
        (root / "models" / f"{name}.sql").unlink()
    daily = MODEL.replace("hour", "day").format(
        table="events", column="event_ts", what="url, count(*) AS n, sum(amount) AS amount"
    )
    for name in ("warm", "whole", "each"):
        (root / "models" / f"{name}.sql").write_text(f"{daily.rstrip()} GROUP BY 1, 2\n")
    runs.run(root, ["events", "warm"])
    whole, each = Clock(), Clock()
    for clock, name, batch in ((whole, "whole", None), (each, "each", 1)):
        begun = time.perf_counter()
        project = api.open_project(root)
        result = api.run(project, asked=PlanOptions(batch_size=batch), select=[name])
        clock.add(time.perf_counter() - begun)
    return [
        Line(
            "60 days, a query for each against one for all",
            ratio(each, whole),
            None,
            detail=f"{each} against {whole}, {result.receipt.commits} commits against 1",
        )
    ]
