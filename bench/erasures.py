"""What it costs to erase persons, and to have no file with their rows."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench import runs
from bench.first_builds import year_of_events
from bench.measure import Clock, Line, Size, ratio
from bench.project import PROJECT, with_history

from infold import api

SECRET = "BENCH_ERASURES"
ERASURES = f"""\
erasures: {{person: {{raw.clicks: user_id}}}}
targets: {{dev: {{erasure_secret: "${{env:{SECRET}}}"}}}}
"""
WARM = 2
MANY = 10_000


def persons(size: Size) -> list[Line]:
    """One person of 10 M events and 10,000, against a click and a first build; and their files."""
    os.environ[SECRET] = "a secret of the measurements"
    root, deliveries = with_history("L", year_of_events(size))
    (root / "infold.yml").write_text(PROJECT + ERASURES)
    build = runs.run(root)
    click, erasure = Clock(), Clock()
    erased = 0
    for at in range(WARM + size.repeats):
        deliveries.deliver(1)
        cost = runs.run(root)
        api.erase(api.open_project(root), "person", [f"u{100 + at:08}"])
        other = runs.run(root)
        if at >= WARM:
            click.add(cost.seconds)
            erasure.add(other.seconds)
            erased = other.result.receipt.erased
    before = _files(root)
    started = time.perf_counter()
    api.purge(api.open_project(root))
    purged, rewritten = time.perf_counter() - started, len(_files(root) - before)
    many = [f"u{number:08}" for number in range(1_000, 1_000 + size.rows(MANY))]
    api.erase(api.open_project(root), "person", many)
    of_many = runs.run(root)
    return [
        Line(
            "one person erased from three tables, against a run for one click",
            ratio(erasure, click),
            2.0,
            detail=f"{erasure} against {click}; the last of {erased} events: {other.by_step}",
        ),
        Line(
            "files written by a purge of them, and seconds",
            rewritten,
            None,
            unit="files",
            detail=f"{purged:.1f} s; {len(before):,} files before",
        ),
        Line(
            f"{len(many):,} persons at once, against the first build",
            of_many.seconds / build.seconds,
            0.5,
            detail=f"{of_many.seconds:.1f} s against {build.seconds:.1f} s; "
            f"{of_many.result.receipt.erased:,} rows erased; {of_many.by_step}",
        ),
    ]


def _files(root: Path) -> set[Path]:
    """The data files of the tables."""
    return {path for path in (root / "warehouse").rglob("*.parquet") if path.is_file()}
