"""
How far LAG or LEAD of a time has to read, so that rows beyond that make no difference.

LAG of the time finds the nearest row before. Where that row is beyond what is read, LAG is NULL. So
an expression over ``lag(ts)`` follows from the rows within some distance when it has the same value
for a row beyond that distance as for none at all::

    lag(ts) IS NULL OR ts - lag(ts) > INTERVAL 30 MINUTES    true for either
    ts - lag(ts) <= INTERVAL 30 MINUTES                      false for the one, NULL for the other

Other columns of that row are NULL without it, and may be anything with it; so they matter wherever
such a comparison does not decide first::

    CASE WHEN ts - lag(ts) <= INTERVAL 30 DAYS THEN lag(url) END      NULL for either

It is evaluated for both, with every other term set to true, false and NULL in turn. Comparisons
with a constant give the distance beyond which they are decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.times.distances import UNBOUNDED, links_of

Value: TypeAlias = "bool | tuple[object, ...] | None"
"""The value of an expression: a truth, NULL, or the parts that it is computed from."""

_TRUTHS = (True, False, None)
_MOST = 5
"""The most other terms that are set to true, false and NULL in turn."""

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

    found: Callable[[exp.Expr], bool]
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
        while len(terms) < len(self.terms) <= _MOST:  # a branch may have terms of its own
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
        for there in (True, False):
            self.is_there = there
            value = self._truth(root) if truth else self.value(root)
            values.append(bool(value) if truth else value)
        return values[0], values[1]

    def _involved(self, node: exp.Expr) -> bool:
        return any(self.found(part) or self.beside(part) for part in node.walk())

    def value(self, node: exp.Expr) -> Value:
        """The value of an expression."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.value(node.this)
        if self.found(node):
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
        asked = _asked_for_null(node)
        if asked is not None and self.found(asked[0].unnest()):
            return asked[1] != self.is_there
        if asked is not None and self.beside(asked[0].unnest()) and not self.is_there:
            return asked[1]
        if isinstance(node, exp.Between):
            return self._truth(_range(node))
        if type(node) in _OPPOSITE and self.is_there:
            decided = self._decided(node)
            if decided is not None:
                return decided
        if isinstance(node, _STRICT) and not self.is_there and self._null(node):
            return None
        return self._made_of(node)

    def _null(self, node: exp.Expr) -> bool:
        """Whether a part of a strict call is NULL."""
        parts = (part for part in node.iter_expressions() if not isinstance(part, exp.DataType))
        return any(self._involved(part) and self.value(part) is None for part in parts)

    def _made_of(self, node: exp.Expr) -> Value:
        found: list[object] = [type(node).__name__]
        for key, part in node.args.items():
            for one in part if isinstance(part, list) else [part]:
                if not isinstance(one, exp.Expr):
                    found.append((key, str(one)))
                elif isinstance(node, _FILTERS) and key == "this":
                    found.append((key, bool(self._truth(one))))
                else:
                    found.append((key, self.value(one)))
        return tuple(found)

    def _decided(self, node: exp.Expr) -> bool | None:
        """The value of a comparison for every row beyond some distance."""
        opposite = _OPPOSITE[type(node)]()
        opposite.args.update(node.args)
        for one, then in ((node, False), (opposite, True)):
            reach = self._limit(one)
            if reach is not None:
                self.decided_beyond = max(self.decided_beyond, reach)
                return then
        return None

    def _limit(self, predicate: exp.Expr) -> int | None:
        """How far the other row can be where a predicate is true."""
        for link in links_of(predicate):
            for one in () if link.or_null else (link, link.reversed):
                if self.found(one.left) and self.time(one.right):
                    far = -one.low if self.before else one.high
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
        for i, one in enumerate(values):
            value = self.value(one)
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
