"""Sources that are tables of others: of Delta Lake, of Iceberg, of a database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import parquet
from tests.lake.delta.orders import KINDS, MODEL, Orders, shop_over_delta
from tests.lake.delta.orders import play as play_delta
from tests.lake.delta.vectors import commit
from tests.lake.iceberg.owner import Owner, play
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import ClicksProject, NewShop, shop_with

from infold import api
from infold.api import doctor
from infold.api.environments import find_promotion, promote, run_environment, show_environment
from infold.core import interval
from infold.core.project import Project
from infold.messages.errors import InfoldError
from infold.spark.tables.delta.session_settings import DELTA_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


PLACE = "lake/a b/orders"


def test_events_are_the_rows_of_the_table_after_every_change(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    After random appends, updates, deletes, compactions and vacuums the events are its rows.

    What only rewrites files changes no cell.
    """
    shop = shop_over_delta(tmp_path, warehouse)
    play_delta(shop, Orders(tmp_path / PLACE, seed=2), rounds=2)  # with a change of each kind


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


def reading(shop: ClicksProject, sources: str) -> None:
    """Have the project these sources."""
    declared = shop.root / "infold.yml"
    before, _, after = declared.read_text().partition("sources:")
    declared.write_text(before + sources + after[after.index("targets:") :])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_events_are_the_rows_whatever_columns_are_called(
    new_shop: NewShop, mode: str, spark: SparkSession
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
    shop = new_shop(model)
    reading(shop, SOURCE)
    folder = shop.root / "lake" / "a b" / "orders"
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
    if mode == "id":
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
    if mode == "name":
        return
    insert(
        "('e', timestamp'2024-03-03 11:00:00', 5, 'k', struct(5, struct(3, 'e')),"
        " array(struct(5, 'r')), map('o', struct(5)), 'new', 1)"
    )
    alter("RENAME COLUMN note TO was", "RENAME COLUMN kind TO note", "RENAME COLUMN was TO kind")
    check()
    first, *_, last = shop.rows()
    assert (first[6][0]["y"], last[6][0]["y"]) == (None, "r")
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


ICEBERG = """sources:
  raw.changed:
    table: outside.changed
    format: iceberg
    event_time_column: at
    columns: {id: string, at: timestamp, v: int}
"""


def test_rows_are_appended_changed_and_deleted_and_files_rewritten(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    The events are the rows of the table after every change; what changes no row writes none. After
    a name moves to another column, old and new rows have the values of the same column.
    """
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
    shop = shop_with(tmp_path, warehouse, CLICKS.replace("raw.clicks", "raw.changed"))
    reading(shop, ICEBERG)
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

    spark.sql(f"ALTER TABLE {table} RENAME COLUMN v TO old")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN w TO v")
    spark.sql(f"INSERT INTO {table} VALUES ('f', TIMESTAMP '2024-03-01', 2, 200)")
    receipt = shop.run()
    times = [row[:2] for row in rows]
    moved = [("e", "2024-03-02", 6), ("f", "2024-03-01", 200)]
    assert shop.rows() == [*((*one, None) for one in times), *moved]
    assert (receipt.files_new, receipt.files_removed) == (3, 2)

    spark.sql(f"ALTER TABLE {table} RENAME COLUMN old TO older")
    assert shop.run().arrived == 0, "a column that is not declared"


def _snapshots(spark: SparkSession, table: str) -> int:
    return spark.sql(f"SELECT * FROM {table}.snapshots").count()


def test_a_table_that_pyiceberg_writes(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Each change of its owner arrives."""
    owner = Owner(tmp_path, f"file:{tmp_path / 'lake'}")
    shop = shop_with(tmp_path / "shop", warehouse)
    owner.is_read_by(shop)
    play(shop, owner)


def test_names_in_files_that_mean_another_column(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    Who changes the table's name mapping changes the values of files that have no ids. Metadata
    names one file by a path, and one by its address.
    """
    owner = Owner(tmp_path, f"file://{tmp_path / 'lake'}")
    shop = shop_with(tmp_path / "shop", warehouse)
    owner.is_read_by(shop)
    owner.add_file(tmp_path / "added.parquet", a=1)
    owner.append(b=2)
    shop.run()
    assert shop.rows() == owner.expected()

    owner.map_names("w")
    owner.rows["a"] = None
    shop.run()
    assert shop.rows() == owner.expected()


PROJECT = """
name: bought
sources:
  db.orders:
    url: sqlite:///shop.db
    table: orders
    key: id
    corrections: none
    event_time_column: at
    columns: {id: bigint, at: timestamp, currency: string, amount: bigint}
  db.payments:
    url: sqlite:///shop.db
    table: payments
    key: changed_at
    corrections: reread 2 days
    event_time_column: at
    columns: {id: bigint, at: timestamp, changed_at: timestamp, state: string}
  db.rates:
    url: sqlite:///shop.db
    table: rates
    columns: {currency: string, rate: double}
targets:
  dev: {warehouse: 'WAREHOUSE', apply: manual}
"""
EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
"""
MODELS = {
    "orders": f"{EVENTS}SELECT id, at, currency, amount FROM db.orders",
    "payments": EVENTS.replace("timeseries", "prefer: [changed_at desc]\ntimeseries")
    + "SELECT id, at, changed_at, state FROM db.payments",
    "daily": """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(o.at AS date) AS day, sum(o.amount * r.rate) AS amount
FROM orders o JOIN db.rates r ON r.currency = o.currency GROUP BY 1""",
}
TABLES = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, at DATETIME, currency TEXT, amount INTEGER)",
    "CREATE TABLE payments (id INTEGER, at DATETIME, changed_at DATETIME NOT NULL, state TEXT)",
    "CREATE TABLE rates (currency TEXT, rate REAL)",
    "INSERT INTO rates VALUES ('eur', 1.0), ('chf', 2.0)",
    "INSERT INTO orders VALUES (5, '2024-03-01 10:00', 'eur', 10), (7, '2024-03-02', 'chf', 10)",
    "INSERT INTO payments VALUES (5, '2024-03-01', '2024-03-01', 'paid')",
    "INSERT INTO payments VALUES (7, '2024-03-02', '2024-03-04', 'open')",
    "INSERT INTO payments VALUES (8, '2024-03-01', '2024-03-01', 'open')",
)
NOTES = """\
db.orders: a run first reads the rows of orders with a greater id than any before; not seen are \
rows that are committed later with a smaller or equal one, changes and deletions
db.payments: a run first reads the rows of payments from 2 days before the greatest changed_at on; \
not seen are changes, deletions and new rows before that
db.rates: a run first reads all of rates; not seen are rows that come and go between two runs"""
LARGE = " WHERE amount > 5"
CHANGED = {
    "orders": MODELS["orders"] + LARGE,
    "daily": MODELS["daily"].replace("sum(o.amount", "max(r.rate) AS top, sum(o.amount"),
}


class Shop:
    """A project over a database."""

    def __init__(self, root: Path, text: str) -> None:
        self.root = root
        (root / "models").mkdir(parents=True)
        (root / "infold.yml").write_text(text, encoding="utf-8")
        self.write(MODELS)
        self.sql(*TABLES)

    def write(self, models: Mapping[str, str]) -> None:
        """The files of models."""
        for name, text in models.items():
            (self.root / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Statements in the database; the rows of the last one, in an order."""
        with sqlite3.connect(self.root / "shop.db") as connection:
            for text in statements:
                found = connection.execute(text).fetchall()
        connection.close()
        return sorted(found)

    def project(self, *, declared: bool = False) -> Project:
        """By its applied definitions, or by the files."""
        return api.open_project(self.root, declared=declared)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table of production."""
        return without_times(api.show(self.project(), name))


def without_times(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order, as plain SQL gives them."""
    found = rows.drop_columns({"at", "changed_at"} & {*rows.column_names}).to_pylist()
    return sorted(tuple(str(v) if k == "day" else v for k, v in row.items()) for row in found)


def test_what_is_read_becomes_known_as_files_do(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """
    New, changed and deleted rows follow as far as was declared, and no farther; a run without any
    builds nothing. Production and an environment add to the files what they read, and both are
    exact; so they are promoted. A table that cannot be read stops its readers alone.
    """
    shop = Shop(tmp_path / "shop", PROJECT.replace("WAREHOUSE", str(warehouse)))
    assert "\n".join(api.plan(shop.project(declared=True)).notes) == NOTES

    api.run(api.to_apply(shop.project(declared=True)), command="apply")
    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10)]
    assert shop.rows("payments") == [(5, "paid"), (7, "open"), (8, "open")]
    assert [amount for _, amount in shop.rows("daily")] == [10.0, 20.0]
    assert api.run(shop.project()).steps == ()

    shop.sql(
        "INSERT INTO orders VALUES (6, '2024-03-01', 'eur', 1), (9, '2024-03-01', 'eur', 5)",
        "DELETE FROM orders WHERE id = 7",
        "UPDATE payments SET state = 'lost' WHERE id = 5",
        "UPDATE payments SET state = 'paid', changed_at = '2024-03-05' WHERE id = 7",
        "UPDATE payments SET state = 'back', changed_at = '2024-03-06' WHERE id = 8",
        "INSERT INTO payments VALUES (9, '2024-03-01', '2024-03-02 23:59', 'late')",
        "UPDATE rates SET rate = 3.0 WHERE currency = 'chf'",
    )
    api.run(shop.project())
    assert shop.rows("orders") == [(5, "eur", 10), (7, "chf", 10), (9, "eur", 5)]
    assert shop.rows("payments") == [(5, "paid"), (7, "paid"), (8, "back"), (9, "late")]
    assert [amount for _, amount in shop.rows("daily")] == [15.0, 30.0]

    was = {name: shop.rows(name) for name in MODELS}
    shop.write(CHANGED)
    shop.sql(
        "INSERT INTO orders VALUES (12, '2024-03-01', 'chf', 4), (13, '2024-03-03', 'eur', 7)",
        "UPDATE rates SET rate = 4.0 WHERE currency = 'chf'",
    )
    run_environment(shop.project(declared=True), "dev")
    assert {name: shop.rows(name) for name in MODELS} == was, "production has not run"
    orders = without_times(show_environment(shop.project(declared=True), "dev", "orders"))
    assert orders == [*shop.rows("orders")[:2], (13, "eur", 7)]
    promote(shop.project(), find_promotion(shop.project(), "dev"))

    shop.sql(
        "ALTER TABLE payments RENAME COLUMN state TO status",
        "INSERT INTO orders VALUES (14, '2024-03-03', 'eur', 6)",
    )
    with pytest.raises(api.RunFailed) as failed:
        api.run(shop.project())
    assert [(one.model, one.error.slug) for one in failed.value.result.failures] == [
        ("payments", "source-column-missing")
    ]
    assert [row[1:] for row in shop.rows("daily")] == [(1.0, 10.0), (4.0, 40.0), (1.0, 13.0)]
    checks = {one.name: one.found for one in doctor.examine(shop.root)}
    assert checks["source db.orders"].startswith("orders has the 4 columns; 4 files, ")
    assert "has no column state" in checks["source db.payments"]
