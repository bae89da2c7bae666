"""Missing files and flipped bits in a table, on the disk, as Spark meets them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.standing_tables import drop
from tests.spark.time_range.daily_project import DAILY, DailyProject, model

from infold import api
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark

SESSIONS = """---
materialization: sessions
sessions: {{user: who, gap: 30 minutes}}
---
SELECT {0} FROM raw.clicks"""


def data(shop: DailyProject, table: str) -> Path:
    """The largest data file of a table."""
    found = (shop.root / "warehouse" / "shop" / table / "data").rglob("*.parquet")
    return max(found, key=lambda path: path.stat().st_size)


def test_damage_is_named_and_repaired(tmp_path: Path) -> None:
    """
    Verify, a run that reads the damage and one with nothing to do name it; a rebuild repairs it.

    Sessions that would follow from stored ones are built where these cannot be read, whether that
    is known before the run or found by it, and where their table was dropped. After a teardown
    there is nothing.
    """
    shop = DailyProject(tmp_path / "shop")
    columns = "count(*) AS clicks, sum(amount) AS amount, max(amount) AS m"
    shop.models(daily=model(DAILY), sessions=SESSIONS.format(columns))
    shop.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(shop.project())
    for damage, columns in (
        (
            lambda file: file.write_bytes(b"PAR1" + b"x" * 999 + b"PAR1"),
            "count(*) AS clicks, max(amount) AS m",
        ),
        (lambda file: file.unlink(), "count(*) AS clicks"),
    ):
        damage(data(shop, "sessions"))
        shop.models(sessions=SESSIONS.format(columns))
        done = api.run(shop.project())
        assert [str(step.action) for step, _ in done.steps] == ["build"]
        note = "sessions: its table is damaged; as its definition changed, all of it is rebuilt"
        assert note in done.notes
    rows = shop.rows("sessions")
    drop(shop.project(), "sessions")
    [verdict] = api.verify(shop.project(), select=["sessions"]).models
    assert verdict.note == "its table was dropped: `infold run` rebuilds it"
    api.run(shop.project())
    assert shop.rows("sessions") == rows
    [verdict] = api.verify(shop.project(), select=["sessions"]).models
    assert verdict.equal
    (shop.root / "models" / "sessions.sql").unlink()

    rows, whole = shop.rows("daily"), data(shop, "raw__clicks").read_bytes()
    cure = "`infold forget raw.clicks` and `infold run` (protected: `--allow-refresh`) rebuild it"
    middle = len(whole) // 3
    flipped = bytes([*whole[:middle], *(byte ^ 0xFF for byte in whole[middle : middle + 40])])
    data(shop, "raw__clicks").write_bytes(flipped + whole[middle + 40 :])
    found = api.verify(shop.project())
    assert not found.equal
    assert cure in next(one for one in found.models if one.model == "raw.clicks").note
    shop.land("2024-03-01T11:00:00Z")
    corrupt = data(shop, "raw__clicks")
    corrupt.write_bytes(b"PAR1" + b"x" * (len(whole) - 8) + b"PAR1")
    with pytest.raises(RunFailed) as failed:
        api.run(shop.project())
    assert {error.error.slug for error in failed.value.result.failures} == {"damaged-table"}

    api.forget(shop.project(), ["raw.clicks"])
    [verdict] = api.verify(shop.project(), select=["daily"]).models
    assert "raw.clicks was dropped since it was read" in verdict.note
    api.run(shop.project())
    assert [row[1] for row in shop.rows("daily")] == [2, 1]
    assert [row[:1] for row in shop.rows("daily")] == [row[:1] for row in rows]

    gone = data(shop, "raw__clicks")
    gone.unlink()
    with pytest.raises(RunFailed) as refused:
        api.run(shop.project())
    assert gone.name in str(refused.value)
    found = api.verify(shop.project())
    assert {one.model: one.equal for one in found.models} == {"raw.clicks": False, "daily": False}
    assert all(cure in one.note for one in found.models)

    api.teardown(shop.project())
    assert not list((shop.root / "warehouse" / "shop" / "daily").rglob("*.parquet"))
    assert {str(one.state) for one in api.run(shop.project()).model_states} == {"first run"}
    assert [row[1] for row in shop.rows("daily")] == [2, 1]
