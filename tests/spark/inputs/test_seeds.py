"""Seeds: a changed row of a CSV file of the project builds what contains its key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import NOW, shop_with

from infold import api
from infold.core.interval import parse_instant_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PRICED = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(c.at AS date) AS day, c.id, p.label, c.amount * p.rate AS price
FROM clicks c LEFT JOIN prices p USING (url)"""
TYPES = """seeds:
  prices:
    columns: {rate: "decimal(5,2)", since: timestamp, share: double, many: bigint, on: boolean}
"""
ROWS = r"""url,rate,label,since,share,many,on,day
/a,1.50,"it's ""A"" \ ${x}
on two lines",2024-03-01T10:00:00.123456+02:00,1e-3,-9223372036854775808,true,2024-01-01
/b,2,,,.5,,FALSE,
/c,,"",2024-03-01 10:00,-0.1,7,,é
"""


def test_a_changed_row_builds_the_cells_of_its_key(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Values are as the file has them; a changed row builds what contains its key, old or new."""
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    (tmp_path / "seeds").mkdir()
    seed = tmp_path / "seeds" / "prices.csv"
    seed.write_text(ROWS)
    config = tmp_path / "infold.yml"
    config.write_text(config.read_text() + TYPES)
    shop.model("priced", PRICED)
    put(shop, "a.csv", *(f"e{n},u,2024-02-{n + 1:02} 10:00:00,/{'abc'[n % 3]},2" for n in range(9)))

    def run() -> dict[str, int]:
        found = api.run(api.open_project(tmp_path), as_of=parse_instant_text(NOW))
        return {step.model: receipt.cells_built for step, receipt in found.steps}

    assert run() == {"prices": 1, "clicks": 9, "priced": 9}
    assert shop.rows("prices") == [
        (
            "/a",
            Decimal("1.50"),
            'it\'s "A" \\ ${x}\non two lines',
            "2024-03-01 08:00:00.123456",
            0.001,
            -(2**63),
            True,
            "2024-01-01",
        ),
        ("/b", Decimal("2.00"), None, None, 0.5, None, False, None),
        ("/c", None, "", "2024-03-01 10:00", -0.1, 7, None, "é"),
    ]
    assert run() == {}

    seed.write_text(ROWS.replace("/b,2,", "/b,3,"))
    assert run() == {"prices": 1, "priced": 3}

    seed.write_text(ROWS.partition("\n")[0] + "\n")
    assert run() == {"prices": 1, "priced": 9}
    assert shop.proven()
