"""A fold over a recomputed table gets only the rows that changed in it.

A table of clicks is between the events and their sessions. Many users do
not change, so that a run folds, and what it reads of them can be counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, CROWD, SOURCE, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VISITS = """---
materialization: table
timeseries: {event_time_column: at, granularity: day}
incremental: {}
---
SELECT user_id, at, url, amount FROM clicks"""
SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS revenue, last(url) AS exit_url FROM visits"""
PAGES = """---
materialization: cumulative_aggregate
---
SELECT url, count(*) AS visits, sum(amount) AS revenue FROM all_visits GROUP BY url"""
ALL_VISITS = """---
materialization: table
---
SELECT * FROM visits"""


def test_only_changed_rows_are_folded(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """
    A late click in a day of many is one folded row, with its session and page, and no other row is
    read. When one of three equal rows is removed, two stay. A corrected amount is one removed and
    one added row; a repeated delivery is no change.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    shop.model("visits", VISITS)
    shop.model("sessions", SESSIONS)
    shop.model("all_visits", ALL_VISITS)
    shop.model("pages", PAGES)
    put(shop, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/{n},1" for n in range(CROWD)))
    put(shop, "ann.csv", *(f"{n},ann,2024-03-01 09:00:00,/a,1" for n in (1, 2, 3)))
    shop.run()

    put(shop, "late.csv", "9,ann,2024-03-01 09:20:00,/b,5")
    at = shop.version("visits")
    result = folded_models(shop)
    assert shop.changes(at, "visits") == [("2024-03-01", 1, 0)]
    assert shop.changes(at, "all_visits")[0][1:] == (1, 0)
    assert result == {"sessions": (2, 1, 1), "pages": (1, 1, 0)}

    put(shop, "ann.csv", *(f"{n},ann,2024-03-01 09:00:00,/a,1" for n in (1, 3)))
    at = shop.version("visits")
    read = folded_models(shop)
    assert shop.changes(at, "visits") == [("2024-03-01", 0, 1)]
    assert read["sessions"][1:] == (1, 1)
    assert ("ann", "/b") in {(row[1], row[-1]) for row in shop.rows("sessions")}
    assert [row for row in shop.rows("pages") if row[0] == "/a"] == [("/a", 2, 2)]

    put(shop, "ann.csv", "1,ann,2024-03-01 09:00:00,/a,1", "3,ann,2024-03-01 09:00:00,/a,2")
    at = shop.version("visits")
    folded_models(shop)
    assert shop.changes(at, "visits") == [("2024-03-01", 1, 1)]
    at = shop.version("sessions")
    put(shop, "again.csv", "3,ann,2024-03-01 09:00:00,/a,2")
    shop.run()
    assert shop.version("sessions") == at


def folded_models(shop: ClicksProject) -> dict[str, tuple[int, int, int]]:
    """Rows read, written and removed by the models that fold; all of them did."""
    result = api.run(api.open_project(shop.root), as_of=parse_instant_text(NOW))
    found = {step.model: (step, receipt) for step, receipt in result.steps}
    folds = {name: found[name] for name in ("sessions", "pages")}
    assert {step.action for step, _ in folds.values()} == {Action.FOLD}
    return {name: (r.read, r.written, r.removed) for name, (_, r) in folds.items()}
