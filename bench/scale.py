"""A history of a million files, a thousand models and ten years of hours, made in the ledger."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Clock, Line, Size
from bench.processes import infold
from bench.project import DATA

from infold import api
from infold.core.definition import digest_of
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import DAY, Granularity, Interval, parse_instant_text
from infold.core.project import Node, Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.declare.definitions import definitions_of
from infold.lake.reading.listing import list_files
from infold.ledger import SqlLedger
from infold.running.ledger_consistency import warehouse_of

DAYS = 3_652
FIRST = "2015-01-01"
HOURLY = 36
"""How many tables have a cell for each hour; the others have one for each day."""
RUNS = 10
"""Runs after the first builds."""

PROJECT = """\
name: scale
start: 2015-01-01
sources:
  raw.clicks:
    path: landing/**/*.parquet
    format: parquet
    event_time_column: event_ts
    columns: {event_id: string, user_id: string, event_ts: timestamp, amount: "decimal(18,2)"}
"""
EVENTS = """\
---
materialization: events
unique_key: [event_id]
timeseries: {event_time_column: event_ts, granularity: hour}
---
SELECT event_id, user_id, event_ts, amount FROM raw.clicks WHERE user_id IS NOT NULL
"""
MODEL = """\
---
materialization: table
timeseries: {{event_time_column: {column}, partition_column: at, granularity: {cell}}}
incremental: {{}}
---
SELECT date_trunc('{cell}', {column}) AS at, {amount} AS amount FROM {table}{group}
"""


def simulated_history(size: Size) -> list[Line]:
    """Plan and run with nothing to do: 1,000,000 files, 1,000 models, ten years of hourly cells."""
    root = DATA / "x"
    files, models = size.rows(1_000_000), size.rows(1_000, 50)
    made = root / "made.txt"
    if not made.exists():
        shutil.rmtree(root, ignore_errors=True)
        lay_out(root, models)
        _touch_files(root, files)
        _write_history(root)
        made.write_text("")
    infold(root, "plan")  # reads the project and keeps what it read
    infold(root, "run")
    listing = Clock()
    project = api.open_project(root)
    for _ in range(3):
        with listing.timing():
            list_files(project, project.sources["raw.clicks"], api.now())
    floor = Clock()
    for _ in range(3):
        with floor.timing():
            _bare_listing(root / "landing")
    ledger = root / ".infold" / "ledger.db"
    lines = []
    for command in ("plan", "run"):
        clock = Clock()
        for _ in range(max(3, size.repeats)):
            clock.add(infold(root, command)[0])
        lines.append(
            Line(
                f"`infold {command}`, {files:,} files, {models:,} models, nothing new",
                clock.least,
                2.0,
                "s",
                str(clock),
            )
        )
    cells = sum(len(list(_cells(project[node.name]))) for node in project)
    return [
        *lines,
        Line(
            "of each, listing the files",
            listing.least,
            None,
            "s",
            f"the bare calls of the system: {floor}",
        ),
        Line(
            "the ledger",
            ledger.stat().st_size / 1e9,
            1.0,
            "GB",
            f"{cells:,} cells of {models:,} tables, {HOURLY} of them with hours; "
            f"{_bytes_by_table(ledger)}",
        ),
    ]


def lay_out(root: Path, models: int) -> None:
    """Events, and chains of tables behind them: some of hours, the others of days."""
    (root / "models").mkdir(parents=True)
    (root / "infold.yml").write_text(PROJECT)
    (root / "models" / "events.sql").write_text(EVENTS)
    for number in range(models - 1):
        hourly, first = number < HOURLY, number < 6
        text = MODEL.format(
            cell="hour" if hourly else "day",
            column="event_ts" if first else "at",
            amount="sum(amount)" if first or not hourly else "amount",
            table="events" if first else f"m{number - 6 if hourly else number % HOURLY}",
            group=" GROUP BY 1" if first or not hourly else "",
        )
        (root / "models" / f"m{number}.sql").write_text(text)


def _touch_files(root: Path, count: int) -> None:
    """So many files, as they would be delivered: a folder a day. They have a size and no blocks."""
    start = parse_instant_text(FIRST)
    for number in range(count):
        at = start + number * DAYS * DAY // count
        moment = time.strftime("%Y/%m/%d", time.gmtime(at // 1_000_000))
        path = root / "landing" / moment / f"clicks-{number:07}.parquet"
        if not path.parent.exists():
            path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(50_000)


def _bare_listing(folder: Path) -> int:
    """The least that any listing does: read each folder, and ask for each file's size and time."""
    found = 0
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            found += _bare_listing(Path(entry.path))
        else:
            entry.stat()
            found += 1
    return found


def _write_history(root: Path) -> None:
    """The ledger after first builds and :data:`RUNS` daily runs, through its own methods."""
    project = api.open_project(root)
    book = api.ledger_of(project)
    start, _ = _span()
    book.acquire("first")
    book.begin_run("first", "run", start, {})
    book.set_owner(project.name, warehouse_of(project))
    definitions = definitions_of(project)
    digests = {name: digest_of(definition) for name, definition in definitions.items()}
    book.keep_definitions({digests[name]: one for name, one in definitions.items()}, digests, {})
    history = _History(project, book, digests)
    for seq, node in enumerate(project):
        name, cells = node.name, _cells(node)
        files = _files_outcome(book, project) if node.source else None
        changes = (CellChange(c, 30, 0, 0, 30, 0, _content(c, name, 1), c.start) for c in cells)
        history.step("first", seq, node, 1, tuple(changes), files)
    book.finish_run("first", "done", Receipt())
    for number in range(RUNS):
        run = f"run-{number:06}"
        book.begin_run(run, "run", start, {})
        for seq, node in enumerate(project):
            cell = list(_cells(node, last=True))[-1]
            before, after = (_content(cell, node.name, number + at) for at in (1, 2))
            change = CellChange(cell, 1, 0, 30 + number, 31 + number, before, after, cell.start)
            history.step(run, seq, node, number + 2, (change,))
        book.finish_run(run, "done", Receipt())
    book.release()
    book.close()


@dataclass(frozen=True)
class _History:
    """Writes steps as runs do."""

    project: Project
    book: SqlLedger
    digests: Mapping[str, str]

    def step(
        self,
        run: str,
        seq: int,
        node: Node,
        version: int,
        changes: tuple[CellChange, ...],
        files: FilesOutcome | None = None,
    ) -> None:
        """A step of ``node`` that made ``version`` of its table, from the same of its inputs."""
        step = f"{run}-{seq}"
        inputs = {entry.name: version for entry in node.inputs if entry.name in self.project}
        trace = Trace(node.name, node.fingerprint, inputs, definition=self.digests[node.name])
        receipt = Receipt(read=30, written=1, commits=1, cells_built=1, seconds=1.0)
        reason = {"cause": "arrived", "detail": "30 rows added", "rows": 30}
        detail = {
            "cells": [[changes[0].cell.start, changes[-1].cell.end]],
            "reasons": [reason],
            "inputs": {name: [number - 1, number] for name, number in inputs.items()},
            "version": version,
        }
        self.book.begin_step(run, step, seq, node.name, "recompute", detail)
        outcome = Outcome(node.name, version, trace, changes, files=files, receipt=receipt)
        self.book.finish_step(step, outcome)


def _span() -> tuple[int, int]:
    start = parse_instant_text(FIRST)
    return start, start + DAYS * DAY


def _cells(node: Node, *, last: bool = False) -> Iterator[Interval]:
    start, end = _span()
    granularity = node.model.granularity or Granularity.DAY
    yield from granularity.cells(Interval(end - DAY if last else start, end))


def _content(cell: Interval, name: str, version: int) -> int:
    return hash((cell, name, version)) % 2**62


def _files_outcome(book: SqlLedger, project: Project) -> FilesOutcome:
    """All files of the source, each with rows in the cell of its hour."""
    source = project.sources["raw.clicks"]
    found, _ = list_files(project, source, api.now())
    ids = book.register_files(source.name, found)
    start, end = _span()
    hours = list(Granularity.HOUR.cells(Interval(start, end)))

    def ingested(file: ListedFile) -> IngestedFile:
        id_ = ids[file.path]
        return IngestedFile(id_, file.path, file.size, file.fingerprint, start, rows=100)

    return FilesOutcome(
        source.name,
        tuple(ingested(file) for file in found),
        cells=tuple(
            FileCell(ids[file.path], hours[number * len(hours) // len(found)], 100)
            for number, file in enumerate(found)
        ),
    )


def _bytes_by_table(ledger: Path) -> str:
    """The largest tables of the ledger, and what a row of each takes."""
    with closing(sqlite3.connect(ledger)) as database:
        sizes = database.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 8"
        ).fetchall()
    return ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in sizes)
