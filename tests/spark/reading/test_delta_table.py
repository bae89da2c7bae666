"""A Delta source: its rows change, its files are rewritten, its history is vacuumed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.lake.delta.vectors import mark_deleted
from tests.spark.events.clicks_project import MODEL as CLICKS
from tests.spark.events.clicks_project import ClicksProject, shop_with

from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MODEL = CLICKS.replace("raw.clicks", "raw.orders").replace("id, at, v", "id, at, v, kind")

PLACE = "lake/a b/orders"
SOURCE = """sources:
  raw.orders:
    path: lake/a b/orders
    format: delta
    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, kind: string}
"""

KINDS = ("plain", "a b", "é%41:=/#?", None)
"""Of a row, and so of its file's folder."""


class Orders:
    """The table as other programs write it, and the rows that it should have."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw = folder, Random(seed)
        self.rows: dict[str, tuple[str, str, int, str | None]] = {}
        self._made = 0
        folder.parent.mkdir(parents=True, exist_ok=True)

    @property
    def table(self) -> DeltaTable:
        """As delta-rs changes it."""
        return DeltaTable(self.folder.as_uri())

    def append(self) -> None:
        """New rows, in a file for each kind."""
        new = [
            (f"o{self._made + i}", self._day(), self.draw.randrange(6), self.draw.choice(KINDS))
            for i in range(self.draw.randint(3, 8))
        ]
        self._made += len(new)
        self.rows.update({row[0]: row for row in new})
        names = ("id", "at", "v", "kind")
        columns = dict(zip(names, map(pa.array, zip(*new, strict=True)), strict=True))
        columns["at"] = columns["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        columns["v"] = columns["v"].cast(pa.int32())
        columns["kind"] = columns["kind"].cast(pa.string())
        write_deltalake(
            self.folder.as_uri(), pa.table(columns), mode="append", partition_by=["kind"]
        )

    def update(self) -> None:
        """Other values in some rows, wherever they are; their files are written again."""
        v = self.draw.randrange(6)
        self.table.update(updates={"v": "v + 100"}, predicate=f"v = {v}")
        for id_, row in self.rows.items():
            if row[2] == v:
                self.rows[id_] = (*row[:2], v + 100, row[3])

    def delete(self) -> None:
        """Some rows go, from files that are written again without them."""
        self._without({self.draw.randrange(6)}, by_marks=False)

    def mark(self) -> None:
        """Some rows go, from files that stay."""
        self._without({self.draw.randrange(6), self.draw.randrange(6)}, by_marks=True)

    def compact(self) -> None:
        """Other files with the same rows."""
        self.table.optimize.compact()

    def vacuum(self) -> None:
        """Only the files of the newest version are left."""
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    def _without(self, values: set[int], *, by_marks: bool) -> None:
        if by_marks:
            mark_deleted(self.folder, "v", values)
        else:
            self.table.delete(f"v IN ({', '.join(map(str, values))})")
        self.rows = {id_: row for id_, row in self.rows.items() if row[2] not in values}

    def _day(self) -> str:
        return f"2024-03-0{self.draw.randint(1, 5)}"

    def expected(self) -> list[tuple[Any, ...]]:
        """The rows in an order."""
        return sorted(self.rows.values(), key=repr)


def shop_over_delta(folder: Path, warehouse: Path) -> ClicksProject:
    """A project whose one source is a Delta table."""
    shop = shop_with(folder, warehouse, MODEL)
    project = folder / "infold.yml"
    before, _, after = project.read_text().partition("sources:")
    project.write_text(before + SOURCE + after[after.index("targets:") :])
    return shop


@pytest.mark.parametrize("seed", [2])
def test_events_are_the_rows_of_the_table_after_every_change(
    tmp_path: Path, warehouse: Path, spark: SparkSession, seed: int
) -> None:
    """
    After random appends, updates, deletes, compactions and vacuums the events are its rows.

    What only rewrites files changes no cell.
    """
    shop = shop_over_delta(tmp_path, warehouse)
    orders = Orders(tmp_path / PLACE, seed)
    orders.append()
    orders.append()
    shop.run()
    changes = [orders.append, orders.update, orders.delete, orders.mark] * 2
    orders.draw.shuffle(changes)
    for round_ in range(4):
        for change in changes[2 * round_ : 2 * round_ + 2]:
            change()
        shop.run()
        assert shop.rows() == orders.expected(), changes[: 2 * round_ + 2]
        if round_ % 2:
            version = shop.version()
            orders.compact()
            orders.vacuum()
            receipt = shop.run()
            assert receipt.files_new
            assert (shop.changes(version), receipt.cells_built) == ([], 0)
    assert shop.rows() == orders.expected()
    assert shop.proven()


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
    assert shop.proven()


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
