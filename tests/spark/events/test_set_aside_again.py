"""A file that was set aside as a whole stays so when it is read again, as a rebuild has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.events.clicks_project import ClicksProject, shop_with
from tests.spark.reading.written import TABLES

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import PlanOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = """    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, cur: string}
    on_drift: set_aside
    on_unreadable: set_aside
  raw.rates:
    path: rates.csv
    columns: {code: string, rate: int}
"""
PRICED = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
SELECT e.id, e.at, e.v * r.rate AS worth
FROM raw.clicks e LEFT JOIN raw.rates r ON e.cur = r.code"""
DATED = PRICED.replace("e.at, e.v * r.rate AS worth", "timestamp_seconds(nullif(r.rate, 1)) AS at")
"""The time of an event is from the lookup; a rate of 1 has none."""
PLAIN = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
forward_only: true
---
SELECT id, at, v FROM raw.clicks"""

Rows = dict[str, list[object]]
GOOD: Rows = {
    "id": ["a", "b"],
    "at": ["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"],
    "v": [1, 2],
    "cur": ["EUR", "USD"],
}
MORE = GOOD | {"id": ["c", "d"], "extra": [1, 1]}
OTHER_TYPE = GOOD | {"id": ["c", "d"], "v": ["1", "2"]}
BAD: dict[str, tuple[str, Rows | None]] = {
    "another column": (".csv", MORE),
    "another key": (".json", MORE),
    "another type": (".parquet", OTHER_TYPE),
    "unreadable": (".parquet", None),
}


def rates(shop: ClicksProject, eur: int) -> None:
    """Write the lookup."""
    (shop.root / "rates.csv").write_text(f"code,rate\nEUR,{eur}\nUSD,1\n")


def write(rows: Rows | None, at: Path) -> None:
    """A file of rows; without any, one of nothing that can be read."""
    if rows is None:
        at.write_bytes(b"no such file")
        return
    table = pa.table(rows)
    if at.suffix == ".parquet":
        times = table["at"].cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.column_names.index("at"), "at", times)
    TABLES[at.suffix](table, at)


def with_files(
    root: Path, warehouse: Path, model: str, ending: str, bad: Rows | None
) -> ClicksProject:
    """A project with a good file and one that is set aside, taken in."""
    shop = shop_with(root, warehouse, model, SOURCE)
    declared = root / "infold.yml"
    declared.write_text(declared.read_text().replace("landing/*.csv", f"landing/*{ending}"))
    rates(shop, 1)
    write(GOOD, root / "landing" / f"good{ending}")
    write(bad, root / "landing" / f"bad{ending}")
    shop.run()
    return shop


@pytest.mark.parametrize(("ending", "bad"), BAD.values(), ids=BAD)
def test_a_lookup_changes(
    tmp_path: Path, warehouse: Path, spark: SparkSession, ending: str, bad: Rows | None
) -> None:
    """Rows that have the changed key, but are in such a file, stay set aside."""
    shop = with_files(tmp_path, warehouse, PRICED, ending, bad)
    aside = shop.aside()
    assert {file for file, _ in aside} == {f"bad{ending}"}

    rates(shop, 3)
    receipt = shop.run()

    assert shop.rows() == [("a", "2024-03-01", 3), ("b", "2024-03-02", 2)]
    assert receipt.read == 4, "the rows of the file with the key, and the stored ones"
    assert shop.aside() == aside
    assert shop.proven()


def test_rows_that_were_set_aside_each_by_itself_are_taken_in(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """A good file without a row that can be used is judged once more, and found good."""
    shop = with_files(tmp_path, warehouse, DATED, *BAD["another column"])
    assert shop.rows() == []

    rates(shop, 3)
    shop.run()

    assert shop.rows() == [("a", "1970-01-01 00:00:03")]
    assert [file for file, _ in shop.aside()] == ["bad.csv", "bad.csv", "good.csv"]
    assert shop.proven()


def test_every_file_is_read_again(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """Where it is not known which files have changed keys, this one is read too."""
    shop = with_files(tmp_path, warehouse, PRICED, *BAD["another type"])
    aside = shop.aside()

    rates(shop, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infold.spark.inputs.changed_keys.traceable_table", lambda *_, **__: False)
        shop.run()

    assert shop.rows() == [("a", "2024-03-01", 3), ("b", "2024-03-02", 2)]
    assert shop.aside() == aside
    assert shop.proven()


def test_verify_reads_it(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """A rebuild by several definitions in force reads every file, and takes no row of this one."""
    shop = with_files(tmp_path, warehouse, PLAIN, *BAD["another column"])

    shop.model("clicks", PLAIN.replace("v FROM", "v * 2 AS v FROM"))
    since = PlanOptions(forward_only={"clicks": parse_instant_text("2024-03-02")})
    api.run(api.open_project(shop.root), asked=since)

    assert shop.rows() == [("a", "2024-03-01", 1), ("b", "2024-03-02", 4)]
    assert shop.proven()
