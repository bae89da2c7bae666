"""How far the windows of one SELECT look: by what they are partitioned by, or by their frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.bounds.known_columns import NullSources, Shapes
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    Origin,
    Relation,
    SetOperation,
    blocks_of,
    without_renaming,
)
from infold.analysis.names.select_parts import alike_by, named_windows, partitioned_by
from infold.analysis.times.distances import UNBOUNDED, Reach, frame_reach, links_of, window_clause
from infold.analysis.times.durations import number_of
from infold.analysis.times.floors import floored_value


@dataclass(frozen=True, slots=True)
class WindowReach:
    """
    The windows of ``block``, which is somewhere in the query ``root``.

    ``shapes`` and ``nulls_of`` give what is known of an expression over the block's rows;
    ``against_all`` says whether that is against every input.
    """

    block: Block
    root: Relation
    shapes: Callable[[exp.Expr], Shapes]
    nulls_of: Callable[[exp.Expr], NullSources]
    against_all: Callable[[Shapes], bool]

    def key(self, window: exp.Window, nulls: NullSources) -> exp.Expr | None:
        """
        An expression of PARTITION BY that follows the time.

        It is NULL only where what is missing in ``nulls`` is.
        """
        for item in alike_by(partitioned_by(window, named_windows(self.block))):
            shapes = self.shapes(item)
            if self.against_all(shapes) and self.nulls_of(item) <= nulls:
                return item
        return None

    def far(self, window: exp.Window, nulls: NullSources) -> tuple[exp.Expr, Shapes] | None:
        """
        How far the rows are that a window looks at; None when there is no bound.

        A value of the row itself, and its shapes against the rows that are looked at: those of the
        same partition, or within a RANGE frame.
        """
        key = self.key(window, nulls)
        if key is not None:
            return key, self.shapes(key)
        reach = self._reach(window, nulls)
        if reach is None:
            return None
        shapes = self.shapes(reach.order)
        if not self.against_all(shapes):
            return None
        near = {at: shape.of_rows_within(reach.before, reach.after) for at, shape in shapes.items()}
        return reach.order, near

    def _reach(self, window: exp.Window, nulls: NullSources) -> Reach | None:
        """
        How far from its own row a window looks, by the column it is ordered by.

        The rows without a value to be ordered by are in one frame, so there may be none but where
        what is missing in ``nulls`` is.
        """
        named = named_windows(self.block)
        reach = frame_reach(window, named)
        if reach is not None and not self.nulls_of(reach.order) <= nulls:
            return None
        if reach is not None:
            return reach
        reach = shift_reach(window, self.block, self.root, named)
        if reach is None or is_own_order(window, reach.order) or not self.nulls_of(reach.order):
            return reach
        return None  # the row before one may be without a time, and then it is of any time


# They look at their whole partition, and so at rows of any time. Their value is the time of the
# next row, or NULL. Those of another column, over the same partition and order, are of the same
# row; a query that asks whether it is near may show them where it is. Where everything computed
# from them is the same for a far row as for none (:mod:`infold.analysis.bounds.window_reach`), it
# follows from the rows within a distance. The same goes for a column that a SELECT around it uses
# so, or keeps for near rows alone.


def shift_reach(
    window: exp.Window, block: Block, root: Relation, named: Mapping[str, exp.Expr]
) -> Reach | None:
    """The reach of LAG or LEAD in ``block``, a SELECT of the query ``root``."""
    order, row = _ordered_by(window, named), _row_of(window, named)
    if order is None or row is None:
        return None
    looks_back = isinstance(window.this, exp.Lag) != bool(order.args.get("desc"))
    shift = _Shift(window, order.this, looks_back, lambda node: _row_of(node, named) == row)
    far = _reach_in_select(shift)
    if far is None:
        far = _reach_in_outer_selects(shift, block, root)
    if far is None:
        return None
    return Reach(order.this, far if looks_back else 0, 0 if looks_back else far)


def is_own_order(window: exp.Window, order: exp.Expr) -> bool:
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
    """The name of the column that the LAG or LEAD itself is."""
    times: frozenset[str]
    beside: frozenset[str]
    by: frozenset[str]
    """Columns that are the time of the row that looks, not of the one that it finds."""


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
        if without_renaming(entry.relation) is block
    ]
    if not around or any(_is_side_of_union(one, block) for one in everywhere):
        return None
    reaches = [_reach_of_column(outer, entry, columns, shift.back) for outer, entry in around]
    if any(far is None for far in reaches) or any(
        isinstance(one, Block) and one is not outer and _reads_entry(one, entry)
        for one in everywhere
        for outer, entry in around
    ):
        return None
    return max(far for far in reaches if far is not None)


def _columns_naming(block: Block, window: exp.Window) -> Iterator[exp.Expr]:
    """The columns of a SELECT that name its own output that is a window."""
    for node in block.expressions():
        if isinstance(node, exp.Column) and block.aliases.get(node) is not None:
            output = block.aliases[node].unalias()
            if output is window:
                yield node


def _is_side_of_union(relation: Block | SetOperation, block: Block) -> bool:
    """Whether a SELECT is a side of a set operation, which renames its columns."""
    if not isinstance(relation, SetOperation):
        return False
    return any(without_renaming(side) is block for side in (relation.left, relation.right))


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
        distance = other.distance(top, truth=truth)
        if distance is None:
            return None
        far = max(far, distance)
    return far


def _passes_on(origin: Origin | None, entry: FromEntry, column: str) -> bool:
    return origin is not None and origin.entry is entry and origin.column == column


def _root_expressions(block: Block) -> Iterator[tuple[exp.Expr, bool]]:
    """The expressions of a SELECT, and for which of them only their truth matters."""
    args = block.node.args
    for key, value in args.items():
        if key in ("from_", "with_", "hint", "laterals", "joins"):
            continue
        for clause in value if isinstance(value, list) else [value]:
            if isinstance(clause, (exp.Where, exp.Having, exp.Qualify)):
                yield clause.this, True
            elif isinstance(clause, exp.Expr):
                yield clause, False
    for join in args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"], True
    for lateral in args.get("laterals") or ():
        yield lateral, False


def _limit_in_where(block: Block, entry: FromEntry, columns: _Columns, back: bool) -> int | None:
    """How far WHERE lets the time of the other row be from that of the own row."""
    for link in links_of(block.node.args.get("where")):
        for turned in () if link.or_null else (link, link.reversed):
            (value, late), (time, early) = floored_value(turned.left), floored_value(turned.right)
            sides = [
                block.origins.get(side) if isinstance(side, exp.Column) else None
                for side in (value, time)
            ]
            if any(side is None or side.entry is not entry for side in sides):
                continue
            left, right = (side.column for side in sides if side is not None)
            far = early - turned.low if back else turned.high + late
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


# LAG of the time finds the nearest row before. Where that row is beyond what is read, LAG is NULL.
# So an expression over `lag(ts)` follows from the rows within some distance when it has the same
# value for a row beyond that distance as for none at all::
#
#     lag(ts) IS NULL OR ts - lag(ts) > INTERVAL 30 MINUTES    true for either
#     ts - lag(ts) <= INTERVAL 30 MINUTES                      false for the one, NULL for the other
#
# Other columns of that row are NULL without it, and may be anything with it; so they matter
# wherever such a comparison does not decide first::
#
#     CASE WHEN ts - lag(ts) <= INTERVAL 30 DAYS THEN lag(url) END      NULL for either
#
# It is evaluated for both, with every other term set to true, false and NULL in turn. Comparisons
# with a constant give the distance beyond which they are decided.

Value: TypeAlias = "bool | tuple[object, ...] | None"
"""The value of an expression: a truth, NULL, or the parts that it is computed from."""

_TRUTHS = (True, False, None)
_MOST_TERMS = 5
"""The most other terms that are set to true, false and NULL: each more triples the cases."""

_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
}
_STRICT: tuple[type[exp.Expr], ...] = (
    exp.Add,
    exp.Sub,
    exp.Cast,
    exp.DateDiff,
    exp.TimestampDiff,
    exp.TsOrDsToDate,
    exp.StrToUnix,
    exp.UnixSeconds,
    exp.UnixMillis,
    exp.Div,
    exp.Abs,
    exp.Neg,
    *_OPPOSITE,
)
"""NULL when one of their parts is."""
_FILTERS = (exp.CountIf, exp.Where)
"""What takes NULL for false."""


@dataclass(slots=True)
class FarValue:
    """
    The time of another row: ``found`` recognizes it, ``time`` the own row's time in ORDER BY.

    ``before``: the other row is an earlier one. ``beside`` recognizes other columns of that row.
    """

    is_far_value: Callable[[exp.Expr], bool]
    time: Callable[[exp.Expr], bool]
    before: bool
    beside: Callable[[exp.Expr], bool]
    decided_beyond: int = 0
    """Beyond this distance all comparisons so far are decided."""
    terms: dict[str, None] = field(default_factory=dict)
    truths: dict[str, bool | None] = field(default_factory=dict)
    is_there: bool = True
    """Whether it is evaluated for a far row, or for none."""

    def distance(self, root: exp.Expr, *, truth: bool = False) -> int | None:
        """
        Beyond which distance it makes no difference to ``root`` whether the row is there.

        None when it always may. ``truth``: only whether it is true matters.
        """
        self.terms.clear()
        self.truths.clear()
        self._both(root, truth=truth)
        terms: list[str] = []
        while len(terms) < len(self.terms) <= _MOST_TERMS:  # a branch may have terms of its own
            terms = list(self.terms)
            for truths in product(_TRUTHS, repeat=len(terms)):
                self.truths = dict(zip(terms, truths, strict=True))
                far, none = self._both(root, truth=truth)
                if far != none:
                    return None
        far, none = self._both(root, truth=truth)
        return self.decided_beyond if far == none and len(terms) == len(self.terms) else None

    def _both(self, root: exp.Expr, *, truth: bool) -> tuple[Value, Value]:
        values = []
        for is_there in (True, False):
            self.is_there = is_there
            value = self._truth(root) if truth else self.value(root)
            values.append(bool(value) if truth else value)
        return values[0], values[1]

    def _involved(self, node: exp.Expr) -> bool:
        return any(self.is_far_value(part) or self.beside(part) for part in node.walk())

    def value(self, node: exp.Expr) -> Value:
        """Its value with a far row, or with none: a constant, or a form equal for equal values."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.value(node.this)
        if self.is_far_value(node):
            return ("far",) if self.is_there else None
        if self.beside(node):
            return ("beside", node.sql("spark")) if self.is_there else None
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Null):
            return None
        if not self._involved(node):
            return ("same", node.sql("spark"))
        if isinstance(node, (exp.And, exp.Or, exp.Not)):
            return self._truth(node)
        return self._call(node)

    def _call(self, node: exp.Expr) -> Value:
        if isinstance(node, (exp.If, exp.Case)):
            return self._chosen(node)
        if isinstance(node, exp.Coalesce):
            return self._first([node.this, *node.expressions])
        null_test = _asked_for_null(node)
        if null_test is not None and self.is_far_value(null_test[0].unnest()):
            return null_test[1] != self.is_there
        if null_test is not None and self.beside(null_test[0].unnest()) and not self.is_there:
            return null_test[1]
        if isinstance(node, exp.Between):
            return self._truth(_range(node))
        if type(node) in _OPPOSITE and self.is_there:
            decided = self._decided(node)
            if decided is not None:
                return decided
        if isinstance(node, _STRICT) and not self.is_there and self._null(node):
            return None
        return self._parts_of(node)

    def _null(self, node: exp.Expr) -> bool:
        """Whether a part of a strict call is NULL."""
        parts = (part for part in node.iter_expressions() if not isinstance(part, exp.DataType))
        return any(self._involved(part) and self.value(part) is None for part in parts)

    def _parts_of(self, node: exp.Expr) -> Value:
        parts: list[object] = [type(node).__name__]
        for key, part in node.args.items():
            for argument in part if isinstance(part, list) else [part]:
                if not isinstance(argument, exp.Expr):
                    parts.append((key, str(argument)))
                elif isinstance(node, _FILTERS) and key == "this":
                    parts.append((key, bool(self._truth(argument))))
                else:
                    parts.append((key, self.value(argument)))
        return tuple(parts)

    def _decided(self, node: exp.Expr) -> bool | None:
        """The value of a comparison for every row beyond some distance."""
        opposite = _OPPOSITE[type(node)]()
        opposite.args.update(node.args)
        for comparison, then in ((node, False), (opposite, True)):
            reach = self._limit(comparison)
            if reach is not None:
                self.decided_beyond = max(self.decided_beyond, reach)
                return then
        return None

    def _limit(self, predicate: exp.Expr) -> int | None:
        """How far the other row can be where a predicate is true."""
        for link in links_of(predicate):
            for near in () if link.or_null else (link, link.reversed):
                (value, late), (time, early) = floored_value(near.left), floored_value(near.right)
                if self.is_far_value(value) and self.time(time):
                    far = early - near.low if self.before else near.high + late
                    if far < UNBOUNDED:
                        return max(0, far)
        return None

    def _truth(self, node: exp.Expr) -> bool | None:
        """True, false or NULL; a term that has nothing to do with the other row is any of them."""
        node = node.unnest()
        if isinstance(node, exp.Not):
            inner = self._truth(node.this)
            return None if inner is None else not inner
        if isinstance(node, (exp.And, exp.Or)):
            sides = self._truth(node.this), self._truth(node.expression)
            ends = isinstance(node, exp.Or)
            if ends in sides:
                return ends
            return None if None in sides else not ends
        value = self.value(node)
        if value is None or isinstance(value, bool):
            return value
        term = repr(value)
        self.terms.setdefault(term)
        return self.truths.get(term)

    def _chosen(self, node: exp.If | exp.Case) -> Value:
        """The first branch with a true condition."""
        if isinstance(node, exp.Case) and node.args.get("this") is not None:
            return self._compared(node)
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        for branch in branches:
            if self._truth(branch.this):
                return self.value(branch.args["true"])
        return self.value(last) if isinstance(last, exp.Expr) else None

    def _compared(self, node: exp.Case) -> Value:
        """A CASE that compares a value with others."""
        values = [node.args["this"]]
        for branch in node.args["ifs"]:
            values += [branch.this, branch.args["true"]]
        values += [node.args["default"]] if node.args.get("default") is not None else []
        return ("case", *(self.value(one) for one in values))

    def _first(self, values: list[exp.Expr]) -> Value:
        """The first that is not NULL."""
        for i, alternative in enumerate(values):
            value = self.value(alternative)
            if value is None:
                continue
            if isinstance(value, bool) or value == ("far",):
                return value
            return ("coalesce", value, *(self.value(later) for later in values[i + 1 :]))
        return None


def _asked_for_null(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """What is asked whether it is NULL, and whether that is true of NULL."""
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return node.this, True
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("isnull", "isnotnull"):
        return node.expressions[0], node.name.lower() == "isnull"
    return None


def _range(node: exp.Between) -> exp.And:
    """BETWEEN as the two comparisons that it is; the parts stay where they are in their tree."""
    sides = []
    for kind, end in ((exp.GTE, "low"), (exp.LTE, "high")):
        side = kind()
        side.args.update({"this": node.this, "expression": node.args[end]})
        sides.append(side)
    both = exp.And()
    both.args.update({"this": sides[0], "expression": sides[1]})
    return both
