"""A target that publishes together: readers see all tables of a run at one instant, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.core.report import RunFailed, RunResult
from infold.lake.iceberg.open_catalog import open_catalog
from infold.lake.iceberg.static_table import open_table

pytestmark = pytest.mark.spark

TARGETS = "targets:\n  dev: {{publish: {0}}}\n"
VIEW = "---\nmaterialization: view\n---\nSELECT n FROM daily"
FAILS = ROLLING.replace("SELECT day,", "SELECT day, raise_error('no') AS e,")


class Shop(DailyProject):
    """Daily counts of clicks, and their sums over a week, published together."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.declared = (root / "infold.yml").read_text(encoding="utf-8")
        self.publish("together")
        self.models(daily=model(DAILY), rolling=model(ROLLING), counts=VIEW)

    def publish(self, how: str) -> None:
        """Declare when tables are published."""
        text = self.declared + TARGETS.format(how)
        (self.root / "infold.yml").write_text(text, encoding="utf-8")

    def build(self) -> RunResult:
        """A run."""
        return api.run(self.project())

    def die(self, at: str) -> None:
        """A run in a process that kills itself at a write point."""
        done = subprocess.run(
            [sys.executable, "-m", "infold", "-C", str(self.root), "run"],
            env={**os.environ, "INFOLD_CRASH_AT": at},
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL

    def shown(self) -> tuple[int, int, int]:
        """How many clicks `infold show` shows in the daily table, the weekly sums and the view."""
        daily, rolling, view = (
            api.show(self.project(), name).to_pylist() for name in ("daily", "rolling", "counts")
        )
        last = max(rolling, key=lambda row: row["day"])["week"]
        return sum(row["n"] for row in daily), last, sum(row["n"] for row in view)

    def read_at_once(self) -> tuple[int, int]:
        """How many clicks a reader finds in two tables that it looks up at one time."""
        found = open_catalog(self.project()).locations("shop")
        daily, rolling = (
            open_table(found[name]).scan().to_arrow().to_pylist() for name in ("daily", "rolling")
        )
        return sum(row["n"] for row in daily), max(row["week"] for row in rolling)


def test_published_together(tmp_path: Path) -> None:
    """A run that fails, or is killed before it publishes, shows readers nothing; the next complete
    run shows everything, and a reader of two tables never sees one newer than the other. What
    runs build is exact all the time, and stays so when tables are published one by one again.
    """
    shop = Shop(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
    shop.build()
    assert shop.shown() == (2, 2, 2)

    shop.models(rolling=model(FAILS))
    shop.land("2024-03-01T11:00:00")
    with pytest.raises(RunFailed) as caught:
        shop.build()
    result = caught.value.result
    assert [step.model for step, _ in result.steps] == ["raw.clicks", "daily"]
    assert result.notes == ("Nothing was published: readers see all tables as they were before",)
    assert shop.shown() == (2, 2, 2)
    shop.models(rolling=model(ROLLING))
    shop.die("publish: before")
    assert shop.shown() == (2, 2, 2)
    assert shop.build().steps == ()
    assert shop.shown() == (3, 3, 3)
    shop.verify()

    seen: set[tuple[int, int]] = set()
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            seen.add(shop.read_at_once())

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for hour in range(12, 15):
            shop.land(f"2024-03-01T{hour}:00:00", f"2024-03-02T{hour}:00:00")
            shop.build()
    finally:
        over.set()
        reader.join()
    assert (9, 9) in seen | {shop.read_at_once()}
    assert all(daily == week for daily, week in seen), seen

    shop.land("2024-03-02T20:00:00")
    shop.die("publish: after")
    assert shop.shown() == (10, 10, 10)
    shop.publish("each")
    shop.land("2024-03-02T21:00:00")
    shop.build()
    assert (shop.shown(), shop.read_at_once()) == ((11, 11, 11), (11, 11))
    names = set(open_catalog(shop.project()).names("shop"))
    assert names == {"raw__clicks", "daily", "rolling"}
    shop.verify()
