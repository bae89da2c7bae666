"""The project's start: nothing from before it is in any table, whenever it comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.test_events import Shop, shop_with
from tests.spark.test_users import CLICKS, SESSIONS, SOURCE, USERS, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_from_before_the_start_are_left_out(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """A session goes on over it and begins after it; late rows, a moved start, a landed source."""
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    shop.model("sessions", SESSIONS)
    shop.model("users", USERS)
    shop.model("raw_days", "---\nmaterialization: table\n---\nSELECT id FROM raw.clicks")
    starts(shop, "2024-03-02")
    put(
        shop,
        "first.csv",
        "1,ann,2024-03-01 23:50:00,/a,1",
        "2,ann,2024-03-02 00:00:00,/b,2",
        "3,ann,2024-03-02 00:10:00,/c,4",
        ",ann,2024-03-01 12:00:00,/no-key,1",
        "4,ann,,/no-time,1",
    )
    assert (shop.run().arrived, shop.rows("raw_days")) == (5, [("2",), ("3",)])
    assert of(shop) == [("2024-03-02", "2024-03-02 00:10", 2, 6)]
    # neither set aside nor waiting: only what nobody knows the time of
    assert shop.aside() == [("first.csv", "null event time")] * 2

    put(shop, "late.csv", "5,ann,2024-03-01 23:59:59,/d,8", "6,bob,2024-02-01 10:00:00,/,1")
    assert shop.run().written == 0
    put(shop, "more.csv", "7,ann,2024-03-02 00:20:00,/e,16")
    shop.run()
    assert of(shop) == [("2024-03-02", "2024-03-02 00:20", 3, 22)]
    assert shop.proven()

    starts(shop, "2024-03-01T23:55:00Z")
    shop.run()
    assert of(shop) == [("2024-03-01 23:59:59", "2024-03-02 00:20", 4, 30)]
    assert shop.proven()


def starts(shop: Shop, at: str) -> None:
    """The project's start, or another one."""
    file = shop.root / "infold.yml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("start:")]
    file.write_text("\n".join([*lines, f"start: {at}"]) + "\n")


def of(shop: Shop) -> list[tuple[object, ...]]:
    """Ann's sessions: start, end, events and revenue."""
    return [row[2:6] for row in shop.rows("sessions") if row[1] == "ann"]
