"""Rows are aggregated within a cell: GROUP BY has an expression that keeps the cell."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import Block
from infold.analysis.names.select_parts import has_aggregate, is_grouped, several_sets
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import SPAN, span_of
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every aggregation over rows of several cells."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        if not cells.reads_time(block) or not is_grouped(block):
            continue
        if block in cells.bounded_by_where:
            continue
        group = block.node.args.get("group")
        if group is None:
            at = _first_aggregate(block)
            yield refusals.total_over_cells(
                at, cell=cells.cell_name, columns=cells.time_columns(block)
            )
        elif cells.select(block).groups_by_time():
            continue
        elif several_sets(group):
            yield refusals.grouping_sets(_group_spot(block, group), cell=cells.cell_name)
        else:
            at = _group_spot(block, group)
            yield refusals.group_over_cells(
                at, cell=cells.cell_name, columns=cells.time_columns(block)
            )


def _group_spot(block: Block, group: exp.Group) -> Spot:
    found = span_of(group)
    if group.meta.get(SPAN):  # that of a PIVOT
        return block.text.spot_of(group)
    if found is None:  # GROUP BY 1: behind the clause before it
        before = [
            span_of(block.node.args[key]) for key in ("where", "from_") if key in block.node.args
        ]
        start = max((span[1] for span in before if span is not None), default=0)
        token = block.text.token_after(start, TokenType.GROUP_BY)
        return block.text.spot_of_token(token) if token else block.text.spot(0)
    token = block.text.token_before(found[0], TokenType.GROUP_BY)
    start = token.start if token else found[0]
    return block.text.spot(*block.text.with_closing_brackets(start, found[1]))


def _first_aggregate(block: Block) -> Spot:
    found = next((item for item in block.node.expressions if has_aggregate(item)), None)
    return block.text.spot_of(found.unalias() if found is not None else block.node)
