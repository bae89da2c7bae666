"""A start, of the project or of one model: rows from before it are left out, whenever they
arrive.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SESSIONS, SOURCE, put
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_rows_from_before_the_start_are_left_out(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Rows before the start are left out and counted: across it, late, after it was moved.

    So it is in a landed source and in parts of files. A start of one model stands in place of the
    project's.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    shop.model("sessions", SESSIONS)
    shop.model("visits", from_start(SESSIONS, "2024-03-02T00:05:00Z"))
    shop.model("raw_days", "---\nmaterialization: table\n---\nSELECT id FROM raw.clicks")
    starts(shop, "2024-03-02")
    put(
        shop,
        "first.csv",
        "1,ann,2024-03-01 23:50:00,/a,1",
        "2,ann,2024-03-02 00:00:00,/b,2",
        "3,ann,2024-03-02 00:10:00,/c,4",
        "4,,2024-03-02 00:01:00,/nobody,1",
        ",ann,2024-03-01 12:00:00,/no-key,1",
        "9,ann,,/no-time,1",
    )
    put(shop, "crowd.csv", *(f"crowd{n},crowd,2024-03-02 12:00:00,/,1" for n in range(20)))
    receipts = run(shop)
    ids = {id_ for (id_,) in shop.rows("raw_days") if not id_.startswith("crowd")}
    assert (receipts["clicks"].arrived, ids) == (26, {"2", "3", "4"})
    assert of(shop) == [("2024-03-02", "2024-03-02 00:10", 2, 6)]
    assert of(shop, "visits") == [("2024-03-02 00:10", "2024-03-02 00:10", 1, 4)]
    assert [receipts[name].before_start for name in ("clicks", "sessions", "visits")] == [2, 0, 2]
    assert [receipts[name].set_aside for name in ("clicks", "sessions", "visits")] == [1, 1, 0]
    # neither set aside nor waiting: only what nobody knows the time of
    assert shop.aside() == [("first.csv", "null event time")] * 2

    put(
        shop,
        "late.csv",
        "5,ann,2024-03-02 00:04:59,/d,8",
        "6,ann,2024-03-01 10:00:00,/,1",
        "10,ann,2024-03-01 23:59:59,/z,32",
    )
    put(shop, "more.csv", "7,ann,2024-03-02 00:20:00,/e,16", "8,bob,2024-03-02 00:05:00,/,1")
    receipts = run(shop)
    assert of(shop) == [("2024-03-02", "2024-03-02 00:20", 4, 30)]
    assert of(shop, "visits") == [("2024-03-02 00:10", "2024-03-02 00:20", 2, 20)]
    assert [receipts[name].before_start for name in ("clicks", "sessions", "visits")] == [2, 0, 1]
    assert receipts["visits"].sessions_new == 1

    starts(shop, "2024-03-01T23:55:00Z")
    run(shop)
    assert of(shop) == [("2024-03-01 23:59:59", "2024-03-02 00:20", 5, 62)]

    shop.drop("first.csv")
    starts(shop, "2024-03-05")
    shop.model("clicks", from_start(CLICKS, "2024-03-01"))
    shop.model("visits", from_start(SESSIONS, "2024-03-02T00:04:59Z"))
    run(shop)
    assert of(shop) == [
        ("2024-03-01 10:00", "2024-03-01 10:00", 1, 1),
        ("2024-03-01 23:59:59", "2024-03-02 00:20", 3, 56),
    ]
    assert of(shop, "visits") == [("2024-03-02 00:04:59", "2024-03-02 00:20", 2, 24)]


def from_start(model: str, start: str) -> str:
    """A model with a start of its own."""
    return model.replace("---\n", f"---\nstart: {start}\n", 1)


def run(shop: ClicksProject) -> dict[str, Receipt]:
    """What one run did, by model."""
    result = api.run(
        api.open_project(shop.root), as_of=parse_instant_text(NOW), allow_removals=True
    )
    return {step.model: receipt for step, receipt in result.steps}


def starts(shop: ClicksProject, at: str) -> None:
    """The project's start, or another one."""
    file = shop.root / "infold.yml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("start:")]
    file.write_text("\n".join([*lines, f"start: {at}"]) + "\n")


def of(shop: ClicksProject, model: str = "sessions") -> list[tuple[object, ...]]:
    """Ann's sessions: start, end, events and revenue."""
    columns = ("session_start", "session_end", "events", "revenue")
    found = [record for record in shop.records(model) if record["user_id"] == "ann"]
    return sorted(tuple(record[name] for name in columns) for record in found)
