"""What restate and backbuild plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.declare.shop import read

from infold.core.interval import Granularity, Interval, Ranges, parse_instant_text
from infold.core.plan import FileDiff, InputDiff, ModelObservation, Observations
from infold.core.project import Project
from infold.core.trace import Cause, CellState, Pending, Trace
from infold.planning.planner import plan
from infold.planning.selection import backbuild, restate

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
    return Interval(parse_instant_text(start), parse_instant_text(end))


def test_restate_builds_the_named_models_and_runs_their_readers(project: Project) -> None:
    """Readers only where something changed; a window skips tables without cells."""
    days = window("2024-03-01", "2024-03-03")

    again = restate(project, ["daily"], days)
    assert again.options.restated == {"daily": Ranges((days,))}
    assert again.options.selected == frozenset({"daily", "week", "seen", "top"})
    assert restate(project, ["+top"], days).skipped == (
        ("raw.clicks", "a window bounds no model of its kind"),
        ("top", "a window bounds no model of its kind"),
    )
    assert restate(project, ["top"], None).options.restated == {"top": Ranges.ever()}


def test_backbuilding_reads_upstream_as_far_as_the_target_does(project: Project) -> None:
    """The days that the target's bound reads; files are only brought up to date."""
    again = backbuild(project, ["+week"], window("2024-03-10", "2024-03-11"))

    assert again.options.restated == {
        "week": Ranges((window("2024-03-10", "2024-03-11"),)),
        "daily": Ranges((window("2024-03-04", "2024-03-11"),)),
    }
    assert again.skipped == (("raw.clicks", "it is brought up to date, not built again"),)


@pytest.mark.parametrize("changed", [False, True])
def test_a_table_that_was_never_built_is_built_in_its_window(
    project: Project, changed: bool
) -> None:
    """The rest stays pending throughout the run."""
    days = [
        CellState(cell, 5, 1) for cell in Granularity.DAY.cells(window("2024-03-01", "2024-03-31"))
    ]
    again = backbuild(project, ["daily"], window("2024-03-10", "2024-03-12"))
    pending = (
        Pending(Cause.MISSING, Ranges.ever() - Ranges((window("2024-03-10", "2024-03-12"),))),
    )
    daily = Trace("daily", project["daily"].fingerprint, {"raw.clicks": 1}, pending)
    landed = Trace("raw.clicks", project["raw.clicks"].fingerprint)
    diff = InputDiff("raw.clicks", 1 if changed else 0, 1, (), tuple(days))
    seen = {
        "raw.clicks": ModelObservation(trace=landed, version=1, files=FileDiff("raw.clicks")),
        "daily": ModelObservation(trace=daily if changed else None, inputs=(diff,)),
    }
    asked = replace(again.options, restated={}) if changed else again.options

    found = plan(project, Observations(parse_instant_text("2024-04-01"), seen), asked)

    (left,) = (entry for entry in found.skipped if entry.model == "daily")
    assert left.why == "outside the window"
    assert [step.cells for step in found.steps] == (
        [] if changed else [Ranges((window("2024-03-10", "2024-03-12"),))]
    )
