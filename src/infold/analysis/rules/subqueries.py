"""A subquery in an expression sees all cells of what it reads, so it reads lookups only."""

from __future__ import annotations

from collections.abc import Iterator

from infold import refusals
from infold.analysis.cells import cells_of
from infold.analysis.relation import Block
from infold.analysis.subject import Subject
from infold.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every scalar subquery, EXISTS and IN over an input with a time column."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.blocks():
        if isinstance(block, Block):
            for holder, relation in block.nested:
                if cells.of(relation).time:
                    yield refusals.subquery_over_cells(block.text.spot_of(holder), cells.called)
