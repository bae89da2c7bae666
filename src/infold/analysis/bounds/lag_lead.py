"""
How far LAG and LEAD of the time look, as far as it makes a difference.

They look at their whole partition, and so at rows of any time. Their value is the time of the next
row, or NULL. Where everything computed from it is the same for a far row as for none
(:mod:`infold.analysis.bounds.far_rows`), it follows from the rows within a distance. The same goes
for a column that a SELECT around it uses so, or keeps for near rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from infold.analysis.times.distances import UNBOUNDED, links_of
from infold.analysis.times.durations import number_of
from infold.analysis.times.window_frames import Reach, window_clause


def shift_reach(
    window: exp.Window, block: Block, root: Relation, named: Mapping[str, exp.Expr]
) -> Reach | None:
    """The reach of LAG or LEAD of the time in ``block``, a SELECT of the query ``root``."""
    order = _ordered_by(window, named)
    if order is None or not _plain_shift(window, order.this):
        return None
    back = isinstance(window.this, exp.Lag) != bool(order.args.get("desc"))
    far = _reach_in_select(window, order.this, back)
    if far is None:
        far = _reach_in_outer_selects(window, order.this, back, block, root)
    if far is None:
        return None
    return Reach(order.this, far if back else 0, 0 if back else far)


def _reach_in_select(window: exp.Window, time: exp.Expr, back: bool) -> int | None:
    """How far it looks by what its own SELECT makes of it."""
    top: exp.Expr = window
    while top.parent is not None and not isinstance(top.parent, (exp.Select, exp.Qualify)):
        top = top.parent
    other = FarValue(lambda node: node == window, lambda node: node == time, back)
    return other.distance(top, truth=isinstance(top.parent, exp.Qualify))


def _reach_in_outer_selects(
    window: exp.Window, time: exp.Expr, back: bool, block: Block, root: Relation
) -> int | None:
    """How far it looks by what every SELECT around makes of it as a column."""
    names = {id(out.node.unalias()): out.name.lower() for out in block.outputs or ()}
    column = names.get(id(window))
    by = {out.name.lower() for out in block.outputs or () if out.node.unalias() == time}
    if column is None or any(
        column == alias.name.lower() for alias in _columns_naming(block, window)
    ):
        return None
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
    found = [_reach_of_column(outer, entry, column, by, back) for outer, entry in around]
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


def _reach_of_column(
    block: Block, entry: FromEntry, column: str, by: set[str], back: bool
) -> int | None:
    """How far a column of an entry matters in one SELECT; None when there is no end to it."""
    limit = _limit_in_where(block, entry, column, by, back)
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

    def is_one(node: exp.Expr, names: set[str]) -> bool:
        origin = block.origins.get(node) if isinstance(node, exp.Column) else None
        return (
            origin is not None
            and origin.entry is entry
            and origin.column in names
            and not origin.fields
        )

    other = FarValue(lambda node: is_one(node, {column}), lambda node: is_one(node, by), back)
    far = 0
    for top, truth in _root_expressions(block):
        if not any(other.found(node) for node in top.walk()):
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


def _limit_in_where(
    block: Block, entry: FromEntry, column: str, by: set[str], back: bool
) -> int | None:
    """How far WHERE lets a column of an entry be from one of the columns ``by`` of it."""
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
            if left == column and right in by and far < UNBOUNDED:
                return max(0, far)
    return None


def _ordered_by(window: exp.Window, named: Mapping[str, exp.Expr]) -> exp.Ordered | None:
    """What a window is ordered by first: rows in this order are read from there to here."""
    order = window_clause(window, named, "order")
    if not isinstance(order, exp.Order) or not order.expressions:
        return None
    first = order.expressions[0]
    return first if isinstance(first, exp.Ordered) else None


def _plain_shift(window: exp.Window, order: exp.Expr) -> bool:
    """Whether it is LAG or LEAD of the ordering column itself, NULL where there is no such row."""
    call = window.this
    return (
        isinstance(call, (exp.Lag, exp.Lead))
        and call.args.get("default") is None
        and call.this == order
        and (call.args.get("offset") is None or (number_of(call.args["offset"]) or 0) > 0)
    )
