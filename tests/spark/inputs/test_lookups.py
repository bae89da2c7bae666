"""Lookups by key: a change of some rows reads and builds only what depends on their keys.

Cases are projects with a few drawn rows, run from the files to the tables as a
user would. Many others do not change, so that what is read of them can be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, WITH_RATES, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import Interval, parse_instant_text, show_instant
from infold.core.plan import Step
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

USERS = """---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id"""
TABLE = """---
materialization: table
timeseries: {{event_time_column: at, partition_column: day}}
incremental: {{}}
---
SELECT cast(c.at AS date) AS day, c.id, {0}"""
KNOWN = TABLE.format("u.n FROM clicks c LEFT JOIN users u ON u.user_id = c.user_id")
PRICED = TABLE.format("r.rate * c.amount AS price FROM clicks c LEFT JOIN raw.rates r USING (url)")
LISTED = TABLE.format("c.url FROM clicks c WHERE c.url IN (SELECT url FROM raw.rates)")
CROWD = 20


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> Iterator[ClicksProject]:
    """Twenty users, one on each day, and Ann on three of them; in the end all tables are right."""
    made = shop_with(tmp_path, warehouse, CLICKS, WITH_RATES)
    (tmp_path / "rates").mkdir()
    rates(made, "/0,10", "/1,11", "/2,12")
    days = [f"2024-02-{day + 1:02} 10:00:00" for day in range(CROWD)]
    put(made, "crowd.csv", *(f"c{n},u{n:02},{days[n]},/{n % 4},1" for n in range(CROWD)))
    put(made, "ann.csv", *(f"a{n},ann,{days[n]},/a,1" for n in (3, 7, 15)))
    yield made
    assert made.proven()


def rates(shop: ClicksProject, *rows: str) -> None:
    """Replace the file of rates."""
    (shop.root / "rates" / "rates.csv").write_text("\n".join(["url,rate", *rows]) + "\n")


def steps(shop: ClicksProject) -> dict[str, tuple[Step, Receipt]]:
    """What a run did, by model."""
    result = api.run(api.open_project(shop.root), as_of=parse_instant_text(NOW))
    return {step.model: (step, receipt) for step, receipt in result.steps}


def days_of(step: Step) -> list[str]:
    """The days of February that a step built."""
    february = step.cells & step.cells.of(
        (Interval(parse_instant_text("2024-02-01"), parse_instant_text("2024-03-01")),)
    )
    found = []
    for part in february:
        at = part.start
        while at < part.end:
            found.append(show_instant(at).removeprefix("2024-02-"))
            at += 86_400_000_000
    return found


class TestCellsWithChangedKeys:
    """A changed lookup row rebuilds the cells with rows of its key, and no other."""

    def test_a_cumulative_lookup(self, shop: ClicksProject) -> None:
        """A user's late row, a user's last row removed, and
        a new user each rebuild that user's cells.
        """
        shop.model("users", USERS)
        shop.model("known", KNOWN)
        shop.run()
        put(shop, "late.csv", "a9,ann,2024-02-12 10:00:00,/a,1")
        step, receipt = steps(shop)["known"]
        assert days_of(step) == ["04", "08", "12", "16"]
        # four days with a click of the crowd each and four of Ann's; the users are read whole
        assert receipt.read == 4 + 4 + CROWD + 1
        assert [reason.detail for reason in step.reasons] == [
            "1 row in 1 cell of clicks",
            "4 rows with changed keys of users",
        ]
        put(shop, "ann.csv")
        assert days_of(steps(shop)["known"][0]) == ["04", "08", "12", "16"]
        put(shop, "new.csv", "e1,eve,2024-02-12 11:00:00,/a,1")
        assert days_of(steps(shop)["known"][0]) == ["12"]

    def test_a_replaced_lookup_file(self, shop: ClicksProject) -> None:
        """Changed, added, removed and repeated rates rebuild
        the cells that use them; an unused one rebuilds none.
        """
        shop.model("priced", PRICED)
        shop.model("listed", LISTED)
        shop.run()
        rates(shop, "/1,11", "/0,10", "/2,13")
        done = steps(shop)
        assert days_of(done["priced"][0]) == ["03", "07", "11", "15", "19"]
        assert done["priced"][1].read == 5 + 3
        assert done["listed"][1].cells_cut_off == 5
        rates(shop, "/0,10", "/2,13", "/a,7")
        anns = ["02", "04", "06", "08", "10", "14", "16", "18"]
        assert days_of(steps(shop)["priced"][0]) == anns
        rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,1")
        assert days_of(steps(shop)["priced"][0]) == ["03", "07", "11", "15", "19"]
        at = shop.version("priced")
        rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,2")
        step, receipt = steps(shop)["priced"]
        assert (days_of(step), receipt.read, receipt.commits) == ([], 0, 0)
        assert (shop.version("priced"), steps(shop)) == (at, {})

    def test_a_lookup_that_is_rebuilt_completely(self, shop: ClicksProject) -> None:
        """A rebuilt lookup changes the keys whose rows
        differ, all keys when a used column changes its type,
        and none when it has another column that nobody uses.
        """
        best = "---\nmaterialization: table\n---\nSELECT url, {0} FROM raw.rates"
        shop.model("best", best.format("rate"))
        shop.model("priced", PRICED.replace("raw.rates", "best"))
        shop.run()
        rates(shop, "/0,10", "/1,11")
        assert days_of(steps(shop)["priced"][0]) == ["03", "07", "11", "15", "19"]
        shop.model("best", best.format("rate, 1 AS one"))
        assert set(steps(shop)) == {"best"}
        shop.model("best", best.format("cast(rate AS bigint) AS rate, 1 AS one"))
        step, _ = steps(shop)["priced"]
        assert len(days_of(step)) == 29
