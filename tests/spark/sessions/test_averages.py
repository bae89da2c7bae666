"""Averages whose sum is more than a double or a decimal holds: alike in every kind of table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.report import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = (
    "    event_time_column: at\n"
    '    columns: {id: string, at: timestamp, who: string, big: bigint, wide: "decimal(38,2)"}\n'
)
CLICKS = (
    "---\nmaterialization: events\nunique_key: [id]\n"
    "timeseries: {event_time_column: at}\n---\nSELECT * FROM raw.clicks"
)
DAY = "timeseries: {event_time_column: at, partition_column: day}\nincremental: {}\n"
KINDS = {
    "visits": "---\nmaterialization: sessions\nsessions: {user: who, gap: 1 hour}\n---\n"
    "SELECT avg({0}) AS mean FROM clicks",
    "users": "---\nmaterialization: cumulative_aggregate\n---\n"
    "SELECT who, avg({0}) AS mean FROM clicks GROUP BY who",
    "whole": "---\nmaterialization: table\n---\n"
    "SELECT who, avg({0}) AS mean FROM clicks GROUP BY who",
    "days": f"---\nmaterialization: table\n{DAY}---\n"
    "SELECT cast(at AS date) AS day, avg({0}) AS mean FROM clicks GROUP BY 1",
}
HEADER = "id,at,who,big,wide"
BIG = 2**62


def shop_of(tmp_path: Path, warehouse: Path, column: str) -> ClicksProject:
    """A shop in which each kind of table has the average of a column."""
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    for name, text in KINDS.items():
        shop.model(name, text.replace("{0}", column))
    return shop


def test_digits_of_doubles(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """
    An average of BIGINT adds doubles, as Spark has it, where the sum has more digits than one: in
    sessions one event after the other. A rebuild adds them alike, also after a late event.
    """
    shop = shop_of(tmp_path, warehouse, "big")
    (shop.root / "models" / "whole.sql").unlink()
    (shop.root / "models" / "days.sql").unlink()
    at = "2024-03-01 00:0"
    shop.put("1.csv", f"1,{at}0:00,ann,{BIG}", f"2,{at}1:00,ann,3", f"3,{at}2:00,ann,-{BIG}",
             header=HEADER)  # fmt: skip
    shop.run()
    assert [row["mean"] for row in shop.records("visits")] == [0.0]

    shop.put("2.csv", f"4,{at}3:00,ann,5", f"5,{at}1:30,bob,7", header=HEADER)
    shop.run()
    assert sorted(row["mean"] for row in shop.records("visits")) == [1.25, 7.0]
    verdicts = api.verify(api.open_project(shop.root), select=["visits"]).models
    assert [verdict.equal for verdict in verdicts] == [True]


def test_an_average_that_no_decimal_holds(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """It is refused with Spark's words and condition, in a first build and by a late row."""
    shop = shop_of(tmp_path, warehouse, "wide")
    wide = "9" * 35
    shop.put("1.csv", f"1,2024-03-01,ann,1,{wide}", header=HEADER)
    assert failed(shop) == dict.fromkeys(KINDS, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")

    shop.put("1.csv", "1,2024-03-01,ann,1,1", header=HEADER)
    assert failed(shop) == {}
    shop.put("2.csv", f"2,2024-03-01,ann,1,{wide}", header=HEADER)
    assert failed(shop) == dict.fromkeys(KINDS, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")


def failed(shop: ClicksProject) -> dict[str, str]:
    """The models that a run could not build, with Spark's condition."""
    try:
        api.run(api.open_project(shop.root), as_of=parse_instant_text(NOW), allow_removals=True)
    except RunFailed as error:
        return {
            one.model: dict(one.error.facts).get("condition", str(one.error))
            for one in error.result.failures
        }
    return {}
