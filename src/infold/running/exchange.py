"""
Exchanges stored tables: intent in the ledger → new names in the catalog → the ledger's rows.

The catalog's transaction is the instant at which readers see all of it. A run that finds the step
unfinished looks whether the names changed: if they did, the ledger follows; else it never happened.
Tables that were replaced are dropped by a step as well: the ledger forgets them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infold.core.interval import Interval, Ranges
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.record import StepRecord
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable, is_exchange, renamings
from infold.core.unchanged import Unchanged
from infold.messages import environment_errors
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
