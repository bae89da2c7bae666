"""Compaction and expiry keep tables small and change no content; what fails is a note."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.ledger.fresh import FreshLedger
from tests.running.test_observe import ledger_of

from infold.core.interval import DAY, Granularity, Interval, Ranges, parse_instant_text
from infold.core.ports import History
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.storages import DEFAULT_STORAGE, Storage
from infold.core.target import Target
from infold.core.trace import CellChange, Trace
from infold.messages import faults, run_errors
from infold.messages.errors import InfoldError
from infold.spark import maintenance
from infold.spark.maintenance import LOOK_EVERY, MOST_SNAPSHOTS, Maintenance
from infold.spark.storages import storage_of
from infold.spark.tables.port import Layout, PartitionFiles, Stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


@EVERY_STORAGE
@pytest.mark.spark
def test_files_are_counted_when_they_may_be_more_and_compacted(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    """
    Files are counted after commits that may have added some, not after replacements alone. Many
    small ones become few, and every row is still there; after few commits there is nothing to do.
    """
    monkeypatch.setattr(maintenance, "LOOK_EVERY", 2)
    monkeypatch.setattr(maintenance, "FILES_PER_PARTITION", 3)
    shop = GrowingTable(spark, warehouse, "steady", Layout("ts", Granularity.MONTH), storage)
    for _ in range(2):
        shop.replace(5)
    looks: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Maintenance, "compact", lambda _, model: looks.append(model))
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

    shop.append()
    before = shop.content()
    shop.care.maintain(["t"])
    assert shop.content() == before
    assert (files := shop.files()) <= 3
    head = shop.lake.metadata("t")
    assert head is not None
    assert head.foreign is None

    shop.append()
    shop.care.maintain(["t", "no_such_table"])
    assert shop.files() == files + 1


@EVERY_STORAGE
@pytest.mark.spark
def test_a_version_before_many_rewrites_is_kept(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    """Old snapshots expire; neither the newest version nor what a trace names does, however many
    partitions are rewritten after it.
    """
    monkeypatch.setattr(maintenance, "MOST_SNAPSHOTS", 3)
    monkeypatch.setattr(maintenance, "FILES_PER_PARTITION", 2)
    monkeypatch.setattr(maintenance, "LOOK_EVERY", 4)
    shop = GrowingTable(spark, warehouse, "behind", Layout("ts", Granularity.MONTH), storage)
    for number in range(4):
        shop.append(5 if number % 2 else 40)
    read = shop.version(1)
    shop.care.maintain(["t"])
    assert shop.lake.history("t").main.index(read) == 2, "two months were rewritten"
    assert len(shop.lake.history("t").main) == 3, "older ones went"
    before = shop.tables.read("t", read).count()
    shop.care.maintain(["t"])
    assert shop.tables.read("t", read).count() == before

    shop.ledger.begin_step("run", "reader-1", 2, "reader", "fold", {})
    shop.ledger.finish_step("reader-1", Outcome("reader", 1, Trace("reader", "f", {"t": 1})))
    shop.append(6)
    shop.version(2)
    shop.care.maintain(["t"])
    shop.care.maintain(["t"])
    assert shop.tables.read("t", read).count() == before


MISSING = "org.apache.iceberg.exceptions.ValidationException: Missing required files: a.parquet"
CONFLICT: Exception = type("Py4JJavaError", (Exception,), {})(
    f"An error occurred while calling o62.sql.\n: {MISSING}\n\tat org.apache.iceberg.X.y(X.java)"
)


def maintain(error: BaseException, history: History) -> tuple[Sequence[str], list[str]]:
    """The notes on two tables with many files, the first of which fails; and those rewritten."""
    rewritten: list[str] = []

    def fails(table: str, *_: object, **__: object) -> None:
        if table == "first":
            raise error
        rewritten.append(table)

    tables: Any = SimpleNamespace(
        partition_files=lambda _: [PartitionFiles(None, 9, 0, 100)], rewrite=fails, expire=fails
    )
    lake: Any = SimpleNamespace(history=lambda _: history)
    care = Maintenance(tables, FreshLedger(), lake)
    return care.maintain(["first", "second"]), rewritten


GATHERED = History(snapshots=9, since_rewrite=LOOK_EVERY)
OLD = History(snapshots=MOST_SNAPSHOTS + 1)


@pytest.mark.parametrize("history", [GATHERED, OLD], ids=["compaction", "expiry"])
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (CONFLICT, MISSING),
        (run_errors.metadata_missing(path="x.json", why="gone"), ""),
        (ValueError("oh"), "ValueError: oh"),
    ],
    ids=["another compaction", "a file that is gone", "anything"],
)
def test_a_table_that_fails_is_a_note(error: Exception, why: str, history: History) -> None:
    """Its rows are right. The note has the table and the reason, and the other is compacted."""
    [note], rewritten = maintain(error, history)

    assert note.startswith("first: it was not compacted, and the next run tries again: ")
    assert note.endswith(why)
    assert rewritten == ["second"]


@pytest.mark.parametrize(
    "error",
    [
        run_errors.lease_lost("r"),
        faults.engine_died(why="gone"),
        MemoryError(),
        KeyboardInterrupt(),
    ],
    ids=["the lease", "the engine", "memory", "a stop"],
)
def test_what_ends_a_run_ends_it_here_too(error: BaseException) -> None:
    """After these nothing more is done."""
    with pytest.raises((InfoldError, KeyboardInterrupt)):
        maintain(error, GATHERED)


@pytest.mark.parametrize("compares", [True, False])
def test_a_snapshot_that_a_reader_compares_with_stays(*, compares: bool) -> None:
    """While a model has yet to fold the changes since a version, its snapshot is not expired."""
    cell = Interval(0, DAY)
    changes = (CellChange(cell, 1, 0, 1, 2, 1, 2),) if compares else ()
    ledger = ledger_of(
        Outcome("first", 1, Trace("first", "f")),
        Outcome("first", 2, Trace("first", "f"), changes),
        Outcome("reader", 1, Trace("reader", "f", {"first": 1})),
    )
    expired: list[str] = []
    tables: Any = SimpleNamespace(expire=lambda table, **_: expired.append(table))
    lake: Any = SimpleNamespace(history=lambda _: OLD)

    Maintenance(tables, ledger, lake).maintain(["first"])

    assert expired == ([] if compares else ["first"])
