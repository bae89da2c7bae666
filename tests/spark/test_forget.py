"""The next run rebuilds forgotten models, and their readers continue from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.standing_tables import drop
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api

pytestmark = pytest.mark.spark

SESSIONS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS clicks, sum(amount) AS amount FROM raw.clicks
"""


def test_forgotten_models_come_back_and_teardown_leaves_nothing(tmp_path: Path) -> None:
    """After `forget`, only changed readers are rebuilt and every table is right; `teardown` leaves
    nothing.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.models(daily=model(DAILY), rolling=model(ROLLING), sessions=SESSIONS)
    shop.land("2024-03-01 10:00", "2024-03-01 10:20", "2024-03-02 10:00", day="2024-03-01")
    late = shop.land("2024-03-04 10:00", day="2024-03-01")
    api.run(shop.project())
    before = shop.rows("rolling")

    api.forget(shop.project(), ["daily"])
    again = api.run(shop.project())
    assert [step.model for step, _ in again.steps] == ["daily"]  # rolling: nothing differs
    assert shop.rows("rolling") == before

    api.forget(shop.project(), ["raw.clicks"])
    [verdict] = api.verify(shop.project(), select=["daily"]).models
    assert not verdict.equal
    assert "raw.clicks was dropped since it was read" in verdict.note
    (shop.root / "landing" / late).unlink()
    shop.land("2024-03-01 10:40", day="2024-03-01")
    api.run(shop.project())
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
    shop.verify()

    rows = shop.rows("sessions")
    assert len(rows) == 2
    drop(shop.project(), "sessions")
    [verdict] = api.verify(shop.project(), select=["sessions"]).models
    assert verdict.note == "its table was dropped: `infold run` rebuilds it"
    again = api.run(shop.project())
    assert [step.model for step, _ in again.steps] == ["sessions"]
    assert shop.rows("sessions") == rows

    api.teardown(shop.project())
    namespace = shop.root / "warehouse" / shop.project().namespace
    left = {path.relative_to(namespace).parts[0] for path in namespace.rglob("*.parquet")}
    assert left == {"sessions"}  # of the table that somebody dropped: nobody's any more
    first = api.run(shop.project())
    assert {str(entry.state) for entry in first.model_states} == {"first run"}
    assert len(shop.rows("sessions")) == 2
