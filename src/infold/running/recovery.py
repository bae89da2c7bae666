"""
Finishes or forgets the steps that a dead run left open, before anything else is done.

A step with its commit in the table's history and its outcome in the ledger is finished. Where only
its cells were recorded, their rows are counted and the cells are built again. Any other step never
happened. A step may have replaced a whole table without recording an outcome: the content of that
table is unknown, so its trace is invalid. Steps about names are in :mod:`table_names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import md5

from infold.core.interval import Ranges
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.record import Outcome, StepRecord
from infold.core.storages import NOT_PERMITTED
from infold.core.swap import is_swap
from infold.core.trace import UNKNOWN, Cause, Pending, merge_pending, signed
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.running.run_progress import ends_run
from infold.running.table_names import DROP_KEPT, DROPS, recover_drop, recover_swap


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was done about open steps, in words, and the models with one that stays open: why."""

    notes: tuple[str, ...] = ()
    open: Mapping[str, InfoldError] = field(default_factory=dict)

    def refuse_open(self) -> None:
        """Raise where a step stays open: its table is neither as before it nor as after it."""
        for error in self.open.values():
            raise error


def recover(ledger: Ledger, lake: Lake) -> Recovered:
    """
    Finish or forget every open step of earlier runs.

    A step stays open where its table cannot be looked at. Nothing may be built from that table or
    into it then; all others are as good as ever.
    """
    notes, unknown = [], {}
    for record in ledger.unfinished():
        # About several tables, with names that nobody knows before it is done: none stays open.
        if is_swap(record):
            notes.append(recover_swap(ledger, lake, record))
            continue
        if record.action == DROP_KEPT:
            notes.append(recover_drop(ledger, lake, record))
            continue
        try:
            notes.append(f"{record.model}: {_recover_step(ledger, lake, record)}")
        except InfoldError as error:
            if ends_run(error) and error.slug != NOT_PERMITTED:
                raise
            unknown[record.model] = error
    return Recovered(tuple(notes), unknown)


def _recover_step(ledger: Ledger, lake: Lake, record: StepRecord) -> str:
    """Finish or forget one step; what was done, in words."""
    if record.outcome is not None and not record.outcome.committed:
        ledger.finish_step(record.id, record.outcome)
        return "a step that a dead run had ended was finished"
    if record.action in DROPS:
        return recover_drop(ledger, lake, record)
    snapshot = committed_snapshot(lake, record.model, record.id)
    if snapshot is not None and record.outcome is not None:
        outcome: Outcome = replace(record.outcome, snapshot=snapshot)
        if outcome.cell_column is not None:
            outcome = _with_counted_rows(lake, record.id, outcome, outcome.cell_column, snapshot)
        ledger.finish_step(record.id, outcome)
        return "a step that a dead run had committed was finished"
    if snapshot is not None:
        # All content was replaced, and its outcome was not recorded: the trace is invalid. The
        # cells stay, so that readers see the change.
        _invalidate_trace(ledger, record)
    ledger.close_step(record.id, "forgotten")
    return "a step that a dead run had begun is done again"


def _with_counted_rows(
    lake: Lake, step: str, outcome: Outcome, column: str, snapshot: int
) -> Outcome:
    """
    The outcome of a commit with content that no process recorded.

    Its rows are counted, and its cells are left pending with a deliberately invalid checksum, which
    forces a rebuild.
    """
    times = lake.column_times(table_name(outcome.model), column, snapshot)
    changes = []
    for change in outcome.changes:
        cell_times = [at for at in times if at in change.cell]
        if cell_times:
            nobodys = md5(f"{step} {change.cell.start}".encode(), usedforsecurity=False).digest()
            changes.append(
                replace(
                    change,
                    added=len(cell_times),
                    rows_after=len(cell_times),
                    content_after=signed(int.from_bytes(nobodys[:8])),
                    last=max(cell_times),
                )
            )
    if not changes:  # a commit of nothing is no version
        return replace(outcome, changes=(), committed=False, snapshot=None, cell_column=None)
    missing = Pending(Cause.MISSING, Ranges.of(change.cell for change in changes))
    trace = replace(outcome.trace, pending=merge_pending((*outcome.trace.pending, missing)))
    return replace(outcome, changes=tuple(changes), trace=trace, cell_column=None)


def committed_snapshot(lake: Lake, model: str, step: str) -> int | None:
    """
    The snapshot that a step made, if it did: then it is unfinished, not failed.

    Raises ``run_errors.foreign_write`` where nobody can tell what it made: others committed while
    it was at work, or nothing is left of the table's history.
    """
    head = lake.metadata(table_name(model))
    if head is None:
        return None
    if step in head.steps and head.foreign is not None:
        raise run_errors.foreign_write(head.table, head.foreign)
    if not head.steps and head.snapshot is not None:
        raise run_errors.foreign_write(head.table, head.snapshot)
    return head.steps.get(step)


def _invalidate_trace(ledger: Ledger, record: StepRecord) -> None:
    trace = ledger.traces().get(record.model)
    heads = ledger.newest_versions()
    if trace is not None and record.model in heads:
        unknown = replace(trace, fingerprint=UNKNOWN, definition="", earlier=())
        version = heads[record.model].number
        ledger.finish_step(record.id, Outcome(record.model, version, unknown, committed=False))
