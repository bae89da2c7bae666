"""The next run rebuilds forgotten models, and their readers continue from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.standing_tables import drop
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.core.interval import Interval, parse_instant_text

pytestmark = pytest.mark.spark

SESSIONS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS clicks, sum(amount) AS amount FROM raw.clicks
"""


def test_forgotten_models_come_back_and_teardown_leaves_nothing(tmp_path: Path) -> None:
    """After `forget`, only changed readers are rebuilt and
    every table equals its rebuild; `teardown` leaves nothing.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY), rolling=model(ROLLING), sessions=SESSIONS)
    shop.land("2024-03-01 10:00", "2024-03-01 10:20", "2024-03-02 10:00", day="2024-03-01")
    late = shop.land("2024-03-04 10:00", day="2024-03-01")
    shop.run()
    before = shop.rows("rolling")

    api.forget(shop.project(), ["daily"])
    again = shop.run()
    assert [step.model for step, _ in again.steps] == ["daily"]  # rolling: nothing differs
    assert shop.rows("rolling") == before

    api.forget(shop.project(), ["raw.clicks"])
    verdicts = {entry.model: entry for entry in api.verify(shop.project()).models}
    assert not verdicts["daily"].equal
    assert "raw.clicks was dropped since it was read" in verdicts["daily"].note
    (shop.root / "landing" / late).unlink()
    shop.land("2024-03-01 10:40", day="2024-03-01")
    shop.run()
    assert len(shop.rows("sessions")) == 2
    manifest = api.manifest(shop.project(), "sessions_lifecycle_manifest").to_pylist()
    assert sorted(row["end_tstamp"].isoformat() for row in manifest) == [
        "2024-03-01T10:40:00+00:00",
        "2024-03-02T10:00:00+00:00",
    ]
    (success,) = {
        row["last_success"].isoformat()
        for row in api.manifest(shop.project(), "incremental_manifest").to_pylist()
    }
    assert success == "2024-03-02T10:00:00+00:00"

    rows = shop.rows("sessions")
    drop(shop.project(), "sessions")
    verdicts = {entry.model: entry for entry in api.verify(shop.project()).models}
    assert verdicts["sessions"].note == "its table was dropped: `infold run` rebuilds it"
    assert [step.model for step, _ in shop.run().steps] == ["sessions"]
    assert shop.rows("sessions") == rows

    api.teardown(shop.project())
    namespace = shop.root / "warehouse" / shop.project().namespace
    left = {path.relative_to(namespace).parts[0] for path in namespace.rglob("*.parquet")}
    assert left == {"sessions"}  # of the table that somebody dropped: nobody's any more
    first = shop.run()
    assert {str(entry.state) for entry in first.model_states} == {"first run"}
    assert len(shop.rows("sessions")) == 2


def test_an_explicit_window_without_data_is_covered(tmp_path: Path) -> None:
    """A run with a window that has no data reports it empty, and it is not planned again."""
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY))
    shop.land("2024-03-01 10:00", "2024-03-09 10:00", day="2024-03-01")
    window = Interval(parse_instant_text("2024-03-04"), parse_instant_text("2024-03-06"))
    first = shop.run(window=window)
    (daily,) = (entry for entry in first.model_states if entry.model == "daily")

    assert daily.empty
    assert (daily.lower, daily.upper) == (window.start, window.end)
    (status,) = (entry for entry in api.status(shop.project()) if entry.model == "daily")
    assert str(status.state) == "out of sync"
    assert not any(part.ranges.overlaps(window) for part in status.pending)
    shop.run()
    assert len(shop.rows("daily")) == 2
