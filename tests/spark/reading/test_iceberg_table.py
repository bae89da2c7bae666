"""An Iceberg source: its rows change, its files are rewritten, its columns get other names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.lake.iceberg.owner import Owner, play
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


def shop_over_iceberg(folder: Path, warehouse: Path, name: str = "renamed") -> ClicksProject:
    """A project whose one source is an Iceberg table of that name."""
    shop = shop_with(folder, warehouse, MODEL.replace("renamed", name))
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    source = SOURCE.replace("renamed", name)
    project.write_text(before + source + after[after.index("targets:") :])
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

    spark.sql(f"ALTER TABLE {TABLE} RENAME COLUMN old TO older")
    assert shop.run().arrived == 0, "a column that is not declared"


def test_rows_are_appended_changed_and_deleted_and_files_rewritten(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """The events are the rows of the table after every change; what changes no row writes none."""
    name, table = "changed", "infold.outside.changed"
    modes = ", ".join(f"'write.{one}.mode' = 'merge-on-read'" for one in ("update", "delete"))
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.outside")
    spark.sql(
        f"CREATE TABLE {table} (id string, at timestamp, v int) USING iceberg"
        f" TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    spark.sql(
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, TIMESTAMP '2024-03-01', v"
        " FROM VALUES ('a', 1), ('b', 2), ('c', 3) AS t(id, v)"
    )
    shop = shop_over_iceberg(tmp_path, warehouse, name)
    shop.run()
    spark.sql(f"INSERT INTO {table} VALUES ('d', TIMESTAMP '2024-03-02', 4)")
    shop.run()
    spark.sql(f"UPDATE {table} SET v = 20 WHERE id = 'b'")
    spark.sql(f"DELETE FROM {table} WHERE id = 'c'")
    receipt = shop.run()
    assert (receipt.files_new, receipt.files_removed) == (2, 1), "not the file that lost no row"
    rows = [("a", "2024-03-01", 1), ("b", "2024-03-01", 20), ("d", "2024-03-02", 4)]
    assert shop.rows() == rows

    version, before = shop.version(), _snapshots(spark, table)
    spark.sql(
        f"CALL infold.system.rewrite_data_files(table => 'outside.{name}',"
        " options => map('rewrite-all', 'true'))"
    )
    assert _snapshots(spark, table) > before
    receipt = shop.run()
    assert (shop.rows(), shop.changes(version)) == (rows, [])
    assert receipt.cells_built == 0
    spark.sql(
        f"CALL infold.system.expire_snapshots(table => 'outside.{name}', retain_last => 1,"
        " older_than => TIMESTAMP '2999-01-01')"
    )
    spark.sql(f"ALTER TABLE {table} ADD COLUMN w int")
    assert shop.run().arrived == 0
    spark.sql(f"INSERT INTO {table} VALUES ('e', TIMESTAMP '2024-03-02', 5, 6)")
    shop.run()
    assert shop.rows() == [*rows, ("e", "2024-03-02", 5)]
    assert shop.proven()


def _snapshots(spark: SparkSession, table: str) -> int:
    return spark.sql(f"SELECT * FROM {table}.snapshots").count()


@pytest.mark.parametrize("location", ["file://{}", "file:{}", "{}"])
def test_a_table_that_pyiceberg_writes(
    tmp_path: Path, warehouse: Path, spark: SparkSession, location: str
) -> None:
    """However its metadata names files, as URLs or paths, each change of its owner arrives."""
    owner = Owner(tmp_path, location.format(tmp_path / "lake"))
    shop = shop_with(tmp_path / "shop", warehouse)
    owner.is_read_by(shop)
    play(shop, owner)


def test_names_in_files_that_mean_another_column(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Who changes the table's name mapping changes the values of files that have no ids."""
    owner = Owner(tmp_path, f"file://{tmp_path / 'lake'}")
    shop = shop_with(tmp_path / "shop", warehouse)
    owner.is_read_by(shop)
    owner.add_file(tmp_path / "added.parquet", a=1)
    shop.run()
    assert shop.rows() == owner.expected()

    owner.map_names("w")
    owner.rows["a"] = None
    shop.run()
    assert shop.rows() == owner.expected()
    assert shop.proven()
