"""
How far LAG and LEAD of the time look, as far as it makes a difference.

They look at their whole partition, and so at rows of any time. Their value is the time of the next
row, or NULL. Those of another column, over the same partition and order, are of the same row; a
query that asks whether it is near may show them where it is. Where everything computed from them
is the same for a far row as for none (:mod:`infold.analysis.bounds.far_rows`), it follows from the
rows within a distance. The same goes for a column that a SELECT around it uses so, or keeps for
near rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.bounds.far_rows import FarValue
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    Relation,
    RenamedColumns,
    SetOperation,
    blocks_of,
)
from infold.analysis.names.select_parts import partitioned_by
from infold.analysis.times.distances import UNBOUNDED, links_of
from infold.analysis.times.durations import number_of
from infold.analysis.times.window_frames import Reach, window_clause


def shift_reach(
    window: exp.Window, block: Block, root: Relation, named: Mapping[str, exp.Expr]
) -> Reach | None:
    """The reach of LAG or LEAD in ``block``, a SELECT of the query ``root``."""
    order, row = _ordered_by(window, named), _row_of(window, named)
    if order is None or row is None:
        return None
    back = isinstance(window.this, exp.Lag) != bool(order.args.get("desc"))
    shift = _Shift(window, order.this, back, lambda node: _row_of(node, named) == row)
    far = _reach_in_select(shift)
    if far is None:
        far = _reach_in_outer_selects(shift, block, root)
    if far is None:
        return None
    return Reach(order.this, far if back else 0, 0 if back else far)


def of_the_order(window: exp.Window, order: exp.Expr) -> bool:
    """Whether a LAG or LEAD is of the very column that its window is ordered by."""
    return bool(window.this.this == order)


@dataclass(frozen=True, slots=True)
class _Shift:
    """LAG or LEAD in a window ordered by ``time``; ``back``: it looks at an earlier row."""

    window: exp.Window
    time: exp.Expr
    back: bool
    same_row: Callable[[exp.Expr], bool]
    """Whether another LAG or LEAD is of the same row."""

    def is_time(self, node: exp.Expr) -> bool:
        """Whether a node is the time of that row."""
        return isinstance(node, exp.Window) and self.same_row(node) and node.this.this == self.time

    def is_beside(self, node: exp.Expr) -> bool:
        """Whether a node is another column of that row."""
        return isinstance(node, exp.Window) and self.same_row(node) and node.this.this != self.time


def _reach_in_select(shift: _Shift) -> int | None:
    """How far it looks by what its own SELECT makes of it."""
    top: exp.Expr = shift.window
    while top.parent is not None and not isinstance(top.parent, (exp.Select, exp.Qualify)):
        top = top.parent
    other = FarValue(shift.is_time, lambda node: node == shift.time, shift.back, shift.is_beside)
    return other.distance(top, truth=isinstance(top.parent, exp.Qualify))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a SELECT that are of the row that LAG or LEAD finds; lower case."""

    own: str
    """That of the LAG or LEAD in question."""
    times: frozenset[str]
    beside: frozenset[str]
    by: frozenset[str]
    """Those of the own row's time."""


def _reach_in_outer_selects(shift: _Shift, block: Block, root: Relation) -> int | None:
    """How far it looks by what every SELECT around makes of it as a column."""
    outputs = [(out.name.lower(), out.node.unalias()) for out in block.outputs or ()]
    named = [name for name, node in outputs if node is shift.window]
    if not named or any(
        named[0] == alias.name.lower() for alias in _columns_naming(block, shift.window)
    ):
        return None
    columns = _Columns(
        named[0],
        frozenset(name for name, node in outputs if shift.is_time(node)),
        frozenset(name for name, node in outputs if shift.is_beside(node)),
        frozenset(name for name, node in outputs if node == shift.time),
    )
    everywhere = list(blocks_of(root, views=True))
    around = [
        (outer, entry)
        for outer in everywhere
        if isinstance(outer, Block)
        for entry in outer.entries
        if _is_block(entry.relation, block)
    ]
    if not around or any(_is_side_of_union(one, block) for one in everywhere):
        return None
    found = [_reach_of_column(outer, entry, columns, shift.back) for outer, entry in around]
    if any(far is None for far in found) or any(
        isinstance(one, Block) and one is not outer and _reads_entry(one, entry)
        for one in everywhere
        for outer, entry in around
    ):
        return None
    return max(far for far in found if far is not None)


def _columns_naming(block: Block, window: exp.Window) -> Iterator[exp.Expr]:
    """The columns of a SELECT that name its own output that is a window."""
    for node in block.expressions():
        if isinstance(node, exp.Column) and block.aliases.get(node) is not None:
            meant = block.aliases[node].unalias()
            if meant is window:
                yield node


def _is_block(relation: Relation, block: Block) -> bool:
    while isinstance(relation, RenamedColumns):
        relation = relation.inner
    return relation is block


def _is_side_of_union(relation: Block | SetOperation, block: Block) -> bool:
    """Whether a SELECT is a side of a set operation, which renames its columns."""
    if not isinstance(relation, SetOperation):
        return False
    return any(_is_block(side, block) for side in (relation.left, relation.right))


def _reads_entry(block: Block, entry: FromEntry) -> bool:
    """Whether a SELECT names columns of another one's entry: a subquery in an expression."""
    return any(origin is not None and origin.entry is entry for origin in block.origins.values())


def _reach_of_column(block: Block, entry: FromEntry, columns: _Columns, back: bool) -> int | None:
    """How far a column of an entry matters in one SELECT; None when there is no end to it."""
    limit, column = _limit_in_where(block, entry, columns, back), columns.own
    if limit is not None:
        return limit
    outputs = block.outputs
    if outputs is None or any(_passes_on(out.origin, entry, column) for out in outputs):
        return None
    joins = [other.join for other in block.entries if other.join is not None]
    if any(join.args.get("method") == "NATURAL" for join in joins):
        return None  # it may be by this very column
    if any(name.name.lower() == column for j in joins for name in j.args.get("using") or ()):
        return None

    def is_one(node: exp.Expr, names: Collection[str]) -> bool:
        origin = block.origins.get(node) if isinstance(node, exp.Column) else None
        return (
            origin is not None
            and origin.entry is entry
            and origin.column in names
            and not origin.fields
        )

    other = FarValue(
        lambda node: is_one(node, columns.times),
        lambda node: is_one(node, columns.by),
        back,
        lambda node: is_one(node, columns.beside),
    )
    far = 0
    for top, truth in _root_expressions(block):
        if not any(is_one(node, {column}) for node in top.walk()):
            continue
        found = other.distance(top, truth=truth)
        if found is None:
            return None
        far = max(far, found)
    return far


def _passes_on(origin: Origin | None, entry: FromEntry, column: str) -> bool:
    return origin is not None and origin.entry is entry and origin.column == column


def _root_expressions(block: Block) -> Iterator[tuple[exp.Expr, bool]]:
    """The expressions of a SELECT, and for which of them only their truth matters."""
    args = block.node.args
    for key, value in args.items():
        if key in ("from_", "with_", "hint", "laterals", "joins"):
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (exp.Where, exp.Having, exp.Qualify)):
                yield one.this, True
            elif isinstance(one, exp.Expr):
                yield one, False
    for join in args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"], True
    for lateral in args.get("laterals") or ():
        yield lateral, False


def _limit_in_where(block: Block, entry: FromEntry, columns: _Columns, back: bool) -> int | None:
    """How far WHERE lets the time of the other row be from that of the own row."""
    for link in links_of(block.node.args.get("where")):
        for one in () if link.or_null else (link, link.reversed):
            sides = [
                block.origins.get(side) if isinstance(side, exp.Column) else None
                for side in (one.left, one.right)
            ]
            if any(side is None or side.entry is not entry for side in sides):
                continue
            left, right = (side.column for side in sides if side is not None)
            far = -one.low if back else one.high
            if left in columns.times and right in columns.by and far < UNBOUNDED:
                return max(0, far)
    return None


def _ordered_by(window: exp.Window, named: Mapping[str, exp.Expr]) -> exp.Ordered | None:
    """What a window is ordered by first: rows in this order are read from there to here."""
    order = window_clause(window, named, "order")
    if not isinstance(order, exp.Order) or not order.expressions:
        return None
    first = order.expressions[0]
    return first if isinstance(first, exp.Ordered) else None


def _row_of(window: exp.Expr, named: Mapping[str, exp.Expr]) -> tuple[object, ...] | None:
    """Which row LAG or LEAD is of, NULL where there is none; None for any other expression."""
    call = window.this if isinstance(window, exp.Window) else None
    if not isinstance(call, (exp.Lag, exp.Lead)) or call.args.get("default") is not None:
        return None
    offset = call.args.get("offset")
    rows = number_of(offset) if isinstance(offset, exp.Expr) else 1
    if rows is None or rows <= 0 or call.find(exp.IgnoreNulls, exp.RespectNulls):
        return None
    order = window_clause(window, named, "order")
    parts = [*partitioned_by(window, named), *([] if order is None else order.expressions)]
    return type(call), rows, tuple(part.sql("spark") for part in parts)
