"""
Exchanges stored tables: intent in the ledger → new names in the catalog → the ledger's rows.

The catalog's transaction is the instant at which readers see all of it. A run that finds the step
unfinished looks whether the names changed: if they did, the ledger follows; else it never happened.
Tables that were replaced are dropped by a step as well: the ledger forgets them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

from infold.core.catalogs import NOT_PERMITTED
from infold.core.interval import Interval, Ranges
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.record import Outcome, StepRecord
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable, is_exchange, renamings
from infold.core.trace import UNKNOWN, Cause, Pending, Unchanged, merge_pending, signed
from infold.messages import environment_errors, run_errors
from infold.messages.errors import InfoldError
from infold.running.run_progress import ends_run
from infold.running.table_locations import locations_and_files

KEEP_EXCHANGED = 60 * 60 * 1_000_000
"""
How long a table is kept that another one built apart took the place of: queries may still read it.
"""

DROP_KEPT = "drop kept"
"""The action of a step that drops tables which were replaced."""


def exchange(ledger: Ledger, lake: Lake, run: str, swap: Swap) -> None:
    """Give the tables their new names, and let the ledger follow; raises ``tables_moved``."""
    step = f"{run}-swap"
    ledger.begin_step(run, step, 1, swap.environment, swap.kind.value, _detail(swap))
    if not lake.rename(renamings(swap)):
        ledger.close_step(step, "failed", "a table moved")
        raise environment_errors.tables_moved(command=swap.kind.value)
    ledger.finish_swap(step, swap)
    there = {one.model for one in swap.tables if one.own is not None}
    there |= {one.kept for one in swap.tables if one.kept is not None}
    ledger.remember_locations(locations_and_files(lake, sorted(there)))


def drop_kept(ledger: Ledger, lake: Lake, run: str, swap: DoneSwap) -> None:
    """Drop the tables that a swap replaced."""
    step = f"{run}-kept_{swap.id}"
    found = {key: lake.location(table_name(key)) for key in swap.kept.values() if key is not None}
    detail = {"swap": swap.id, "tables": found}
    ledger.begin_step(run, step, 0, swap.environment, DROP_KEPT, detail)
    ledger.forget_swap(swap.id)
    _drop_tables(lake, found)
    ledger.close_step(step, "done")


def drop_kept_over(
    ledger: Ledger, lake: Lake, run: str, *, now: int, keep: int | None
) -> Iterator[str]:
    """Drop the replaced tables that were kept long enough; yields notes."""
    for swap in ledger.swaps():
        until = KEEP_EXCHANGED if swap.kind is SwapKind.EXCHANGE else keep
        if until is not None and swap.made_at + until <= now:
            drop_kept(ledger, lake, run, swap)
            yield _dropped_note(swap)


def recover_swap(ledger: Ledger, lake: Lake, record: StepRecord) -> str:
    """Finish what a dead run began, or find that it never happened; what was done, in words."""
    if record.action == DROP_KEPT:
        if any(swap.id == record.detail["swap"] for swap in ledger.swaps()):
            ledger.close_step(record.id, "forgotten")
            return "a run died before it dropped replaced tables"
        _drop_tables(lake, record.detail["tables"])
        ledger.close_step(record.id, "done")
        return "replaced tables, which a dead run had begun to drop, were dropped"
    swap = _swap(record.detail)
    moves = renamings(swap)
    if not moves or lake.was_renamed(moves):
        ledger.finish_swap(record.id, swap)
        return f"the {record.action} of {record.model}, which a dead run had begun, was finished"
    ledger.close_step(record.id, "forgotten")
    return f"a run died before the {record.action} of {record.model}"


def is_swap(record: StepRecord) -> bool:
    """Whether a step exchanges tables, or drops replaced ones."""
    return record.action == DROP_KEPT or is_exchange(record)


def _drop_tables(lake: Lake, tables: Mapping[str, str | None]) -> None:
    for key, location in tables.items():
        lake.drop(table_name(key))
        if location is not None:  # its folder may have another name than the table
            lake.delete_folder(location)


def _dropped_note(swap: DoneSwap) -> str:
    models = ", ".join(sorted(name for name, key in swap.kept.items() if key is not None))
    return f"the tables that the {swap.kind} of {swap.environment} replaced were dropped: {models}"


def _detail(swap: Swap) -> dict[str, Any]:
    """A swap as the detail of its step."""
    return {
        "kind": swap.kind.value,
        "environment": swap.environment,
        "tables": [
            {
                "model": one.model,
                "own": one.own,
                "kept": one.kept,
                "own_location": one.own_location,
                "kept_location": one.kept_location,
                "unchanged": [
                    [sorted(part.columns), [[cell.start, cell.end] for cell in part.cells]]
                    for part in one.unchanged
                ],
            }
            for one in swap.tables
        ],
        "applied": dict(swap.applied),
        "undoes": swap.undoes,
    }


def _swap(detail: Mapping[str, Any]) -> Swap:
    """The swap that :func:`_detail` wrote."""
    return Swap(
        SwapKind(detail["kind"]),
        detail["environment"],
        tuple(
            SwappedTable(**{**one, "unchanged": tuple(_unchanged(*x) for x in one["unchanged"])})
            for one in detail["tables"]
        ),
        detail["applied"],
        detail["undoes"],
    )


def _unchanged(columns: list[str], cells: list[list[int]]) -> Unchanged:
    return Unchanged(frozenset(columns), Ranges(tuple(Interval(*cell) for cell in cells)))


# A step with its commit in the table's history and its outcome in the ledger is finished. Where
# only its cells were recorded, their rows are counted and the cells are built again. Any other step
# never happened. A step may have replaced a whole table without recording an outcome: the content
# of that table is unknown, so its trace is invalid.

FORGET = "forget"
"""
The action of a step that forgets a model; once the ledger has forgotten it, its table is dropped.
"""

LOSE = "lose"
"""The action of a step that forgets a model without a table: nothing is left to drop."""


def drop_forgotten(
    ledger: Ledger, lake: Lake, *, run: str, step: str, seq: int, model: str
) -> None:
    """
    Forget a model by a step, and drop its table.

    The step knows where the table is: a run that dies between catalog and files leaves a folder
    that no catalog names.
    """
    location = lake.location(table_name(model))
    ledger.begin_step(run, step, seq, model, FORGET, {"location": location})
    ledger.forget(model, step=step)
    lake.drop(table_name(model))
    ledger.close_step(step, "done")


def _drop(lake: Lake, model: str, location: str | None) -> None:
    lake.drop(table_name(model))
    if location is not None:
        lake.delete_folder(location)


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
        if is_swap(record):  # of several tables, with names that nobody knows before it is done
            notes.append(recover_swap(ledger, lake, record))
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
    if record.action in (FORGET, LOSE):
        if record.model in ledger.traces() or _has_gone_on(ledger, lake, record.model):
            ledger.close_step(record.id, "forgotten")
            return "a run died before it forgot it"
        if record.action == FORGET:
            _drop(lake, record.model, record.detail.get("location"))
        ledger.close_step(record.id, "done")
        return "forgetting it, which a dead run had begun, was finished"
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
        own = [at for at in times if at in change.cell]
        if own:
            nobodys = md5(f"{step} {change.cell.start}".encode(), usedforsecurity=False).digest()
            changes.append(
                replace(
                    change,
                    added=len(own),
                    rows_after=len(own),
                    content_after=signed(int.from_bytes(nobodys[:8])),
                    last=max(own),
                )
            )
    if not changes:  # a commit of nothing is no version
        return replace(outcome, changes=(), committed=False, snapshot=None, cell_column=None)
    again = Pending(Cause.MISSING, Ranges.of(change.cell for change in changes))
    trace = replace(outcome.trace, pending=merge_pending((*outcome.trace.pending, again)))
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


def _has_gone_on(ledger: Ledger, lake: Lake, model: str) -> bool:
    """
    Whether a table has commits that the ledger does not know.

    Then the ledger is an older one: the table was dropped long ago, and built again since.
    """
    head = lake.metadata(table_name(model))
    return head is not None and not ledger.step_models(head.steps).keys() >= {*head.steps}


def _invalidate_trace(ledger: Ledger, record: StepRecord) -> None:
    trace = ledger.traces().get(record.model)
    heads = ledger.newest_versions()
    if trace is not None and record.model in heads:
        unknown = replace(trace, fingerprint=UNKNOWN, definition="", earlier=())
        version = heads[record.model].number
        ledger.finish_step(record.id, Outcome(record.model, version, unknown, committed=False))
