"""
The end of every step: what it computed is announced, judged, committed, and recorded.

A kind of table hands over what it computed (:class:`Computed`) and how its rows get into the table
(:class:`Write`). The order here is what crashes are survived by: the ledger has the outcome before
the commit, so the next run finishes a step that died over it. Only a table that is replaced whole
may be counted after its commit; it is not announced, and after a crash simply built again.

Audits judge between the two. Batches that are computed at the same time wait in ``announce``, so
the rows that stay are then those that readers will find beside the written ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from infold.core.files import FilesOutcome
from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.queries import quoted
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.trace import UNKNOWN, CellChange, CellState
from infold.spark.audits.step_audits import StepAudits
from infold.spark.content import column
from infold.spark.inputs.changed_keys import MOST_BROADCAST_KEYS
from infold.spark.jvm.session_settings import settings_of_one_plan
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout

ROWS_PER_TASK = 100_000
"""About how many rows one task joins and writes when a fold commits."""


@dataclass(frozen=True, slots=True)
class Computed:
    """
    What a step computed: the cells that it changes, and what only its kind of table knows.

    ``receipt`` has what does not follow from the changes: rows read and scanned, and rows written
    again without a change of their cell. ``cut_off`` cells came out as they were, and are not among
    the changes. The other fields are those of :class:`Outcome`.
    """

    changes: tuple[CellChange, ...] = ()
    receipt: Receipt = Receipt()
    cut_off: int = 0
    files: FilesOutcome | None = None
    quarantined: tuple[QuarantinedSession, ...] = ()
    released: tuple[tuple[str, int], ...] = ()
    left_out: int | None = None
    cells: tuple[CellState, ...] | None = None
    cell_column: str | None = None


class Write(ABC):
    """How rows get into the table of a step, in one commit."""

    rows: DataFrame
    is_whole: ClassVar[bool] = False
    """Whether no stored row stays."""

    @property
    def is_observable(self) -> bool:
        """Whether rows can be observed on their way; those of a MERGE cannot."""
        return True

    @abstractmethod
    def staying(self, work: Work, step: Step) -> DataFrame | None:
        """The stored rows that stay; None for none."""

    @abstractmethod
    def commit(self, work: Work, step: Step, rows: DataFrame) -> int:
        """Commit the rows, which may be watched by audits now; the snapshot."""

    def settings(self, work: Work) -> AbstractContextManager[None]:
        """Settings for the commit."""
        del work
        return nullcontext()

    def counted(self, changes: Sequence[CellChange]) -> tuple[int, int]:
        """How many rows are written and removed: here all that the changed cells have and had."""
        written = sum(change.rows_after for change in changes)
        return written, sum(change.rows_before for change in changes)


@dataclass(frozen=True)
class WholeTable(Write):
    """Rows in the place of all that a table has; they may be the first."""

    rows: DataFrame
    layout: Layout
    is_whole = True

    def staying(self, work: Work, step: Step) -> DataFrame | None:
        """None."""
        del work, step
        return None

    def commit(self, work: Work, step: Step, rows: DataFrame) -> int:
        """Replace columns, layout and rows."""
        return work.tables.create(step.model, rows, self.layout, work.stamp(step))


@dataclass(frozen=True)
class RowChanges(Write):
    """
    Rows that are added to a table, and those that are removed from it.

    ``delete`` has the columns ``on`` alone, and finds its rows by ``condition`` (SQL over the
    table). None: nothing is removed. ``shuffled`` is about how many rows Spark joins for that, if
    it is known.
    """

    rows: DataFrame
    delete: DataFrame | None
    on: tuple[str, ...]
    condition: str = "true"
    shuffled: int | None = None
    column: str | None = None
    """Of this column every row to be removed has a time in ``ranges``."""
    ranges: Ranges | None = None

    @property
    def is_observable(self) -> bool:
        """As rows are appended."""
        return self.delete is None

    def staying(self, work: Work, step: Step) -> DataFrame | None:
        """Those that none of ``delete`` matches."""
        stored = work.tables.read(step.model)
        if self.delete is None:
            return stored
        keys = [(name, f"_on_{at}") for at, name in enumerate(self.on)]
        removed_keys = self.delete.select(*(column(name).alias(key) for name, key in keys))
        same = (F.expr(quoted(name)) == F.col(key) for name, key in keys)
        matched = reduce(Column.__and__, same) & F.expr(f"coalesce({self.condition}, false)")
        return stored.join(removed_keys, matched, "left_anti")

    def commit(self, work: Work, step: Step, rows: DataFrame) -> int:
        """Append, or merge where rows are removed."""
        if self.delete is None:
            return work.tables.append(step.model, rows, work.stamp(step))
        return work.tables.merge(
            step.model,
            insert=rows,
            delete=self.delete,
            on=self.on,
            condition=self.condition,
            stamp=work.stamp(step),
            column=self.column,
            ranges=self.ranges,
        )

    def settings(self, work: Work) -> AbstractContextManager[None]:
        """Few rows are joined by as many tasks as they need."""
        if self.shuffled is None or self.shuffled > MOST_BROADCAST_KEYS:
            return nullcontext()
        return settings_of_one_plan(work.spark, 1 + self.shuffled // ROWS_PER_TASK)

    def counted(self, changes: Sequence[CellChange]) -> tuple[int, int]:
        """Those that differ."""
        return sum(change.added for change in changes), sum(change.removed for change in changes)


@dataclass(frozen=True, slots=True)
class NewColumns:
    """
    Other names (old, new) and wider types for stored columns: metadata, and no row.

    ``is_whole``: some values are of another type, which readers are to see as a replaced table.
    """

    names: Sequence[tuple[str, str]]
    types: Sequence[tuple[Sequence[str], DataType]]
    is_whole: bool


def commit_step(
    work: Work,
    step: Step,
    write: Write | NewColumns | None,
    expected: Computed | None = None,
    count: Callable[[int], Computed] | None = None,
) -> Outcome:
    """
    Announce what a step computed, judge and commit it; all that the ledger is to record.

    Without ``write`` nothing is committed: the table is as it was. Without ``expected`` nothing is
    announced. ``count`` says what was computed by the snapshot of the commit, where it is not known
    before.
    """
    outcome = _outcome(step, write, expected or Computed())
    if expected is not None:
        outcome = work.announce(outcome)
    if write is None:
        return outcome
    step = replace(step, version=outcome.version, trace=outcome.trace)
    snapshot: int | None
    if isinstance(write, NewColumns):
        snapshot = work.tables.evolve(step.model, write.names, write.types, work.stamp(step))
        return replace(outcome, snapshot=snapshot)
    with write.settings(work), _audited(work, step, write) as (rows, audits):
        snapshot = new_snapshot = write.commit(work, step, rows)
    if count is not None:
        computed = count(new_snapshot)
        if not computed.changes and not write.is_whole:
            write, snapshot = None, None  # a commit of nothing is no version
        outcome = _outcome(step, write, computed)
    if audits is not None:
        outcome = audits.recorded(outcome)
    return replace(outcome, snapshot=snapshot)


@contextmanager
def _audited(work: Work, step: Step, write: Write) -> Iterator[tuple[DataFrame, StepAudits | None]]:
    """The rows to write in the block, with the audits of their model, if it has any."""
    node = work.project[step.model]
    if not node.model.audits:
        yield write.rows, None
        return
    audits = StepAudits(work, node, step)
    staying = partial(write.staying, work, step)
    with audits.watch(write.rows, staying, observed=write.is_observable) as rows:
        yield rows, audits


def without_trace(work: Work, step: Step) -> Outcome:
    """
    The end of a step that writes nothing, as the whole table has to be built.

    Its trace holds no longer from now on, so the run plans again.
    """
    assert step.previous_trace is not None, "a table that is built in parts was built before"
    outcome = commit_step(work, replace(step, trace=step.previous_trace), None, Computed())
    return replace(outcome, trace=replace(step.previous_trace, fingerprint=UNKNOWN, definition=""))


def _outcome(step: Step, write: Write | NewColumns | None, computed: Computed) -> Outcome:
    """What the ledger records of a step, but the snapshot."""
    assert step.trace is not None, "a planned step has its trace"
    written, removed, built, cut_off = 0, 0, computed.cut_off, computed.cut_off
    if isinstance(write, Write):
        written, removed = write.counted(computed.changes)
        built += len(computed.changes)
        cut_off += sum(not change.changes_rows for change in computed.changes)
    own_receipt = Receipt(
        written=written,
        removed=removed,
        cells_built=built,
        cells_cut_off=cut_off,
        commits=0 if write is None else 1,
    )
    return Outcome(
        step.model,
        step.version,
        step.trace,
        computed.changes,
        whole=write is not None and write.is_whole,
        committed=write is not None,
        files=computed.files,
        receipt=own_receipt + computed.receipt,
        quarantined=computed.quarantined,
        released=computed.released,
        cell_column=computed.cell_column,
        left_out=computed.left_out,
        cells=computed.cells,
    )
