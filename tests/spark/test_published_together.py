"""A target that publishes together: readers see all tables of a run at one instant, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.promoted_shop import CHANGED, MODELS, PROJECT
from tests.spark.promoted_shop import Shop as Promoted
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.api.opening import published_lake
from infold.core import write_points
from infold.core.report import RunFailed
from infold.lake.iceberg.open_catalog import open_catalog

pytestmark = pytest.mark.spark

TARGETS = "targets:\n  dev: {{publish: {0}}}\n"
VIEW = "---\nmaterialization: view\n---\nSELECT n FROM daily"
FAILS = ROLLING.replace("SELECT day,", "SELECT day, raise_error('no') AS e,")
OTHER = {
    "daily": CHANGED["daily"],
    "rolling": (MODELS["rolling"][0], MODELS["rolling"][1].replace("2 DAYS", "1 DAYS")),
}


class Death(BaseException):
    """The end of a run that nothing may catch."""


def shown(shop: DailyProject) -> tuple[int, int, int]:
    """How many clicks `infold show` shows in the daily table, the weekly sums and the view."""
    daily, rolling, view = (
        api.show(shop.project(), name).to_pylist() for name in ("daily", "rolling", "counts")
    )
    last = max(rolling, key=lambda row: row["day"])["week"]
    return sum(row["n"] for row in daily), last, sum(row["n"] for row in view)


def test_published_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails, or dies before it publishes, shows readers nothing; the next complete run
    shows everything. Tables can be published one by one again.
    """
    shop = DailyProject(tmp_path / "shop")
    config = shop.root / "infold.yml"
    declared = config.read_text(encoding="utf-8")
    config.write_text(declared + TARGETS.format("together"), encoding="utf-8")
    shop.models(daily=model(DAILY), rolling=model(ROLLING), counts=VIEW)
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
    api.run(shop.project())
    assert shown(shop) == (2, 2, 2)

    shop.models(rolling=model(FAILS))
    shop.land("2024-03-01T11:00:00")
    with pytest.raises(RunFailed) as caught:
        api.run(shop.project())
    result = caught.value.result
    assert [step.model for step, _ in result.steps] == ["raw.clicks", "daily"]
    assert result.notes == ("Nothing was published: readers see all tables as they were before",)
    assert shown(shop) == (2, 2, 2)

    def die(name: str) -> None:
        if name == "publish: before":
            raise Death

    shop.models(rolling=model(ROLLING))
    with monkeypatch.context() as dying:
        dying.setattr(write_points, "point", die)
        with pytest.raises(Death):
            api.run(shop.project())
    assert shown(shop) == (2, 2, 2)
    assert api.run(shop.project()).steps == ()
    assert shown(shop) == (3, 3, 3)

    config.write_text(declared + TARGETS.format("each"), encoding="utf-8")
    shop.land("2024-03-02T21:00:00")
    api.run(shop.project())
    assert shown(shop) == (4, 4, 4)
    names = set(open_catalog(shop.project()).names("shop"))
    assert names == {"raw__clicks", "daily", "rolling"}


def seen(shop: Promoted) -> tuple[list[int], list[int], bool]:
    """What readers see: clicks of each day, sums over days, and whether the new column is there."""
    tables = published_lake(shop.project())
    daily, rolling = (
        sorted(tables.rows(name).to_pylist(), key=lambda row: row["day"])
        for name in ("daily", "rolling")
    )
    return [row["n"] for row in daily], [row["n"] for row in rolling], "top" in daily[0]


def test_readers_see_promotes_and_runs_as_one(tmp_path: Path) -> None:
    """Readers see all tables of a promote at once, then those of a run, and of the way back."""
    shop = Promoted(tmp_path / "shop")
    (shop.root / "infold.yml").write_text(
        PROJECT.replace("apply: manual", "apply: manual, publish: together"), encoding="utf-8"
    )
    for name in ("visits", "people", "spenders"):
        (shop.root / "models" / f"{name}.sql").unlink()
    shop.land(("ann", "2024-03-01T10:00:00", 1), ("ann", "2024-03-02T10:00:00", 2))
    shop.land(("bob", "2024-03-03T10:00:00", 3))
    shop.apply()
    shop.write(OTHER)
    shop.run_environment()
    assert seen(shop) == ([1, 1, 1], [1, 2, 3], False)

    shop.promote()
    assert seen(shop) == ([1, 1, 1], [1, 2, 2], True)
    shop.land(("bob", "2024-03-02T11:00:00", 4))
    shop.run()
    assert seen(shop) == ([1, 2, 1], [1, 3, 3], True)

    shop.rollback()
    assert seen(shop) == ([1, 1, 1], [1, 2, 3], False)
    shop.run()
    assert seen(shop) == ([1, 2, 1], [1, 3, 4], False)
