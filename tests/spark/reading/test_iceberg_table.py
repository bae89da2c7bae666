"""An Iceberg source whose columns change their names while its files stay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import ClicksProject, shop_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MODEL = CLICKS.replace("raw.clicks", "raw.renamed")

SOURCE = """sources:
  raw.renamed:
    table: outside.renamed
    format: iceberg
    event_time_column: at
    columns: {id: string, at: timestamp, v: int}
"""

TABLE = "infold.outside.renamed"


def shop_over_iceberg(folder: Path, warehouse: Path) -> ClicksProject:
    """A project whose one source is the Iceberg table."""
    shop = shop_with(folder, warehouse, MODEL)
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    project.write_text(before + SOURCE + after[after.index("targets:") :])
    return shop


def test_a_name_that_moves_to_another_column_has_all_files_read_again(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """After a column name moves to another column, old and
    new rows have the values of the same column.
    """
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.outside")
    spark.sql(f"CREATE TABLE {TABLE} (id string, at timestamp, v int, w int) USING iceberg")
    spark.sql(f"INSERT INTO {TABLE} VALUES ('a', TIMESTAMP '2024-03-01', 1, 100)")
    shop = shop_over_iceberg(tmp_path, warehouse)
    shop.run()
    assert shop.rows() == [("a", "2024-03-01", 1)]

    spark.sql(f"ALTER TABLE {TABLE} RENAME COLUMN v TO old")
    spark.sql(f"ALTER TABLE {TABLE} RENAME COLUMN w TO v")
    spark.sql(f"INSERT INTO {TABLE} VALUES ('b', TIMESTAMP '2024-03-01', 2, 200)")
    receipt = shop.run()

    assert shop.rows() == [("a", "2024-03-01", 100), ("b", "2024-03-01", 200)]
    assert (receipt.files_new, receipt.files_removed) == (2, 1)
    assert shop.proven()

    spark.sql(f"ALTER TABLE {TABLE} RENAME COLUMN old TO older")
    assert shop.run().arrived == 0, "a column that is not declared"
