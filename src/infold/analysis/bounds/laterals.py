"""LATERAL subqueries that do not say how far their rows are from the row at their left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from infold.analysis.names.relation import Block, From, Relation, blocks


class Joined(Protocol):
    """What is known of the entries of one FROM."""

    def connected(self, at: int) -> bool:
        """Whether an entry is told apart in time from those before it."""


def far(
    relation: Relation,
    looks_far: Callable[[From], bool],
    timed: Callable[[Relation], bool],
    scope: Callable[[Block], Joined | None],
) -> set[int]:
    """
    The SELECTs inside of such subqueries, by id.

    ``looks_far``: by what it says itself; ``timed``: of an input with a time column. ``scope`` is
    None for a SELECT that need not be looked at.
    """
    return {
        id(part)
        for block in blocks(relation, views=True)
        if isinstance(block, Block) and any(entry.lateral for entry in block.entries)
        for entry in _unlinked(block, looks_far, timed, scope(block))
        for part in blocks(entry.relation)
    }


def _unlinked(
    block: Block,
    looks_far: Callable[[From], bool],
    timed: Callable[[Relation], bool],
    scope: Joined | None,
) -> Iterator[From]:
    """Those of a FROM that are joined to rows of any time."""
    if scope is None:
        return
    times = False
    for at, entry in enumerate(block.entries):
        if times and looks_far(entry) and not scope.connected(at):
            yield entry
        times = times or timed(entry.relation)
