"""A subquery in an expression says how far its rows are from the row around it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import SPAN
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every scalar subquery, EXISTS and IN that looks at rows of any time."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        cells.scope(block)
        for holder, relation in block.nested_queries:
            if cells.asks_time(relation) and relation not in cells.bounded_subqueries:
                negated = isinstance(holder.parent, exp.Not) and SPAN not in holder.meta
                at = block.text.spot_of(holder.parent if negated and holder.parent else holder)
                if isinstance(holder, exp.In):
                    yield refusals.values_over_cells(at, cell=cells.cell_name)
                else:
                    yield refusals.subquery_over_cells(at, cell=cells.cell_name)
