"""Joins say how far two inputs with times are apart, and keep no rows of lookups alone."""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import Block, FromEntry, Table
from infold.analysis.names.subject import Subject
from infold.messages import refusals
from infold.messages.errors import InfoldError
from infold.messages.refusals import Cell


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every join that mixes rows of several cells."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        left_time, left = False, ""
        for at, entry in enumerate(block.entries):
            near = entry.lateral and entry.relation in cells.bounded_subqueries
            right_time = cells.reads_time(entry.relation) and not near
            linked = block in cells.bounded_by_where or cells.scope(block).connected(at)
            finding = _finding_of(
                cells.cell_name, block, entry, (left, left_time), right_time, linked
            )
            if finding is not None and not (
                _preserves_lookup(entry, left_time) and cells.gives_cells_to_kept_lookups(block)
            ):
                yield finding
            if right_time and not left_time:
                left = _name_of(entry)
            left_time = left_time or right_time


def _finding_of(
    cell: Cell,
    block: Block,
    entry: FromEntry,
    left: tuple[str, bool],
    right_time: bool,
    linked: bool,
) -> InfoldError | None:
    """What is wrong with joining one more entry to those before it."""
    name, left_time = left
    if entry.join is None or not (left_time or right_time):
        return None
    at = block.text.spot_of_entry(entry.node)
    side, kind = entry.join.side.upper(), entry.join.kind.upper()
    if left_time and right_time:
        return (
            None
            if linked
            else refusals.join_of_times(at, cell=cell, left=name, right=_name_of(entry))
        )
    if kind in ("SEMI", "ANTI") and right_time:
        return refusals.join_asks_all_cells(at, cell=cell, kind=kind, right=_name_of(entry))
    if kind not in ("SEMI", "ANTI") and (side == "FULL" or _preserves_lookup(entry, left_time)):
        return refusals.join_keeps_lookup(at, cell=cell, side=side)
    return None


def _preserves_lookup(entry: FromEntry, left_time: bool) -> bool:
    """Whether a join keeps the rows of a lookup alone."""
    side = entry.join.side.upper() if entry.join is not None else ""
    return side in ("LEFT", "RIGHT") and (side == "RIGHT") == left_time


def _name_of(entry: FromEntry) -> str:
    if isinstance(entry.relation, Table):
        return entry.relation.name
    return entry.alias or "a subquery"
