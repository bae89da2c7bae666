"""A Delta source: its rows change, its files are rewritten, its history is vacuumed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.lake.delta.orders import KINDS, MODEL, Orders, play, shop_over_delta

from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PLACE = "lake/a b/orders"


@pytest.mark.parametrize("seed", [2])
def test_events_are_the_rows_of_the_table_after_every_change(
    tmp_path: Path, warehouse: Path, spark: SparkSession, seed: int
) -> None:
    """
    After random appends, updates, deletes, compactions and vacuums the events are its rows.

    What only rewrites files changes no cell.
    """
    shop = shop_over_delta(tmp_path, warehouse)
    play(shop, Orders(tmp_path / PLACE, seed))


def test_rows_that_delta_in_spark_deletes(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Its deletion vectors are files, and its folders of partitions have names of its own."""
    shop = shop_over_delta(tmp_path, warehouse)
    folder = str(tmp_path / PLACE)
    numbers = ", ".join(f"({i}, {_sql(KINDS[i % 4])})" for i in range(24))
    rows = spark.sql(
        "SELECT /*+ COALESCE(1) */ concat('o', i) AS id, TIMESTAMP '2024-03-01' AS at,"
        f" CAST(i AS INT) AS v, kind FROM VALUES {numbers} AS t(i, kind)"
    )
    writer = rows.write.format("delta").partitionBy("kind")
    writer.option("delta.enableDeletionVectors", "true").save(folder)
    shop.run()
    assert len(shop.rows()) == 24

    jvm: Any = spark._jvm
    table = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, folder)
    table.delete("v IN (2, 3, 5, 10, 15)")
    receipt = shop.run()

    left = [i for i in range(24) if i not in (2, 3, 5, 10, 15)]
    assert sorted(row[2] for row in shop.rows()) == left
    assert {row[3] for row in shop.rows()} == {*KINDS}
    assert receipt.files_removed == 3, "each is there with other rows"


def test_a_column_that_the_table_gains(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """It costs nothing until it is declared; old rows have NULL. Before it is there it is drift."""
    shop = shop_over_delta(tmp_path, warehouse)
    orders = Orders(tmp_path / PLACE, 1)
    orders.append()
    shop.run()
    at = pa.array(["2024-03-01"]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    new = {"id": ["new"], "at": at, "v": pa.array([7], pa.int32()), "kind": ["x"], "w": [1]}
    write_deltalake(orders.folder.as_uri(), pa.table(new), mode="append", schema_mode="merge")
    assert shop.run().arrived == 1

    project = tmp_path / "infold.yml"
    project.write_text(project.read_text().replace("kind: string}", "kind: string, w: bigint}"))
    shop.model("clicks", MODEL.replace("kind FROM", "kind, w FROM"))
    shop.run()
    expected = [*((*row, None) for row in orders.rows.values()), ("new", "2024-03-01", 7, "x", 1)]
    assert shop.rows() == sorted(expected, key=repr)

    project.write_text(project.read_text().replace("w: bigint}", "w: bigint, z: int}"))
    shop.model("clicks", MODEL.replace("kind FROM", "kind, w, z FROM"))
    with pytest.raises(InfoldError) as raised:
        shop.run()
    assert raised.value.slug == "drift"
    assert "z" in dict(raised.value.facts)["how"]
    assert "set_aside" not in str(raised.value)  # of a table no file can be


def _sql(text: str | None) -> str:
    return "CAST(NULL AS STRING)" if text is None else f"'{text}'"
