"""A project with a ledger that was written by hand: no tables, no Spark, and names full of HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from infold import api
from infold.core.definition import digest_of
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import DAY, Interval, parse_instant_text
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.declare.definitions import definitions_of
from infold.lake.reading.listing import list_files
from infold.ledger import SqlLedger
from infold.running.ledger_consistency import warehouse_of

EVIL = "<img src=x onerror=boom()>"
"""What must never be read as HTML."""

FIRST = parse_instant_text("2024-03-01")

PROJECT = f"""\
name: shop
start: 2024-01-01
sources:
  raw.clicks:
    path: landing/*.json
    format: json
    event_time_column: event_ts
    columns: {{event_id: string, user_id: string, event_ts: timestamp, "{EVIL}": string}}
"""
CLICKS = f"""\
---
materialization: events
description: "One row a click {EVIL}"
tags: [core]
unique_key: [event_id]
timeseries: {{event_time_column: event_ts, granularity: day}}
---
SELECT event_id, user_id, event_ts, `{EVIL}` FROM raw.clicks
"""
DAILY = """\
---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}
incremental: {}
audits: [{not_null: day}]
---
SELECT cast(event_ts AS date) AS day, count(*) AS clicks FROM clicks GROUP BY 1
"""
NAMES = """\
---
materialization: view
---
SELECT DISTINCT user_id FROM clicks
"""


def day(number: int) -> Interval:
    """A day, counted from the first."""
    return Interval(FIRST + number * DAY, FIRST + (number + 1) * DAY)


def change(number: int, before: int, after: int) -> CellChange:
    """A day that had other rows before."""
    cell = day(number)
    added, removed = max(0, after - before), max(0, before - after)
    return CellChange(cell, added, removed, before, after, before * 7, after * 7, cell.start)


def lay_out(root: Path) -> Path:
    """The files of the project, two of them data; one has HTML in its name."""
    for name, text in (("clicks", CLICKS), ("daily", DAILY), ("names", NAMES)):
        path = root / "models" / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
    (root / "landing").mkdir()
    for name in ("first", EVIL):
        (root / "landing" / f"{name}.json").write_text("{}\n", encoding="utf-8")
    return root


@dataclass
class History:
    """Writes runs of the project into its ledger, as runs do."""

    project: Project
    book: SqlLedger
    number: int = 0

    def run(
        self, *steps: tuple[str, tuple[CellChange, ...], str], file: str = "", whole: bool = False
    ) -> str:
        """A run with steps: a model, what changed, and the detail of its reason; its id."""
        self.number += 1
        run = f"run-{self.number}"
        self.book.acquire(run)
        self.book.begin_run(run, "run", FIRST, {})
        if self.number == 1:
            self.book.set_owner(self.project.name, warehouse_of(self.project))
        definitions = definitions_of(self.project)
        digests = {name: digest_of(one) for name, one in definitions.items()}
        made = {digests[name]: one for name, one in definitions.items()}
        self.book.keep_definitions(made, digests, {})
        total, version = Receipt(), self.number
        for seq, (model, changes, why) in enumerate(steps):
            node, step = self.project[model], f"{run}-{seq}"
            inputs = {entry.name: version for entry in node.inputs if entry.name in self.project}
            detail = {
                "cells": [[one.cell.start, one.cell.end] for one in changes],
                "reasons": [{"cause": "late", "detail": why, "rows": 3}],
                "inputs": {name: [version - 1, version] for name in inputs},
                "version": version,
            }
            self.book.begin_step(run, step, seq, model, "fold", detail)
            added = sum(one.added for one in changes)
            receipt = Receipt(arrived=added, read=added, written=added, commits=1, seconds=0.5)
            files = self._files(file, changes) if node.source and file else None
            trace = Trace(model, node.fingerprint, inputs, definition=digests[model])
            outcome = Outcome(model, version, trace, changes, whole, files=files, receipt=receipt)
            self.book.finish_step(step, outcome)
            total += receipt
        self.book.finish_run(run, "done", total)
        self.book.release()
        return run

    def _files(self, name: str, changes: Iterable[CellChange]) -> FilesOutcome:
        source = self.project.sources["raw.clicks"]
        found, _ = list_files(self.project, source, api.now())
        ids = self.book.register_files(source.name, found)
        (file,) = (one for one in found if one.path.endswith(f"{name}.json"))
        id_, rows = ids[file.path], sum(one.added for one in changes)
        ingested = IngestedFile(
            id_, file.path, file.size, file.fingerprint, FIRST, rows=rows, received_at=api.now()
        )
        cells = tuple(FileCell(id_, one.cell, one.added) for one in changes)
        return FilesOutcome(source.name, (ingested,), cells=cells)


def history(root: Path) -> Path:
    """
    A project of two runs: five days at first; then a late file, for the second day and a sixth.

    The second day of `clicks` goes from 10 rows to 13, and its `daily` stays one row.
    """
    project = api.open_project(lay_out(root))
    made = History(project, api.ledger_of(project))
    days = tuple(change(number, 0, 10) for number in range(5))
    ones = tuple(change(number, 0, 1) for number in range(5))
    made.run(("clicks", days, "first run"), ("daily", ones, "first run"), file="first")
    made.run(
        ("clicks", (change(1, 10, 13), change(5, 0, 4)), f"1 new file {EVIL}"),
        ("daily", (change(5, 0, 1),), "7 rows in 2 cells of clicks"),
        file=EVIL,
    )
    made.book.close()
    return root
