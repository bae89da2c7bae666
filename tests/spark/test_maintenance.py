"""Compaction and expiry keep tables small and change no content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ledger.fresh import FreshLedger

from infold.core.interval import DAY, Granularity, Interval, Ranges, parse_instant_text
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.storages import DEFAULT_STORAGE, Storage
from infold.core.target import Target
from infold.core.trace import CellChange, Trace
from infold.spark import maintenance
from infold.spark.maintenance import Maintenance
from infold.spark.storages import storage_of
from infold.spark.tables.port import Layout, Stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVERY_STORAGE = pytest.mark.parametrize("storage", list(Storage), ids=str)
JANUARY = parse_instant_text("2024-01-01")


class GrowingTable:
    """A table ``t`` of a project, written to commit by commit."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Path,
        name: str,
        layout: Layout,
        storage: Storage = DEFAULT_STORAGE,
    ) -> None:
        self.spark = spark
        target = Target("dev", warehouse=str(warehouse), storage=storage)
        project = Project(f"{name}_{storage}", warehouse, None, {}, (), target)
        self.lake = storage_of(project).lake(project)
        self.tables = storage_of(project).tables(spark, project, self.lake)
        self.ledger = FreshLedger()
        self.care = Maintenance(self.tables, self.ledger, self.lake)
        self.step = 1
        self.tables.create("t", self.rows(0, 60), layout, Stamp("r", "r-1", 1))

    def rows(self, first: int, days: int) -> DataFrame:
        """One row a day from the ``first`` day of 2024."""
        return self.spark.range(first, first + days).selectExpr(
            f"timestamp_micros({JANUARY} + id * {DAY}) AS ts", "id", "1L AS _version"
        )

    def version(self, number: int) -> int:
        """The present snapshot as a version in the ledger."""
        head = self.lake.metadata("t")
        assert head is not None
        assert head.snapshot is not None
        if number == 1:
            self.ledger.acquire("run")
            self.ledger.begin_run("run", "run", 0, {})
        self.ledger.begin_step("run", f"t-{number}", number, "t", "ingest", {})
        outcome = Outcome("t", number, Trace("t", "f"), snapshot=head.snapshot)
        self.ledger.finish_step(f"t-{number}", outcome)
        return head.snapshot

    def append(self, first: int = 5) -> None:
        """One late row, in a file of its own."""
        self.step += 1
        stamp = Stamp("r", f"r-{self.step}", self.step)
        self.tables.append("t", self.rows(first, 1).coalesce(1), stamp)

    def replace(self, day: int) -> None:
        """Replace the row of one day."""
        self.step += 1
        stamp = Stamp("r", f"r-{self.step}", self.step)
        cell = Ranges((Interval(JANUARY + day * DAY, JANUARY + (day + 1) * DAY),))
        rows = self.rows(day, 1)
        self.tables.replace("t", column="ts", ranges=cell, rows=rows, stamp=stamp)

    def content(self) -> list[tuple[int, int]]:
        """What the table holds, technical columns included."""
        return sorted((row["id"], row["_version"]) for row in self.tables.read("t").collect())

    def files(self) -> int:
        """Data files of the present snapshot."""
        return sum(part.data + part.deletes for part in self.tables.partition_files("t"))


@pytest.mark.parametrize(
    "layout", [Layout(), Layout("ts", Granularity.MONTH)], ids=["whole", "months"]
)
@EVERY_STORAGE
def test_files_are_compacted_after_enough_commits(
    spark: SparkSession, warehouse: Path, layout: Layout, storage: Storage
) -> None:
    """After enough commits the small files become one, and every row is still there."""
    shop = GrowingTable(spark, warehouse, f"gather_{layout.column}", layout, storage)
    for _ in range(maintenance.LOOK_EVERY):
        shop.append()
    before = shop.content()

    shop.care.maintain(["t"])

    assert shop.content() == before
    assert shop.files() <= 3
    head = shop.lake.metadata("t")
    assert head is not None
    assert head.foreign is None


def test_few_commits_are_not_compacted(spark: SparkSession, warehouse: Path) -> None:
    """After few commits there is nothing to compact."""
    shop = GrowingTable(spark, warehouse, "few", Layout())
    shop.append()
    files = shop.files()

    shop.care.maintain(["t", "no_such_table"])

    assert shop.files() == files


@EVERY_STORAGE
def test_files_are_counted_when_they_may_be_more(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    """Files are counted after commits that may have added some, not after replacements alone."""
    shop = GrowingTable(spark, warehouse, "steady", Layout("ts", Granularity.MONTH), storage)
    for _ in range(maintenance.LOOK_EVERY):
        shop.replace(5)
    looks: list[str] = []
    monkeypatch.setattr(Maintenance, "compact", lambda _, model: looks.append(model))
    shop.care.maintain(["t"])
    assert not looks
    shop.append()
    shop.care.maintain(["t"])
    assert looks == ["t"]
    shop.replace(40)
    shop.care.maintain(["t"])
    assert looks == ["t"]
    shop.care.maintain(["t", "t"])
    assert looks == ["t", "t"], "the append was this run's too"


@EVERY_STORAGE
def test_expiry_keeps_content_and_the_newest_snapshots(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    """Expiry removes old snapshots and keeps the current one and those before it."""
    monkeypatch.setattr(maintenance, "MOST_SNAPSHOTS", 4)
    shop = GrowingTable(spark, warehouse, "expire", Layout(), storage)
    for _ in range(5):
        shop.append()
    before = shop.content()

    shop.care.maintain(["t"])

    assert shop.lake.history("t").snapshots == 2
    assert shop.content() == before


def test_a_snapshot_that_a_reader_compares_with_stays(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a model has yet to fold the changes since a version, its snapshot is not expired."""
    monkeypatch.setattr(maintenance, "MOST_SNAPSHOTS", 4)
    shop = GrowingTable(spark, warehouse, "lag", Layout())
    ledger, cell = shop.ledger, Interval(JANUARY, JANUARY + DAY)
    ledger.acquire("run")
    ledger.begin_run("run", "run", 0, {})
    for number in (1, 2):
        ledger.begin_step("run", f"t-{number}", number, "t", "ingest", {})
        change = CellChange(cell, 1, 0, number - 1, number, number - 1, number)
        ledger.finish_step(f"t-{number}", Outcome("t", number, Trace("t", "f"), (change,)))
    ledger.begin_step("run", "reader-1", 3, "reader", "fold", {})
    ledger.finish_step("reader-1", Outcome("reader", 1, Trace("reader", "f", {"t": 1})))
    for _ in range(5):
        shop.append()

    shop.care.maintain(["t"])

    assert shop.lake.history("t").snapshots == 6


@pytest.mark.parametrize("traced", [False, True], ids=["the newest", "what a trace names"])
@EVERY_STORAGE
def test_a_version_before_many_rewrites_is_kept(
    spark: SparkSession,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    storage: Storage,
    *,
    traced: bool,
) -> None:
    """Many rewrites of partitions expire no version that a model reads."""
    monkeypatch.setattr(maintenance, "MOST_SNAPSHOTS", 3)
    monkeypatch.setattr(maintenance, "FILES_PER_PARTITION", 2)
    monkeypatch.setattr(maintenance, "LOOK_EVERY", 4)
    shop = GrowingTable(
        spark, warehouse, f"behind_{traced}", Layout("ts", Granularity.MONTH), storage
    )
    for number in range(8):
        shop.append(5 if number % 2 else 40)
    read = shop.version(1)
    if traced:
        shop.ledger.begin_step("run", "reader-1", 2, "reader", "fold", {})
        outcome = Outcome("reader", 1, Trace("reader", "f", {"t": 1}))
        shop.ledger.finish_step("reader-1", outcome)
    shop.care.maintain(["t"])
    assert shop.lake.history("t").main.index(read) == 2, "two months were rewritten"
    assert len(shop.lake.history("t").main) == 3, "older ones went"
    if traced:  # a version of the same content
        shop.append(6)
        shop.version(2)
    before = shop.tables.read("t", read).count()

    shop.care.maintain(["t"])
    shop.care.maintain(["t"])

    assert shop.tables.read("t", read).count() == before
