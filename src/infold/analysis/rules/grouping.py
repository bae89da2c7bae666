"""Rows are aggregated within a cell: GROUP BY has an expression that keeps the cell."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import Cells, cells_of
from infold.analysis.names.relation import Block, Table
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
        elif _groups_by_partition(cells, block, group):
            continue  # the cell is what it groups by: that it is none is found of that column
        elif several_sets(group):
            yield refusals.grouping_sets(_group_spot(block, group), cell=cells.cell_name)
        else:
            yield refusals.group_over_cells(
                _group_spot(block, group),
                cell=cells.cell_name,
                columns=cells.time_columns(block),
                by_key=_as_model(cells, block, group),
            )


def _as_model(cells: Cells, block: Block, group: exp.Group) -> str:
    """What to make of a subquery of one table, grouped by its columns, that rows are joined to."""
    joined = any(
        len(around.entries) > 1 and any(entry.relation is block for entry in around.entries)
        for around in cells.select_blocks()
    )
    keys = [key.name for key in group.expressions if isinstance(key, exp.Column)]
    tables = [entry.relation for entry in block.entries]
    if not joined or len(keys) < len(group.expressions) or not keys:
        return ""
    if len(tables) != 1 or not isinstance(tables[0], Table):
        return ""
    by = ", ".join(keys)
    return (
        f"make the subquery a model with `materialization: cumulative_aggregate`; join it by {by}"
    )


def _groups_by_partition(cells: Cells, block: Block, group: exp.Group) -> bool:
    """Whether the partition column, which this SELECT computes, is one of the keys."""
    named = cells.partition_column.lower()
    outputs = block.outputs or ()
    at = next((i for i, out in enumerate(outputs) if out.name.lower() == named), None)
    if block is not cells.subject.relation or at is None or several_sets(group):
        return False
    value = outputs[at].node.unalias()
    if cells.select(block).own_shapes(outputs[at]):
        return False  # it follows a time, and what brings rows together is to blame
    return any(
        key == value
        or (isinstance(key, exp.Literal) and key.this == str(at + 1))
        or (
            isinstance(key, exp.Column)
            and block.aliases.get(key) is not None
            and key.name.lower() == named
        )
        for key in group.expressions
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
