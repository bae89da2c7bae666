"""
Builds the demo's data: one gzipped CSV file per period of *arrival* from a single file of events.

The input is a CSV file (plain or gzipped) with the columns ``event_id, commit_id, user_id,
event_ts, received_ts, path``, times in epoch seconds. Years before ``--monthly`` make one file
each, later rows one file a month, by the time they were received: this is what a folder looks like
that something delivers into, and inside each file rows are as late as they really were.

    python bench/demo_data.py file_events.csv.gz src/infold/demo/data --monthly 2026
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

COLUMNS = ("event_id", "commit_id", "user_id", "event_ts", "received_ts", "path")


def read(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a CSV file, plain or gzipped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def period(received: int, monthly: int) -> str:
    """The file a row belongs to: ``2024``, or ``2026-03`` from the year ``monthly`` on."""
    at = datetime.fromtimestamp(received, UTC)
    return f"{at:%Y-%m}" if at.year >= monthly else f"{at:%Y}"


def write(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Writes rows in order of arrival; the same rows always give the same bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(
        sorted(rows, key=lambda row: (int(row["received_ts"]), row["commit_id"], row["path"]))
    )
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


def main() -> None:
    """Reads the command line, writes the files, prints their names and sizes."""
    parser = argparse.ArgumentParser(description="Build the demo's data.")
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--monthly", type=int, default=2026, help="first year with monthly files")
    options = parser.parse_args()

    periods: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for row in read(options.input):
        periods[period(int(row["received_ts"]), options.monthly)].append(row)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in sorted(periods.items()):
        path = options.output / f"received-{name}.csv.gz"
        write(path, rows)
        print(f"{path.name:<28} {len(rows):>7,} rows {path.stat().st_size:>9,} bytes")


if __name__ == "__main__":
    main()
