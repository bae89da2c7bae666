"""A star over a struct has unknown columns; the columns beside it are known."""

from __future__ import annotations

import pytest
from tests.analysis.rules.drawn import EVENTS, TAKEN, declared
from tests.declare.shop import read

from infold.core.interval import DAY
from infold.core.project import Bound

FILES = {
    "infold.yml": declared(
        'id: int, ts: timestamp, place: "struct<city: string, country: string>"'
    ),
    "models/clicks.sql": TAKEN.format(EVENTS, "clicks"),
}
DAYS = """---
materialization: table
incremental: {}
timeseries: {event_time_column: ts, partition_column: ts, granularity: day}
---
"""
WINDOW = "count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND CURRENT ROW)"


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT ts, place.* FROM clicks", Bound(0, 0)),
        ("SELECT ts + INTERVAL 3 DAYS AS ts, place.* FROM clicks", Bound(3 * DAY, -3 * DAY)),
        (f"SELECT ts, place.*, {WINDOW} AS n FROM clicks", Bound(3 * DAY, 0)),
        (f"SELECT c.*, place.*, {WINDOW} AS n FROM clicks AS c", Bound(3 * DAY, 0)),
    ],
)
def test_what_is_read_follows_from_columns_beside_the_star(sql: str, bound: Bound) -> None:
    """Columns beside a star over a struct decide what is
    read, also one with the name of an input's column.
    """
    project, errors = read({**FILES, "models/subject.sql": DAYS + sql})

    assert project is not None, errors
    assert [entry.bounds for entry in project["subject"].inputs] == [(bound,)]


@pytest.mark.parametrize(
    "items",
    ["id, place.*", "c.* EXCEPT (ts), place.*"],
)
def test_a_time_column_that_is_not_selected_is_no_partition_column(items: str) -> None:
    """The input's time column is no partition column of a query that does not select it."""
    _, errors = read({**FILES, "models/subject.sql": f"{DAYS}SELECT {items} FROM clicks AS c"})

    assert [error.slug for error in errors] == ["partition-not-proven"]
