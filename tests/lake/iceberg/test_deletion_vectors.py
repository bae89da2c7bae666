"""Rows that Spark deletes from a v3 table without rewriting
files are not seen by readers without a JVM.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading import iceberg_table

pytestmark = pytest.mark.spark

CREATE = """
CREATE TABLE infold.shop.events (id BIGINT, month INT) PARTITIONED BY (month)
TBLPROPERTIES (
    'format-version' = '3',
    'write.delete.mode' = 'merge-on-read',
    'write.distribution-mode' = 'hash'
)
"""


def test_deletion_vectors_are_read(tmp_path: Path) -> None:
    """Deleted rows are not read, and only the files that lost rows get another fingerprint."""
    from infold.spark.jvm.spark_session import start

    spark = start(tmp_path, tmp_path / "catalog.db")
    lake = IcebergLake(sqlite_catalog(tmp_path / "catalog.db"), "shop", tmp_path)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.shop")
    spark.sql(CREATE)
    for ids_from in ("0, 100", "100, 200"):  # two files in each of two partitions
        spark.sql(f"INSERT INTO infold.shop.events SELECT id, id % 2 FROM range({ids_from})")

    def files() -> dict[str, str]:
        head = lake.metadata("events")
        assert head is not None
        return {file.path: file.fingerprint for file in iceberg_table.data_files(head.location)}

    def ids() -> list[int]:
        return sorted(lake.rows("events").column("id").to_pylist())

    before = files()
    assert len(before) == 4
    for gone in ("6", "8, 9", "104, 6, 10"):
        spark.sql(f"DELETE FROM infold.shop.events WHERE id IN ({gone})")

    after = files()
    assert ids() == [i for i in range(200) if i not in {6, 8, 9, 10, 104}]
    assert lake.rows("events", where="id < 20", limit=3).num_rows == 3
    assert before.keys() == after.keys()
    changed = [path for path in before if before[path] != after[path]]
    assert len(changed) == 3, "ids below 100, even and odd; even ids from 100"
