"""A Delta source that maps the names of its columns, as other programs rename and drop them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import ClicksProject, shop_with

from infold.core import interval
from infold.spark.tables.delta.session_settings import DELTA_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = ("id", "at", "v", "kind", "note")
MODEL = CLICKS.replace("raw.clicks", "raw.orders").replace("id, at, v", ", ".join(COLUMNS))
SOURCE = """sources:
  raw.orders:
    path: lake/a b/orders
    format: delta
    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, kind: string, note: string}
"""


def test_events_are_the_rows_whatever_columns_are_called(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    After each change of the table the events are what Delta itself reads.

    Columns get other names before and after they have rows, two change their names, one is dropped
    and made anew, rows are deleted in files that stay, and one is what the table is partitioned by.
    """
    shop = _shop_over_delta(tmp_path, warehouse)
    folder = str(tmp_path / "lake" / "a b" / "orders")
    table = f"delta.`{folder}`"
    other = spark.newSession()  # of another program: tables are found by their paths
    by_path = {"spark.sql.defaultCatalog": "spark_catalog", "spark.sql.runSQLOnFiles": "true"}
    for key, value in {**by_path, **DELTA_CATALOG}.items():
        other.conf.set(key, value)

    def check() -> None:
        shop.run()
        there = other.read.format("delta").load(folder).select(*COLUMNS).toArrow().to_pylist()
        wanted = [
            tuple(
                interval.show_instant(interval.micros_of(value)) if name == "at" else value
                for name, value in row.items()
            )
            for row in there
        ]
        assert shop.rows() == sorted(wanted, key=repr)

    def insert(*rows: str) -> None:
        other.sql(f"INSERT INTO {table} VALUES {', '.join(rows)}")

    other.sql(
        f"CREATE TABLE {table} (id STRING, at TIMESTAMP, w INT, sort STRING, note STRING, old INT)"
        " USING delta PARTITIONED BY (sort) TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
        " 'delta.enableDeletionVectors' = 'true')"
    )
    insert(
        "('a', timestamp'2024-03-01 10:00:00', 1, 'é %', 'x', 7)",
        "('b', timestamp'2024-03-02 10:00:00', 2, NULL, 'y', 8)",
        "('c', timestamp'2024-03-02 11:00:00', 3, 'é %', 'z', 9)",
    )
    for one in ("RENAME COLUMN w TO v", "RENAME COLUMN sort TO kind", "DROP COLUMN old"):
        other.sql(f"ALTER TABLE {table} {one}")
    check()
    insert("('d', timestamp'2024-03-03 10:00:00', 4, 'k', 'w')")
    other.sql(f"DELETE FROM {table} WHERE id = 'a'")
    check()
    for one in ("DROP COLUMN note", "ADD COLUMN note STRING", "ADD COLUMN old INT"):
        other.sql(f"ALTER TABLE {table} {one}")
    check()
    assert {row[4] for row in shop.rows()} == {None}
    insert("('e', timestamp'2024-03-03 11:00:00', 5, 'k', 'new', 1)")
    check()
    assert shop.proven()


def _shop_over_delta(folder: Path, warehouse: Path) -> ClicksProject:
    """A project whose one source is the table."""
    shop = shop_with(folder, warehouse, MODEL)
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    project.write_text(before + SOURCE + after[after.index("targets:") :])
    return shop
