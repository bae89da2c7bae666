"""Sessions and aggregates over views: a union of event tables, and lookups joined by equality.

Cases are projects with a few drawn rows, run from the files to the tables as a user
would. Many users do not change, so that runs fold, and what they read can be counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCES = """    event_time_column: at
    columns: {id: string, user_id: string, at: timestamp, url: string, amount: "decimal(9,2)"}
  raw.taps:
    path: taps/*.csv
    event_time_column: tapped
    columns: {tap: string, who: string, tapped: timestamp, cur: string, cents: int}
  raw.rates:
    path: rates/*.csv
    columns: {cur: string, rate: "decimal(9,2)"}
"""
TAPS = """---
materialization: events
unique_key: [tap]
timeseries: {event_time_column: tapped}
---
SELECT * FROM raw.taps"""
VIEW = "---\nmaterialization: view\n---\n"
BOTH = (
    VIEW
    + """SELECT id, user_id AS u, at, url AS page, 'eur' AS cur, amount FROM clicks
UNION ALL
SELECT tap, who, tapped, 'app', lower(cur), cast(cents / 100 AS decimal(9,2)) FROM taps
WHERE cents >= 0"""
)
PRICED = (
    VIEW
    + """SELECT b.*, round(b.amount * r.rate, 2) AS price, r.rate IS NULL AS unknown
FROM both b LEFT JOIN raw.rates r ON r.cur = b.cur"""
)
SESSIONS = """---
materialization: sessions
sessions: {user: u, gap: 30 minutes}
---
SELECT count(*) AS events, sum(price) AS revenue, count_if(unknown) AS unknown,
  first(id) AS first_id, last(id) AS last_id, first(page) AS entry
FROM priced"""
PAGES = """---
materialization: cumulative_aggregate
---
SELECT page, sum(price) AS revenue, count(DISTINCT u) AS people FROM priced GROUP BY page"""
PRICES = """---
materialization: cumulative_aggregate
---
SELECT cur, unknown, count(*) AS n, sum(price) AS revenue, min(price) AS least FROM priced
GROUP BY ALL"""
"""It follows from states."""
CROWD = 30


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """A crowd on the web, Ann on the web and in the app."""
    made = shop_with(tmp_path, warehouse, CLICKS, SOURCES)
    for name, text in {
        "taps": TAPS,
        "both": BOTH,
        "priced": PRICED,
        "sessions": SESSIONS,
        "pages": PAGES,
        "prices": PRICES,
    }.items():
        made.model(name, text)
    (tmp_path / "rates").mkdir()
    (tmp_path / "taps").mkdir()
    other(made, "rates", "cur,rate", "eur,1", "usd,0.5")
    other(made, "taps", "tap,who,tapped,cur,cents", "t1,ann,2024-03-02 09:10:00,USD,400")
    put(made, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/{n},1" for n in range(CROWD)))
    put(made, "ann.csv", "a1,ann,2024-03-02 09:00:00,/a,1", "a2,ann,2024-03-02 09:20:00,/b,2")
    made.run()
    assert ann(made) == [("2024-03-02 09:00", "2024-03-02 09:20", 3, 5, 0, "a1", "a2", "/a")]
    return made


def other(shop: ClicksProject, folder: str, header: str, *rows: str, name: str = "file") -> None:
    """A file of another source than the clicks."""
    (shop.root / folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")


def ann(shop: ClicksProject, *columns: str) -> list[tuple[Any, ...]]:
    """Ann's sessions: values of some columns, by default of all but their id and hers."""
    found = [record for record in shop.records("sessions") if record["u"] == "ann"]
    return sorted(
        tuple(record[name] for name in columns or record if name not in {"session_id", "u"})
        for record in found
    )


def folded(shop: ClicksProject) -> dict[str, Receipt]:
    """What a run did to the sessions and pages, which were folded."""
    result = api.run(api.open_project(shop.root), as_of=parse_instant_text(NOW))
    found = [(step, receipt) for step, receipt in result.steps if step.model in _FOLDS]
    assert {step.action for step, _ in found} == {Action.FOLD}
    return {step.model: receipt for step, receipt in found}


_FOLDS = ("sessions", "pages")
TAP = "tap,who,tapped,cur,cents"


def test_rates_that_change_and_events_of_two_tables(shop: ClicksProject) -> None:
    """A changed rate makes the sessions of its currency read again, and an event counts once for
    each of its rates; rows are ordered by time, then id.
    """
    other(shop, "rates", "cur,rate", "usd,2", "eur,1.00", "gbp,7", "gbp,8")
    more = "t2,ann,2024-03-02 12:00:00,GBP,100", "t4,ann,2024-03-02 12:10:00,JPY,100"
    other(shop, "taps", TAP, *more, name="more")
    receipts = folded(shop)
    assert ann(shop, "events", "revenue", "unknown") == [(3, 3 + 8, 0), (3, 7 + 8, 1)]
    # the row as it was and as it is, and the three of its session; three that came, and theirs
    assert receipts["sessions"].read <= 1 + 1 + 3 + 3 + 3
    assert receipts["sessions"].written == 2
    assert ("app", 8 + 15, 1) in shop.rows("pages")
    at = shop.version("sessions"), shop.version("pages")
    other(shop, "rates", "cur,rate", "gbp,8", "eur,1", "gbp,7", "xyz,5", "usd,2")
    folded(shop)
    assert (shop.version("sessions"), shop.version("pages")) == at

    put(shop, "late.csv", "a0,ann,2024-03-02 09:20:00,/z,3")
    other(shop, "taps", TAP, "t3,ann,2024-03-02 09:20:00,EUR,700", name="file")
    receipts = folded(shop)
    # two came and one is gone, and the four of the session
    assert (receipts["sessions"].read, receipts["sessions"].written) == (2 + 1 + 4, 1)
    assert ("2024-03-02 09:00", "2024-03-02 09:20", 4, 13, 0, "a1", "t3", "/a") in ann(shop)
    assert {("/a", 1, 1), ("/b", 2, 1), ("/z", 3, 1), ("app", 22, 1)} <= {*shop.rows("pages")}
    assert sorted(shop.rows("prices")) == [
        ("eur", False, 34, 43, 1),
        ("gbp", False, 2, 15, 7),
        ("jpy", True, 1, None, None),
    ]
