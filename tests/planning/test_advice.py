"""The notes of `check` on a valid project."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SHOP, write

from infold import api
from infold.core.interval import show_instant
from infold.planning.plan_notes import project_advice

WEEKLY = """---
materialization: table
timeseries: {{event_time_column: event_ts, partition_column: day, granularity: {length}}}
incremental: {{start: {start}{more}}}
---
SELECT cast(event_ts AS date) AS day, count(*) AS n FROM clicks GROUP BY 1
"""


def notes(root: Path, length: str, start: str, more: str = "") -> tuple[str, ...]:
    """The notes on a table with such cells and such a start."""
    text = WEEKLY.format(length=length, start=start, more=more)
    write(root, {**SHOP, "models/rare.sql": text})
    return project_advice(api.open_project(root))


def test_a_start_inside_a_cell(tmp_path: Path) -> None:
    """It is noted which beginning is taken: that of the cell, or the start itself where that is
    declared, with the rows left out. One between cells needs no note.
    """
    for length, start in (("week", "2024-02-12"), ("month", "2024-02-01"), ("day", "2024-02-15")):
        assert notes(tmp_path / length, length, start) == ()
    [whole] = notes(tmp_path / "whole", "week", "2024-02-15")
    [exact] = notes(tmp_path / "exact", "week", "2024-02-15", ", exact_start: true")

    assert whole == (
        "rare: its start, 2024-02-15, lies inside a week. The table begins with the whole week, on "
        "2024-02-12; `incremental.exact_start: true` leaves out the rows of it whose day is before "
        "2024-02-15"
    )
    assert exact == (
        "rare: its start, 2024-02-15, lies inside a week. Of the week from 2024-02-12 to "
        "2024-02-19 it leaves out the rows whose day is before 2024-02-15 (exact_start): all of "
        "them, where day is the beginning of the week"
    )


@pytest.mark.parametrize(
    ("length", "first"),
    [
        ("hour", "2024-05-15 12:00"),
        ("day", "2024-05-15"),
        ("week", "2024-05-13"),
        ("week, week_start: sunday", "2024-05-12"),
        ("month", "2024-05-01"),
        ("quarter", "2024-04-01"),
        ("year", "2024-01-01"),
    ],
)
def test_a_table_begins_with_the_cell_of_its_start(tmp_path: Path, length: str, first: str) -> None:
    """Its own start or the project's means the whole cell, in every granularity, unless the start
    is declared to be exact.
    """
    own = WEEKLY.format(length=length, start="2024-05-15 12:30", more="")
    own = own.replace(
        "cast(event_ts AS date)",
        "date_trunc('HOUR', event_ts)" if length == "hour" else "cast(event_ts AS date)",
    )
    of_project = {
        **SHOP,
        "infold.yml": SHOP["infold.yml"].replace("2024-01-01", "2024-05-15 12:30"),
    }
    exact = own.replace("12:30", "12:30, exact_start: true")
    by = {
        "own": {**SHOP, "models/rare.sql": own},
        "project": {**of_project, "models/rare.sql": own.replace("start: 2024-05-15 12:30", "")},
        "exact": {**SHOP, "models/rare.sql": exact},
    }
    start = {name: api.open_project(write(tmp_path / name, by[name]))["rare"].start for name in by}

    assert {name: show_instant(at or 0) for name, at in start.items()} == {
        "own": first,
        "project": first,
        "exact": "2024-05-15 12:30",
    }


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
