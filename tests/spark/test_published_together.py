"""A target that publishes together: readers see all tables of a run at one instant, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.promoted_shop import CHANGED, MODELS, PROJECT, Shop

from infold.api.opening import published_lake
from infold.core import write_points

pytestmark = pytest.mark.spark

OTHER = {
    "daily": CHANGED["daily"],
    "rolling": (MODELS["rolling"][0], MODELS["rolling"][1].replace("2 DAYS", "1 DAYS")),
}


class Death(BaseException):
    """The end of a run that nothing may catch."""


def seen(shop: Shop) -> tuple[list[int], list[int], bool]:
    """What readers see: clicks of each day, sums over days, and whether the new column is there."""
    tables = published_lake(shop.project())
    daily, rolling = (
        sorted(tables.rows(name).to_pylist(), key=lambda row: row["day"])
        for name in ("daily", "rolling")
    )
    return [row["n"] for row in daily], [row["n"] for row in rolling], "top" in daily[0]


def test_readers_see_promotes_and_runs_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see all tables of a promote at once, then those of a run, and of the way back. A run
    that dies before it publishes shows nothing, and the next one all of it.
    """
    shop = Shop(tmp_path / "shop")
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

    def die(name: str) -> None:
        if name == "publish: before":
            raise Death

    with monkeypatch.context() as dying:
        dying.setattr(write_points, "point", die)
        with pytest.raises(Death):
            shop.run()
    assert seen(shop) == ([1, 1, 1], [1, 2, 2], True)
    assert shop.run() == []
    assert seen(shop) == ([1, 2, 1], [1, 3, 3], True)

    shop.rollback()
    assert seen(shop) == ([1, 1, 1], [1, 2, 3], False)
    shop.run()
    assert seen(shop) == ([1, 2, 1], [1, 3, 4], False)
