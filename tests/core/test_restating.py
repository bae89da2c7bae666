"""What is built again because someone asks for it."""

from __future__ import annotations

import pytest
from tests.declare.shop import read

from infold.interval import Interval, Ranges, instant
from infold.project import Project
from infold.restating import backbuild, restate

SERIES = "timeseries: {event_time_column: day, partition_column: day}"
HEAD = f"---\nmaterialization: table\n{SERIES}\nincremental: {{}}\n---\n"
FILES = {
    "infold.yml": """
name: shop
sources:
  raw.clicks:
    path: clicks/*.json
    event_time_column: ts
    columns: {id: int, ts: timestamp}
""",
    "models/daily.sql": HEAD
    + "SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks GROUP BY 1",
    "models/week.sql": HEAD
    + "SELECT day, sum(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING "
    "AND CURRENT ROW) AS n FROM daily",
    "models/seen.sql": "---\nmaterialization: view\n---\nSELECT * FROM week",
    "models/top.sql": "---\nmaterialization: table\n---\nSELECT max(n) AS n FROM seen",
}


@pytest.fixture(scope="module")
def project() -> Project:
    """Daily sums, a rolling week of them, a view, a whole table."""
    found, errors = read(FILES)
    assert found is not None, errors
    return found


def window(start: str, end: str) -> Interval:
    """A stretch of days."""
    return Interval(instant(start), instant(end))


def test_restating_means_the_named_models_and_runs_those_that_read_them(project: Project) -> None:
    """What reads them is built where they changed, and only there."""
    days = window("2024-03-01", "2024-03-03")

    again = restate(project, ["daily"], days)

    assert again.asked.restated == {"daily": Ranges((days,))}
    assert again.asked.selected == frozenset({"daily", "week", "seen", "top"})


def test_a_window_leaves_whole_tables_alone(project: Project) -> None:
    """And says so; without a window they are built again."""
    days = window("2024-03-01", "2024-03-03")

    assert restate(project, ["+top"], days).left == (
        ("raw.clicks", "a window bounds no model of its kind"),
        ("top", "a window bounds no model of its kind"),
    )
    assert restate(project, ["top"], None).asked.restated == {"top": Ranges.ever()}


def test_backbuilding_reads_upstream_as_far_as_the_target_does(project: Project) -> None:
    """Six days more of what a rolling week reads; files are only brought up to date."""
    again = backbuild(project, ["+week"], window("2024-03-10", "2024-03-11"))

    assert again.asked.restated == {
        "week": Ranges((window("2024-03-10", "2024-03-11"),)),
        "daily": Ranges((window("2024-03-04", "2024-03-11"),)),
    }
    assert again.left == (("raw.clicks", "it is brought up to date, not built again"),)
