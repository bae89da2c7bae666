"""
Finds LATERAL subqueries that no condition bounds in time.

Such a subquery can read rows at any distance from the row at its left, so the rules refuse it in a
model that is built cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from infold.analysis.names.relation import Block, FromEntry, Relation, blocks_of


class JoinedEntries(Protocol):
    """What is known of the entries of one FROM."""

    def connected(self, at: int) -> bool:
        """Whether the distance in time of an entry from those before it is bounded."""


def selects_without_bound(
    relation: Relation,
    looks_far: Callable[[FromEntry], bool],
    reads_time: Callable[[Relation], bool],
    scope: Callable[[Block], JoinedEntries | None],
) -> set[Relation]:
    """
    The SELECTs in such subqueries.

    ``looks_far``: whether a subquery has no bound in its own text; ``reads_time``: whether it reads
    an input with a time column. ``scope`` gives None for a SELECT that need not be checked.
    """
    return {
        part
        for block in blocks_of(relation, views=True)
        if isinstance(block, Block) and any(entry.lateral for entry in block.entries)
        for entry in _without_bound(block, looks_far, reads_time, scope(block))
        for part in blocks_of(entry.relation)
    }


def _without_bound(
    block: Block,
    looks_far: Callable[[FromEntry], bool],
    reads_time: Callable[[Relation], bool],
    scope: JoinedEntries | None,
) -> Iterator[FromEntry]:
    """The subqueries of a FROM that are joined to rows of any time."""
    if scope is None:
        return
    times = False
    for at, entry in enumerate(block.entries):
        if times and looks_far(entry) and not scope.connected(at):
            yield entry
        times = times or reads_time(entry.relation)
