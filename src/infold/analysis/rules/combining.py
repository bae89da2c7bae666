"""
The rules on what brings rows together: groups, windows, joins and the like.

Where one of them has a finding, the rows are of several cells already. The rule on the partition
column has none of its own then, as it would blame an expression for what the other rule names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import Cells, cells_of
from infold.analysis.cumulative_query import split_cumulative_query, split_versioned_query
from infold.analysis.names.relation import Block, FromEntry, SetOperation, Table, blocks_of
from infold.analysis.names.select_parts import has_aggregate, is_grouped, several_sets, window_calls
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import SPAN, span_of
from infold.core.model import Kind
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot
from infold.messages.refusals import Cell

Rule = Callable[[Subject], Iterator[InfoldError]]
"""It yields one error for each place of a model that breaks it."""


def check_grouping(subject: Subject) -> Iterator[InfoldError]:
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
                by_key=_as_model(cells, block),
            )


def _as_model(cells: Cells, block: Block) -> str:
    """What to make of a subquery of one table, grouped by its columns, that rows are joined to."""
    joined = any(
        len(around.entries) > 1 and any(entry.relation is block for entry in around.entries)
        for around in cells.select_blocks()
    )
    keys = _names_of_keys(block) if joined else ()
    tables = [entry.relation for entry in block.entries]
    if not all(keys) or not keys or len(tables) != 1 or not isinstance(tables[0], Table):
        return ""
    by = ", ".join(keys)
    return (
        f"make the subquery a model with `materialization: cumulative_aggregate`; join it by {by}"
    )


def _names_of_keys(block: Block) -> Sequence[str]:
    """The columns of GROUP BY, by their names or numbers; an expression has no name."""
    group, outputs = block.node.args["group"], block.outputs or ()
    by_number = {str(at): out for at, out in enumerate(outputs, 1)}
    keys = (by_number[key.this].node if key.this in by_number else key for key in group.expressions)
    return [key.alias_or_name if isinstance(key.unalias(), exp.Column) else "" for key in keys]


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
    place = span_of(group)
    if group.meta.get(SPAN):  # that of a PIVOT
        return block.text.spot_of(group)
    if place is None:  # GROUP BY 1: behind the clause before it
        before = [
            span_of(block.node.args[key]) for key in ("where", "from_") if key in block.node.args
        ]
        start = max((span[1] for span in before if span is not None), default=0)
        token = block.text.token_after(start, TokenType.GROUP_BY)
        return block.text.spot_of_token(token) if token else block.text.spot(0)
    token = block.text.token_before(place[0], TokenType.GROUP_BY)
    start = token.start if token else place[0]
    return block.text.spot(*block.text.with_closing_brackets(start, place[1]))


def _first_aggregate(block: Block) -> Spot:
    item_found = next((item for item in block.node.expressions if has_aggregate(item)), None)
    return block.text.spot_of(item_found.unalias() if item_found is not None else block.node)


def check_distinct(subject: Subject) -> Iterator[InfoldError]:
    """Every SELECT DISTINCT over rows of several cells."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        if not block.node.args.get("distinct"):
            continue
        if block in cells.bounded_by_where:
            continue
        known = cells.known(block)
        if known.reads_time and not known.columns:
            spans = [span for item in block.node.expressions if (span := span_of(item)) is not None]
            start = min((span[0] for span in spans), default=len(block.text.sql))
            token = block.text.token_before(start, TokenType.DISTINCT)
            at = block.text.spot_of_token(token or block.text.tokens[0])
            yield refusals.distinct_over_cells(
                at, cell=cells.cell_name, columns=cells.time_columns(block)
            )


# PARTITION BY has an expression that follows the time, or a RANGE frame with intervals is ordered
# by one. ROWS and GROUPS frames count rows of any time. LAG, LEAD and ranks ignore every frame. In
# no model does Spark have FILTER in a window.


def check_windows(subject: Subject) -> Iterator[InfoldError]:
    """Every window over rows of any time, and every one that Spark does not evaluate."""
    for part in blocks_of(subject.relation):
        for window in window_calls(part) if isinstance(part, Block) else ():
            if isinstance(window.this, exp.Filter):
                yield refusals.filter_in_window(part.text.spot_of(window))
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        if not cells.reads_time(block):
            continue
        if block in cells.bounded_by_where:
            continue
        for window, near in cells.select(block).bounded_windows():
            if not near:
                at = block.text.spot_of(window)
                yield refusals.window_over_cells(
                    at, cell=cells.cell_name, columns=cells.time_columns(block)
                )


def check_joins(subject: Subject) -> Iterator[InfoldError]:
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
            finding = _join_finding(
                cells.cell_name, block, entry, (left, left_time), right_time, linked
            )
            if isinstance(entry.relation, Block) and _is_to_be_a_model(cells, entry.relation):
                continue  # then it has no time
            if finding is not None and not (
                _preserves_lookup(entry, left_time) and cells.gives_cells_to_kept_lookups(block)
            ):
                yield finding
            if right_time and not left_time:
                left = _name_of_entry(entry)
            left_time = left_time or right_time


def _is_to_be_a_model(cells: Cells, block: Block) -> bool:
    """Whether that is what :func:`check_grouping` says of it."""
    return (
        is_grouped(block)
        and block.node.args.get("group") is not None
        and cells.reads_time(block)
        and block not in cells.bounded_by_where
        and not cells.select(block).groups_by_time()
        and _as_model(cells, block) != ""
    )


def _join_finding(
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
            else refusals.join_of_times(at, cell=cell, left=name, right=_name_of_entry(entry))
        )
    if kind in ("SEMI", "ANTI") and right_time:
        return refusals.join_asks_all_cells(at, cell=cell, kind=kind, right=_name_of_entry(entry))
    if kind not in ("SEMI", "ANTI") and (side == "FULL" or _preserves_lookup(entry, left_time)):
        return refusals.join_keeps_lookup(at, cell=cell, side=side)
    return None


def _preserves_lookup(entry: FromEntry, left_time: bool) -> bool:
    """Whether a join keeps the rows of a lookup alone."""
    side = entry.join.side.upper() if entry.join is not None else ""
    return side in ("LEFT", "RIGHT") and (side == "RIGHT") == left_time


def _name_of_entry(entry: FromEntry) -> str:
    if isinstance(entry.relation, Table):
        return entry.relation.name
    return entry.alias or "a subquery"


# Equal rows are of one range around one cell when one of their columns, on both sides, follows the
# time; else they may be of any two cells.


def check_set_operations(subject: Subject) -> Iterator[InfoldError]:
    """Every set operation but UNION ALL that compares rows of any two times."""
    cells = cells_of(subject)
    if cells is None:
        return
    for operation in cells.blocks():
        if not isinstance(operation, SetOperation) or not cells.reads_time(operation):
            continue
        if operation in cells.bounded_by_where:
            continue
        if any(cells.known(operation).by_position or ()):
            continue
        if not isinstance(operation.node, exp.Union) or operation.node.args.get("distinct"):
            at, word = _spot_of_operation(operation)
            yield refusals.set_operation(at, cell=cells.cell_name, word=word)


def _spot_of_operation(operation: SetOperation) -> tuple[Spot, str]:
    span = span_of(operation.node.expression)
    kinds = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
    token = operation.text.token_before(span[0], *kinds) if span else None
    token = token or operation.text.token_after(-1, *kinds)
    if token is None:  # MINUS, which has no kind of its own
        return operation.text.spot_of(operation.node.expression), "a set operation"
    return operation.text.spot_of_token(token), token.text.upper()


def check_subqueries(subject: Subject) -> Iterator[InfoldError]:
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


COMBINING: Mapping[str, Rule] = {
    "grouping": check_grouping,
    "distinct": check_distinct,
    "windows": check_windows,
    "joins": check_joins,
    "set_operations": check_set_operations,
    "subqueries": check_subqueries,
}
"""By name, in the order in which their findings are shown."""


def check_by_key(subject: Subject) -> Iterator[InfoldError]:
    """Anything in a model that is kept by key that looks beyond the rows of one key."""
    if subject.model.kind is Kind.CUMULATIVE_AGGREGATE:
        yield from split_cumulative_query(subject).errors
    elif subject.model.kind is Kind.SCD_TYPE_2:
        yield from split_versioned_query(subject).errors
