"""
What taking back the last promote would exchange, or why it cannot be taken back.

The tables that the promote replaced get their names back, and the definitions of then are applied.
What runs did since then went into the new tables; the old ones are behind, and the next run brings
them up to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.promotion import Exchange
from infold.core.swap import DoneSwap, Swap, SwapKind, SwappedTable
from infold.core.target import Apply
from infold.inspecting.exchanges import (
    exchanged_table,
    free_key,
    lost_file,
    readers_that_follow,
    refuse_misfits,
)
from infold.messages import promote_errors


def rollback(project: Project, ledger: Ledger, lake: Lake) -> Exchange:
    """
    What going back would exchange, in a ``project`` as it is applied.

    Raises ``nothing_to_roll_back``, ``rollback_outdated`` or ``promote_incomplete``.
    """
    last = next((one for one in ledger.swaps() if one.kind is SwapKind.PROMOTE), None)
    if last is None:
        raise promote_errors.nothing_to_roll_back(target=project.target.name)
    now = {name: entry.digest for name, entry in ledger.applied().items()}
    if outdated := [*_outdated(last, now, ledger, lake)]:
        raise promote_errors.rollback_outdated(outdated)
    applied = {name: old for name, (old, new) in last.definitions.items() if old != new}
    after = {name: digest for name, digest in {**now, **applied}.items() if digest}
    refuse_misfits(project, ledger, after)
    tables = tuple(_swapped_back(model, key, ledger, lake) for model, key in last.kept.items())
    return Exchange(
        Swap(SwapKind.ROLLBACK, last.environment, tables, applied, undoes=last.id),
        tuple(exchanged_table(ledger, one) for one in tables),
        tuple(name for name in applied if name not in last.kept),
        (),
        tuple(readers_that_follow(project, ledger, tables, ColumnsRead(project))),
        takes_files=project.target.apply is Apply.AUTO,
        at_once=project.target.at_once,
    )


def _outdated(
    last: DoneSwap, now: Mapping[str, str], ledger: Ledger, lake: Lake
) -> Iterator[tuple[str, str]]:
    """What was changed since a promote, so that it cannot be taken back."""
    for name, (old, new) in last.definitions.items():
        if (old != new or name in last.kept) and now.get(name, "") != new:
            yield name, "another definition was applied since"
    for model, key in last.kept.items():
        if key is None or model not in last.stored:
            continue
        if lake.location(table_name(key)) is None:
            yield model, f"its table, kept as {key}, is not there any more"
        elif missing := lost_file(ledger, lake, table_name(key)):
            yield model, f"its table, kept as {key}, has lost the file {missing}"


def _swapped_back(model: str, key: str | None, ledger: Ledger, lake: Lake) -> SwappedTable:
    there = lake.location(table_name(model))
    known = there is not None or model in ledger.traces()
    return SwappedTable(
        model,
        key,
        free_key(ledger, lake, model, there) if known else None,
        None if key is None else lake.location(table_name(key)),
        there,
    )
