"""Runs that commit while tables are compared with their rebuilds: no difference is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.spark.verify import verify
from infold.spark.verify.compare import Comparison, compare

pytestmark = pytest.mark.spark

MODELS = ("raw.clicks", "daily", "rolling")


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Clicks, their days, and a window over these, built."""
    found = DailyProject(tmp_path / "shop")
    found.models(daily=model(DAILY), rolling=model(ROLLING))
    found.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(found.project())
    return found


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Does something in the comparison of that number; the numbers of all that were made."""

    def do(what: Callable[[], object], *, at: int) -> list[int]:
        made: list[int] = []

        def patched(*frames: Any, **options: Any) -> Comparison:
            made.append(len(made))
            if made[-1] == at:
                what()
            return compare(*frames, **options)

        monkeypatch.setattr(verify, "compare", patched)
        return made

    return do


def test_a_run_in_a_comparison_changes_no_verdict(
    shop: DailyProject, comparisons: Callable[..., list[int]]
) -> None:
    """
    A run commits new versions of all tables while one of them is compared: that one as it was
    then, and the next ones as they are by then, equal their rebuilds, each at once. Clicks cannot
    be rebuilt from a file that a run took out meanwhile, so they are compared once more.
    """

    def run() -> None:
        shop.land("2024-03-02T11:00:00Z")
        assert len(shop.go().steps) == len(MODELS)

    made = comparisons(run, at=0)
    shop.verify()
    assert len(made) == len(MODELS)

    comparisons(run, at=1)
    sampled = api.verify(shop.project(), sample=1)
    assert sampled.equal, sampled

    late = shop.land("2024-03-03T10:00:00Z")
    shop.go()

    def take_out() -> None:
        (shop.root / "landing" / late).unlink()
        api.run(shop.project(), allow_removals=True)

    made = comparisons(take_out, at=0)
    shop.verify()
    assert len(made) == len(MODELS) + 1
