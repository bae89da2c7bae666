"""Tables that cannot be compacted, and snapshots that may not be expired; without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.ledger.fresh import FreshLedger
from tests.running.test_observe import ledger_of

from infold.core.interval import DAY, Interval
from infold.core.ports import History
from infold.core.record import Outcome
from infold.core.trace import CellChange, Trace
from infold.messages import faults, run_errors
from infold.messages.errors import InfoldError
from infold.spark.engine import LOOK_EVERY, MOST_SNAPSHOTS, Maintenance
from infold.spark.tables.port import PartitionFiles

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
