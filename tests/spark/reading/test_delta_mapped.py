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
from tests.spark.events.clicks_project import ClicksProject, shop_with

from infold import api
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


@pytest.mark.parametrize("mode", ["name", "id"])
def test_events_are_the_rows_whatever_columns_are_called(
    mode: str, tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    After each change of the table the events are what Delta itself reads.

    Columns get other names before and after they have rows, two change their names, one is dropped
    and made anew, rows are deleted in files that stay, and one is what the table is partitioned by.
    By ids a file may have any names: those of other columns, and one more under the name of a
    column. One without ids is refused, and changes nothing.
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
        " USING delta PARTITIONED BY (sort) TBLPROPERTIES"
        f" ('delta.columnMapping.mode' = '{mode}',"
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
    for one in ("note TO was", "kind TO note", "was TO kind"):
        other.sql(f"ALTER TABLE {table} RENAME COLUMN {one}")
    check()
    if mode == "id":
        before = shop.rows()
        _write_file(Path(folder), ids=True)
        shop.run()  # Spark's own reader by ids mixes names up that other columns have
        (added,) = {*shop.rows()} - {*before}
        assert shop.rows() == sorted([*before, added], key=repr)
        assert (added[0], added[2:]) == ("f", (5, "new", "k"))
    assert shop.proven()
    if mode == "id":
        before = shop.rows()
        _write_file(Path(folder), ids=False)
        with pytest.raises(api.RunFailed) as failed:
            shop.run()
        (found,) = failed.value.result.failures
        assert found.error.slug == "delta-source-unreadable"
        assert "without.parquet has none" in dict(found.error.facts)["why"]
        assert shop.rows() == before


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


def _shop_over_delta(folder: Path, warehouse: Path) -> ClicksProject:
    """A project whose one source is the table."""
    shop = shop_with(folder, warehouse, MODEL)
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    project.write_text(before + SOURCE + after[after.index("targets:") :])
    return shop
