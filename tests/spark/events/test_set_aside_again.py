"""A file that was set aside as a whole stays so when it is read again, as a rebuild has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.events.clicks_project import MODEL, shop_with
from tests.spark.reading.written import TABLES

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import PlanOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KEYS = """    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, cur: string}
    on_drift: set_aside
    on_unreadable: set_aside
"""
SOURCES = f"""{KEYS}  raw.lines:
    path: landing/*.json
{KEYS}  raw.typed:
    path: landing/*.parquet
{KEYS}  raw.rates:
    path: rates.csv
    columns: {{code: string, rate: int}}
"""
JOINED = "FROM raw.clicks e LEFT JOIN raw.rates r ON e.cur = r.code"
PRICED = MODEL.replace("id, at, v FROM raw.clicks", f"e.id, e.at, e.v * r.rate AS worth {JOINED}")
DATED = MODEL.replace(
    "id, at, v FROM raw.clicks", f"e.id, timestamp_seconds(nullif(r.rate, 1)) AS at {JOINED}"
)
"""The time of an event is from the lookup; a rate of 1 has none."""
PLAIN = MODEL.replace("---\nSELECT", "forward_only: true\n---\nSELECT")

Rows = dict[str, list[object]]
GOOD: Rows = {
    "id": ["a", "b"],
    "at": ["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"],
    "v": [1, 2],
    "cur": ["EUR", "USD"],
}
MORE = GOOD | {"id": ["c", "d"], "extra": [1, 1]}
OTHER_TYPE = GOOD | {"id": ["c", "d"], "v": ["1", "2"]}


def write(rows: Rows, at: Path) -> None:
    """A file of rows."""
    table = pa.table(rows)
    if at.suffix == ".parquet":
        times = table["at"].cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.column_names.index("at"), "at", times)
    TABLES[at.suffix](table, at)


def test_a_lookup_changes(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """
    Rows that have the changed key, but are in a file with another column, key or type, or in one
    that cannot be read, stay set aside; also where it is not known which files have changed keys.
    A good file without a row that can be used is judged once more, and found good. A rebuild by
    several definitions in force reads every file, and takes no row of such a one. What is corrected
    comes in.
    """
    shop = shop_with(tmp_path, warehouse, DATED, SOURCES)
    priced = {"lines": ".json", "typed": ".parquet"}
    for name, ending in (("clicks", ".csv"), *priced.items()):
        write(GOOD, shop.root / "landing" / f"good{ending}")
        bad = OTHER_TYPE if ending == ".parquet" else MORE
        write(bad, shop.root / "landing" / f"bad{ending}")
        if name in priced:
            shop.model(name, PRICED.replace("raw.clicks", f"raw.{name}"))
    (shop.root / "landing" / "broken.parquet").write_bytes(b"no such file")
    shop.model("plain", PLAIN)

    def rate(eur: int) -> None:
        (shop.root / "rates.csv").write_text(f"code,rate\nEUR,{eur}\nUSD,1\n")

    rate(1)
    assert ("drift", 2) in shop.run().set_aside_by
    aside = {name: shop.aside(name) for name in priced}
    assert {file for files in aside.values() for file, _ in files} == {
        *("bad.json", "bad.parquet", "broken.parquet")
    }
    assert shop.rows() == []

    rate(3)
    receipt = shop.run(model="typed")
    assert receipt.read == 4, "the rows of the file with the key, and the stored ones"
    assert shop.rows() == [("a", "1970-01-01 00:00:03")]
    assert [file for file, _ in shop.aside("clicks")] == ["bad.csv", "bad.csv", "good.csv"]
    for name in priced:
        assert shop.rows(name) == [("a", "2024-03-01", 3), ("b", "2024-03-02", 2)]
        assert shop.aside(name) == aside[name]

    rate(5)
    shop.model("plain", PLAIN.replace("v FROM", "v * 2 AS v FROM"))
    since = PlanOptions(forward_only={"plain": parse_instant_text("2024-03-02")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infold.spark.inputs.changed_keys.traceable_table", lambda *_, **__: False)
        api.run(api.open_project(shop.root), asked=since)
    for name in priced:
        assert shop.rows(name) == [("a", "2024-03-01", 5), ("b", "2024-03-02", 2)]
        assert shop.aside(name) == aside[name]
    assert shop.rows("plain") == [("a", "2024-03-01", 1), ("b", "2024-03-02", 4)]
    assert api.verify(api.open_project(shop.root), select=["plain"]).equal

    for ending in (".json", ".parquet"):
        write(GOOD | {"id": ["c", "d"]}, shop.root / "landing" / f"bad{ending}")
    write(GOOD | {"id": ["e", "f"]}, shop.root / "landing" / "broken.parquet")
    shop.run()
    assert {name: [row[0] for row in shop.rows(name)] for name in priced} == {
        "lines": ["a", "b", "c", "d"],
        "typed": ["a", "b", "c", "d", "e", "f"],
    }
    assert [shop.aside(name) for name in priced] == [[], []]
