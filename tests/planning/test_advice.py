"""The notes of `check` on a valid project."""

from __future__ import annotations

from pathlib import Path

from tests.declare.shop import SHOP, write

from infold import api
from infold.planning.advice import project_advice

WEEKLY = """---
materialization: table
timeseries: {{event_time_column: event_ts, partition_column: day, granularity: {length}}}
incremental: {{start: {start}}}
---
SELECT cast(event_ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1
"""


def notes(root: Path, length: str, start: str) -> tuple[str, ...]:
    """The notes on a table with such cells and such a start."""
    text = WEEKLY.format(length=length, start=start)
    write(root, {**SHOP, "models/rare.sql": text})
    return project_advice(api.open_project(root))


def test_a_start_inside_a_cell_leaves_out_a_part_of_it(tmp_path: Path) -> None:
    """With the cell, the rows left out, and the next start; between cells there is no note."""
    for length, start in (("week", "2024-02-12"), ("month", "2024-02-01"), ("day", "2024-02-15")):
        assert notes(tmp_path / length, length, start) == ()
    [note] = notes(tmp_path / "inside", "week", "2024-02-15")

    assert note == (
        "rare: its start, 2024-02-15, lies inside a week. Of the week from 2024-02-12 to "
        "2024-02-19 it leaves out the rows whose day is before 2024-02-15: all of them, where day "
        "is the beginning of the week. Whole weeks begin on 2024-02-12 or 2024-02-19."
    )


def test_a_start_of_events_and_of_sessions(tmp_path: Path) -> None:
    """The note on a model's own start says what it leaves out."""
    files = {
        "models/clicks.sql": SHOP["models/clicks.sql"].replace(
            "unique", "start: 2024-03-01\nunique"
        ),
        "models/sessions.sql": SHOP["models/sessions.sql"].replace(
            "sessions:", "start: 2024-03-02\nsessions:"
        ),
    }
    write(tmp_path, {**SHOP, **files})

    clicks, sessions = project_advice(api.open_project(tmp_path))
    assert clicks == (
        "clicks: it leaves out rows of raw.clicks from before its start, 2024-03-01, and so does "
        "all that reads it"
    )
    assert sessions == (
        "sessions: it leaves out events from before its start, 2024-03-02: a session that goes on "
        "over that instant begins with its first event after it"
    )
