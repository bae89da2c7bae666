"""A Delta source that maps its columns, as other programs rename and drop them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.lake.delta.vectors import commit
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import shop_with

from infold import api
from infold.core import interval
from infold.spark.tables.delta.session_settings import DELTA_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HERE = "THE_TABLE"
"""The table, in statements about it."""

COLUMNS = ("id", "at", "v", "kind", "note", "deep", "parts", "named")
SOURCE = """sources:
  raw.orders:
    path: lake/a b/orders
    format: delta
    event_time_column: at
    columns:
      id: string
      at: timestamp
      v: bigint
      kind: string
      note: string
      deep: struct<a:int,b:struct<e:int,c:string>>
      parts: array<struct<x:int,y:string>>
      named: map<string,struct<z:int>>
"""


@pytest.mark.parametrize("mode", ["name", "id"])
def test_events_are_the_rows_whatever_columns_are_called(
    mode: str, tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    After each change of the table the events are what Delta itself reads.

    Columns, and fields of structs, in lists and maps, get other names before and after they have
    rows, two change their names, one is dropped and made anew, rows are deleted in files that stay,
    and one column is what the table is partitioned by. By ids a file may have any names: those of
    other columns, and one more under the name of a column. One without ids is refused, and changes
    nothing.
    """
    model = CLICKS.replace("raw.clicks", "raw.orders").replace("id, at, v", ", ".join(COLUMNS))
    shop = shop_with(tmp_path, warehouse, model)
    declared = tmp_path / "infold.yml"
    before, _, after = declared.read_text().partition("sources:")
    declared.write_text(before + SOURCE + after[after.index("targets:") :])
    folder = tmp_path / "lake" / "a b" / "orders"
    other = _Other(folder, spark)

    def check() -> None:
        shop.run()
        assert shop.rows() == other.rows(*COLUMNS)

    def insert(*rows: str) -> None:
        other(f"INSERT INTO {HERE} VALUES {', '.join(rows)}")

    def alter(*changes: str) -> None:
        for one in changes:
            other(f"ALTER TABLE {HERE} {one}")

    other(
        f"CREATE TABLE {HERE} (id STRING, at TIMESTAMP, w INT, sort STRING, note STRING, old INT,"
        " deep STRUCT<w: INT, b: STRUCT<e: INT, c: STRING>>,"
        " parts ARRAY<STRUCT<y: INT, x: STRING>>, named MAP<STRING, STRUCT<zz: INT>>)"
        " USING delta PARTITIONED BY (sort) TBLPROPERTIES"
        f" ('delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true')"
    )
    insert(
        "('a', timestamp'2024-03-01 10:00:00', 1, 'é %', 'x', 7, struct(1, struct(1, 'k')),"
        " array(struct(1, 'p'), NULL), map('m', struct(1), 'n', NULL))",
        "('b', timestamp'2024-03-02 10:00:00', 2, NULL, 'y', 8, struct(NULL, NULL), array(),"
        " map())",
        "('c', timestamp'2024-03-02 11:00:00', 3, 'é %', 'z', 9, NULL, NULL, NULL)",
    )
    alter("RENAME COLUMN w TO v", "RENAME COLUMN sort TO kind", "RENAME COLUMN deep.w TO a")
    alter("RENAME COLUMN parts.element.x TO s", "RENAME COLUMN parts.element.y TO x")
    alter("RENAME COLUMN parts.element.s TO y", "RENAME COLUMN named.value.zz TO z")
    check()
    insert(
        "('d', timestamp'2024-03-03 10:00:00', 4, 'k', 'w', 9, struct(4, struct(2, 'd')),"
        " array(struct(4, 'q')), map('o', struct(4)))"
    )
    other(f"DELETE FROM {HERE} WHERE id = 'b'")
    alter(
        "DROP COLUMNS (note, old, deep.b.c, parts.element.y)",
        "ADD COLUMNS (note STRING, old INT, deep.b.c STRING, parts.element.y STRING)",
    )
    check()
    assert {row[4] for row in shop.rows()} == {None}
    insert(
        "('e', timestamp'2024-03-03 11:00:00', 5, 'k', struct(5, struct(3, 'e')),"
        " array(struct(5, 'r')), map('o', struct(5)), 'new', 1)"
    )
    alter("RENAME COLUMN note TO was", "RENAME COLUMN kind TO note", "RENAME COLUMN was TO kind")
    check()
    first, *_, last = shop.rows()
    assert (first[6][0]["y"], last[6][0]["y"]) == (None, "r")
    if mode == "id":
        _write_file(folder, ids=True)
        shop.run()  # Spark's own reader by ids mixes names up that other columns have
        rows = shop.rows()
        assert [row[0] for row in rows] == ["a", "c", "d", "e", "f"]
        assert (rows[-1][2:5], rows[-1][5:]) == ((5, "new", "k"), last[5:])
        _write_file(folder, ids=False)
        with pytest.raises(api.RunFailed) as failed:
            shop.run()
        (found,) = failed.value.result.failures
        assert found.error.slug == "delta-source-unreadable"
        assert "without.parquet has none" in dict(found.error.facts)["why"]
        assert shop.rows() == rows


class _Other:
    """Another program with Delta: its tables are found by their paths."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.session = str(folder), spark.newSession()
        settings = {
            "spark.sql.defaultCatalog": "spark_catalog",
            "spark.sql.runSQLOnFiles": "true",
            "spark.sql.shuffle.partitions": "1",
            "spark.databricks.delta.snapshotPartitions": "1",
        }
        for key, value in {**settings, **DELTA_CATALOG}.items():
            self.session.conf.set(key, value)

    def __call__(self, statement: str) -> None:
        """Carry out a statement about the table."""
        self.session.sql(statement.replace(HERE, f"delta.`{self.folder}`"))

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of the table as Delta reads them, as tests write them."""
        there = self.session.read.format("delta").load(self.folder).select(*columns)
        found = [
            tuple(
                interval.show_instant(interval.micros_of(value)) if name == "at" else value
                for name, value in row.items()
            )
            for row in there.toArrow().to_pylist()
        ]
        return sorted(found, key=repr)


def _write_file(folder: Path, *, ids: bool) -> None:
    """Add a file: the row of the newest one as `f`, under the names of other columns."""
    log = max((folder / "_delta_log").glob("*.json"))
    while not (added := [one for one in map(json.loads, log.open()) if "add" in one]):
        log = log.with_name(f"{int(log.stem) - 1:020}.json")
    add: dict[str, Any] = added[-1]["add"]
    rows = parquet.read_table(folder / unquote(add["path"]), partitioning=None)
    first, *others = rows.schema.names
    rows = rows.set_column(0, rows.schema.field(0), pa.array(["f"], pa.string()))
    names = [*others, first]
    fields = [one.with_name(name) for one, name in zip(rows.schema, names, strict=True)]
    if not ids:
        fields = [one.remove_metadata() for one in fields]
    rows = pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))
    more = pa.field("v", pa.int32(), metadata={"PARQUET:field_id": "99"} if ids else None)
    rows = rows.append_column(more, pa.array([42], pa.int32()))
    file = folder / f"{'with' if ids else 'without'}.parquet"
    parquet.write_table(rows, file)
    plain = {key: add[key] for key in ("partitionValues", "modificationTime", "dataChange")}
    commit(folder, {"add": {**plain, "path": file.name, "size": file.stat().st_size}})
