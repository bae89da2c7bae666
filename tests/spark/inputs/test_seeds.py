"""Seeds: a changed row of a CSV file of the project builds what contains its key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import shop_with

from infold import api
from infold.api import promoting
from infold.api.environment_runs import run_environment
from infold.api.environments import show_environment
from infold.core.project import Project

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


def test_production_has_the_rows_that_were_applied(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Values are as the file has them; a changed row builds what contains its key, old or new.

    Where definitions are applied by hand, a changed file of a seed changes nothing before that.
    Runs go on with the rows that were applied, an environment has the new ones, and a promote
    brings them, or `infold apply`; a rollback takes them back.
    """
    shop = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    (tmp_path / "seeds").mkdir()
    seed = tmp_path / "seeds" / "prices.csv"
    seed.write_text(ROWS)
    config = tmp_path / "infold.yml"
    config.write_text(config.read_text().replace("{storage", "{apply: manual, storage") + TYPES)
    shop.model("priced", PRICED)
    put(shop, "a.csv", *(f"e{n},u,2024-02-{n + 1:02} 10:00:00,/{'abc'[n % 3]},2" for n in range(9)))

    def declared() -> Project:
        return api.open_project(tmp_path, declared=True)

    def applied() -> dict[str, int]:
        result = api.run(api.to_apply(declared()), command="apply")
        return {step.model: receipt.cells_built for step, receipt in result.steps}

    def price(rows: list[dict[str, object]]) -> set[object]:
        return {row["price"] for row in rows if str(row["id"]) in {"e1", "e4", "e7", "x"}}

    def stored() -> set[object]:
        return price(api.show(api.open_project(tmp_path), "priced").to_pylist())

    assert applied() == {"prices": 1, "clicks": 9, "priced": 9}
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
    assert stored() == {Decimal("4.0000")}
    seed.write_text(ROWS.replace("/b,2,", "/b,3,"))
    put(shop, "b.csv", "x,u,2024-02-20 10:00:00,/b,2")
    run = api.run(api.open_project(tmp_path))
    assert {step.model for step, _ in run.steps} == {"clicks", "priced"}
    assert stored() == {Decimal("4.0000")}
    run_environment(declared(), "dev")
    assert price(show_environment(declared(), "dev", "priced").to_pylist()) == {Decimal("6.0000")}
    assert stored() == {Decimal("4.0000")}
    promoting.promote(declared(), promoting.find_promotion(declared(), "dev"))
    assert stored() == {Decimal("6.0000")}
    promoting.rollback(declared(), promoting.find_rollback(declared()))
    assert stored() == {Decimal("4.0000")}
    assert applied().keys() == {"prices", "priced"}
    assert stored() == {Decimal("6.0000")}
    seed.write_text(ROWS.replace("/b,2,", "/b,4,"))
    assert applied() == {"prices": 1, "priced": 4}
    assert stored() == {Decimal("8.0000")}
    seed.write_text(ROWS.partition("\n")[0] + "\n")
    assert applied() == {"prices": 1, "priced": 10}
    assert stored() == {None}
    assert shop.proven()
