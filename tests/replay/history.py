"""The demo's real history of late rows, delivered by the day on which it was received.

The same project as the demo's, its models in plain Python beside their
SQL, and the rows of its files cut by received day instead of by month.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from tests.arrivals.files import write
from tests.arrivals.play import Play
from tests.arrivals.programs import Op
from tests.arrivals.shape import Shape, SourceSpec, TableSpec, day_of
from tests.reference import aggregates as agg
from tests.reference.tables import events, grouped, sessions
from tests.reference.world import Row, Rules

import infold.demo
from infold.core.interval import DAY, HOUR, MINUTE, SECOND, Granularity
from infold.core.report import RunResult

COLUMNS = {
    "event_id": "string", "commit_id": "string", "user_id": "string", "event_ts": "timestamp",
    "received_ts": "timestamp", "path": "string",
}  # fmt: skip


def _model(name: str) -> str:
    """A model of the demo, as it is shipped."""
    return (files(infold.demo) / "project" / "models" / f"{name}.sql").read_text(encoding="utf-8")


_SESSIONS = {
    "files": agg.count(),
    "test_files": agg.count_if("path LIKE '%test%'", lambda row: "test" in row["path"]),
    "first_path": agg.first("path"),
    "last_path": agg.last("path"),
    "complete_at": agg.greatest("received_ts"),
}
_DAILY = {
    "sessions": agg.count(),
    "people": agg.count_distinct("user_id"),
    "files": agg.total("files"),
}

HISTORY = Shape(
    "history",
    sources=(
        SourceSpec(
            "repo.file_events", "events", "csv",
            Rules("event_ts", received="received_ts", tolerance=HOUR), COLUMNS,
            "path: landing/events/*.csv.gz\nformat: csv\ntimestamp_format: epoch_seconds\n"
            "event_time_column: event_ts\nreceived_column: received_ts",
            times="epoch_seconds",
        ),
    ),
    tables={
        "events": (
            TableSpec(
                "events", _model("events"), reads=(), source="repo.file_events",
                best=lambda rows: events(rows, key=["event_id"], time="event_ts"),
                keeps=lambda row: row["user_id"] is not None, granularity=Granularity.DAY,
            ),
        ),
        "sessions": (
            TableSpec(
                "sessions", _model("sessions"), reads=("events",),
                rows=lambda given: sessions(
                    given["events"],
                    user="user_id",
                    time="event_ts",
                    key=["event_id"],
                    gap=30 * MINUTE,
                    aggregates=_SESSIONS,
                ),
                granularity=Granularity.DAY, sessions=True,
            ),
        ),
        "daily": (
            TableSpec(
                "daily", _model("daily"), reads=("sessions",),
                rows=lambda given: grouped(
                    given["sessions"],
                    {"day": lambda row: day_of(row["session_start"])},
                    _DAILY,
                    cell="day",
                ),
                cell="day", granularity=Granularity.DAY,
            ),
        ),
    },
)  # fmt: skip


@cache
def received_days() -> list[list[Row]]:
    """All rows of the demo's data, one list for each day on which something was received."""
    rows: list[Row] = []
    for file in sorted((files(infold.demo) / "data").iterdir(), key=lambda each: each.name):
        if file.name.endswith(".csv.gz"):
            text = gzip.decompress(file.read_bytes()).decode()
            rows += [
                row
                | {name: int(row[name]) * SECOND for name in ("event_ts", "received_ts")}
                | {"path": row["path"] or None}
                for row in csv.DictReader(text.splitlines())
            ]
    rows.sort(key=lambda row: (row["received_ts"], row["event_id"]))
    return [list(group) for _, group in groupby(rows, lambda row: row["received_ts"] // DAY)]


EVERY_DAY = slice(None)


def deliveries(runs: int, some: slice = EVERY_DAY) -> Iterator[list[Row]]:
    """The received days in order, or some of them, in so many deliveries."""
    days = received_days()[some]
    for number in range(runs):
        part = days[number * len(days) // runs : (number + 1) * len(days) // runs]
        yield [row for day in part for row in day]


@dataclass
class Cost:
    """What the sessions of a replay have cost: rows of events, rows read and looked through."""

    arrived: int = 0
    read: int = 0
    scanned: int = 0
    runs: int = 0

    def add(self, result: RunResult) -> None:
        """Count one run."""
        for step, receipt in result.steps:
            if step.model == "events":
                self.arrived += receipt.arrived
            if step.model == "sessions":
                self.read += receipt.read
                self.scanned += receipt.scanned
        self.runs += 1

    def __str__(self) -> str:
        share, looked = (number / max(self.arrived, 1) for number in (self.read, self.scanned))
        return (
            f"{self.runs} runs, {self.arrived:,} rows arrived; sessions read {share:.2f} and "
            f"looked through {looked:.2f} rows for each"
        )


def replay(
    folder: Path, name: str, runs: int, checks: Sequence[int], some: slice = EVERY_DAY
) -> Cost:
    """Deliver and run so many times; tables are compared after the runs in ``checks``, and last."""
    play = Play(HISTORY, folder / name, name, folder / "warehouse", users=0)
    cost = Cost()
    play.after_run = cost.add
    source = HISTORY.sources[0]
    for number, rows in enumerate(deliveries(runs, some), start=1):
        path = f"{source.folder}/{number:04}{source.suffix}"
        play.changed()
        play.world.files[path] = tuple(rows)
        write(play.folder / "landing" / path, source, rows)
        play.world.as_of = rows[-1]["received_ts"] + DAY
        play.checking = number in checks or number == runs
        play.run(Op("all", 0))
    return cost
