"""Lookups by key: a change of some rows reads and builds only what depends on their keys.

Cases are projects with a few drawn rows, run from the files to the tables as a
user would. Many others do not change, so that what is read of them can be counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running.standing_tables import drop
from tests.spark.cumulative.clicks_by_user import CLICKS, WITH_RATES, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import Interval, parse_instant_text, show_instant
from infold.core.plan import Action, Step
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


def rates(shop: ClicksProject, *rows: str) -> None:
    """Replace the file of rates."""
    (shop.root / "rates" / "rates.csv").write_text("\n".join(["url,rate", *rows]) + "\n")


def steps(shop: ClicksProject, *select: str) -> dict[str, tuple[Step, Receipt]]:
    """What a run did, by model."""
    project, as_of = api.open_project(shop.root), parse_instant_text(NOW)
    result = api.run(project, select=select, as_of=as_of, allow_removals=True)
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


def test_cells_with_changed_keys(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """
    A changed lookup row rebuilds the cells with rows of its key, and no other: of a cumulative
    lookup for a user's late row, a user's last row removed, and a new user; of a file for changed,
    added, removed and repeated rows; of a rebuilt lookup for keys whose rows differ, all keys when
    a used column changes its type, and none when it has another column that nobody uses.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, WITH_RATES)
    (tmp_path / "rates").mkdir()
    rates(shop, "/0,10", "/1,11", "/2,12")
    days = [f"2024-02-{day + 1:02} 10:00:00" for day in range(CROWD)]
    put(shop, "crowd.csv", *(f"c{n},u{n:02},{days[n]},/{n % 4},1" for n in range(CROWD)))
    put(shop, "ann.csv", *(f"a{n},ann,{days[n]},/a,1" for n in (3, 7, 15)))
    best = "---\nmaterialization: table\n---\nSELECT url, {0} FROM raw.rates"
    shop.model("users", USERS)
    shop.model("known", KNOWN)
    shop.model("priced", PRICED)
    shop.model("listed", LISTED)
    shop.model("best", best.format("rate"))
    shop.model("best_price", PRICED.replace("raw.rates", "best"))
    shop.run()

    # Twenty users, one on each day, and Ann on three of them; she comes on a fourth.
    put(shop, "late.csv", "a9,ann,2024-02-12 10:00:00,/a,1")
    rates(shop, "/1,11", "/0,10", "/2,13")
    done = steps(shop)
    step, receipt = done["known"]
    assert days_of(step) == ["04", "08", "12", "16"]
    # four days with a click of the crowd each and four of Ann's; the users are read whole
    assert receipt.read == 4 + 4 + CROWD + 1
    assert [reason.detail for reason in step.reasons] == [
        "1 row in 1 cell of clicks",
        "4 rows with changed keys of users",
    ]
    twos = ["03", "07", "11", "15", "19"]
    for name in ("priced", "listed", "best_price"):
        assert days_of(done[name][0]) == sorted([*twos, "12"])
    assert done["priced"][1].read == 5 + 2 + 3
    assert done["listed"][1].cells_cut_off == 5

    put(shop, "ann.csv")
    rates(shop, "/0,10", "/2,13", "/b,7")
    done = steps(shop)
    assert days_of(done["known"][0]) == ["04", "08", "12", "16"]
    ones = ["02", "06", "10", "14", "18"]
    assert days_of(done["priced"][0]) == sorted([*ones, "04", "08", "16"])  # Ann's clicks went

    put(shop, "new.csv", "e1,eve,2024-02-12 11:00:00,/a,1")
    rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,1")
    done = steps(shop)
    assert days_of(done["known"][0]) == ["12"]
    assert days_of(done["priced"][0]) == days_of(done["best_price"][0]) == sorted([*twos, "12"])

    shop.model("best", best.format("rate, 1 AS one"))
    assert set(steps(shop)) == {"best"}
    at = shop.version("priced")
    rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,2")
    shop.model("best", best.format("cast(rate AS bigint) AS rate, 1 AS one"))
    done = steps(shop)
    step, receipt = done["priced"]
    assert (days_of(step), receipt.read, receipt.commits) == ([], 0, 0)
    assert len(days_of(done["best_price"][0])) == 29
    assert (shop.version("priced"), steps(shop)) == (at, {})

    # Readers of tables whose earlier snapshots somebody expired are built.
    rates(shop, "/0,10", "/1,11", "/a,7")
    for minute in (10, 20):
        put(shop, f"{minute}.csv", f"l{minute},u03,2024-02-05 10:{minute}:00,/1,2")
        steps(shop, "clicks", "best")
    project = api.open_project(shop.root)
    for name in ("raw__rates", "best", "clicks"):
        spark.sql(
            f"CALL infold.system.expire_snapshots(table => '{project.name}.{name}', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
        )
    built = dict.fromkeys(("priced", "listed", "best_price"), Action.BUILD)
    assert {name: step.action for name, (step, _) in steps(shop).items()} == {
        "users": Action.FOLD,  # rows were only added since, and clicks has them
        "known": Action.RECOMPUTE,
        **built,
    }

    # So is whoever reads a lookup that was dropped by hand, as what it was cannot be compared; one
    # that is made again before its readers run is no other case.
    drop(project, "best")
    steps(shop, "best")
    drop(project, "raw__rates")
    rates(shop, "/0,10", "/1,21", "/a,7")
    done = steps(shop)
    again = ("raw.rates", "best", "priced", "listed", "best_price")
    assert {name: step.action for name, (step, _) in done.items()} == dict.fromkeys(
        again, Action.BUILD
    )
    why = [reason.detail for reason in done["best_price"][0].reasons]
    assert any(detail.endswith("of best, dropped since it was read") for detail in why)
    assert shop.proven()
