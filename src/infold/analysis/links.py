"""
Predicates that say how far two values of one row are apart.

``b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts`` is the link ``-1 day <= b.ts - a.ts <= 0``. Links
come from what has to be true of a row: the conjuncts of WHERE and of ON, and USING. They are read
as they stand: comparisons and BETWEEN, with constant intervals and days on either side, and
differences of two values compared with a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.lengths import added, length, negated, number, of_units
from infold.analysis.shape import Span
from infold.interval import DAY

FAR = 2**61
"""Further apart than any two times: one end of a link that has only the other."""


@dataclass(frozen=True, slots=True)
class Link:
    """``low <= left - right <= high`` in microseconds."""

    left: exp.Expr
    right: exp.Expr
    low: int = -FAR
    high: int = FAR

    @property
    def turned(self) -> Link:
        """The same, seen from the right."""
        return Link(self.right, self.left, -self.high, -self.low)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """What has to be true for a predicate to be true."""
    if isinstance(node, exp.Where):
        node = node.this
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    elif node is not None:
        yield node


def asked_for_truth(node: exp.Expr) -> bool:
    """Whether false and unknown come to the same where a predicate stands."""
    inner, around = node, node.parent
    while isinstance(around, (exp.And, exp.Or, exp.Paren)):
        inner, around = around, around.parent
    if isinstance(around, exp.If):  # a CASE with a value compares with it, and may ask for false
        case = around.parent
        compared = isinstance(case, exp.Case) and case.args.get("this") is not None
        return inner.arg_key == "this" and not compared
    if isinstance(around, exp.Join):
        return inner.arg_key == "on"
    return isinstance(around, (exp.Having, exp.Qualify, exp.Where))


def links(predicate: exp.Expr | None) -> Iterator[Link]:
    """The links that a predicate states; those between the same two values are not yet joined."""
    for node in conjuncts(predicate):
        if isinstance(node, exp.Between):
            yield from _compared(node.this, node.args["low"], at_least=True)
            yield from _compared(node.this, node.args["high"], at_least=False)
        elif isinstance(node, exp.EQ):
            yield from _compared(node.this, node.expression, at_least=True)
            yield from _compared(node.this, node.expression, at_least=False)
        elif isinstance(node, (exp.GTE, exp.GT)):
            strict = int(isinstance(node, exp.GT))
            yield from _compared(node.this, node.expression, at_least=True, strict=strict)
        elif isinstance(node, (exp.LTE, exp.LT)):
            strict = int(isinstance(node, exp.LT))
            yield from _compared(node.this, node.expression, at_least=False, strict=strict)


def needed(predicate: exp.Expr | None) -> Iterator[exp.Expr]:
    """Values that are not NULL where a predicate is true."""
    for node in conjuncts(predicate):
        if isinstance(node, _COMPARISONS):
            for side in (node.this, node.expression):
                yield offset(side)[0]
        elif isinstance(node, exp.Between):
            for side in (node.this, node.args["low"], node.args["high"]):
                yield offset(side)[0]
        elif isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
            said = node.this.unnest()
            if isinstance(said.expression, exp.Null):
                yield offset(said.this)[0]
    for link in links(predicate):
        yield from (link.left, link.right)


_COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def offset(node: exp.Expr) -> tuple[exp.Expr, Span]:
    """A value and the constant that is added to it."""
    if isinstance(node, exp.Paren):
        return offset(node.this)
    moved = moved_by(node)
    if moved is None:
        return node, (0, 0)
    inner, by = offset(moved[0])
    return inner, (by[0] + moved[1][0], by[1] + moved[1][1])


def moved_by(node: exp.Expr) -> tuple[exp.Expr, Span] | None:
    """What a call adds a constant to, and the constant; None when it is no such call."""
    if isinstance(node, (exp.Add, exp.Sub)):
        for value, by in ((node.this, node.expression), (node.expression, node.this)):
            span = _constant(by)
            if span is not None and _constant(value) is None:
                if isinstance(node, exp.Add):
                    return value, span
                return (value, (-span[1], -span[0])) if by is node.expression else None
    if isinstance(node, exp.TsOrDsAdd):
        span = of_units(node.expression, node.args.get("unit"))
        return (_date_of(node.this), span) if span is not None else None
    if isinstance(node, exp.TimestampAdd):
        span = of_units(node.expression, node.args.get("unit"))
        return (node.this, span) if span is not None else None
    return None


def _date_of(node: exp.Expr) -> exp.Expr:
    """The date of a value; the value stays where it is in its own tree."""
    date = exp.TsOrDsToDate()
    date.args["this"] = node
    return date


def _constant(node: exp.Expr) -> Span | None:
    """A constant length: an interval, or a number of days."""
    found = length(node)
    if found is not None:
        return found
    days = number(node)
    return None if days is None or days != int(days) else (int(days) * DAY, int(days) * DAY)


def _compared(
    left: exp.Expr, right: exp.Expr, *, at_least: bool, strict: int = 0
) -> Iterator[Link]:
    """``left >= right`` or ``left <= right``."""
    found = _of_difference(left, right, at_least=at_least, strict=strict)
    if found is None:
        turned = _of_difference(right, left, at_least=not at_least, strict=strict)
        found = turned
    if found is None:
        (a, here), (b, there) = offset(left), offset(right)
        if at_least:
            found = Link(a, b, low=there[0] - here[1] + strict)
        else:
            found = Link(a, b, high=there[1] - here[0] - strict)
    if _names_a_column(found.left) and _names_a_column(found.right):
        yield found


def _of_difference(
    difference: exp.Expr, constant: exp.Expr, *, at_least: bool, strict: int
) -> Link | None:
    """``a - b`` or ``datediff(a, b)`` compared with a constant."""
    while isinstance(difference, exp.Paren):
        difference = difference.this
    if isinstance(difference, exp.TimestampDiff):
        return _of_whole_units(difference, constant, at_least=at_least, strict=strict)
    if isinstance(difference, exp.DateDiff) and not difference.args.get("unit"):
        span, strict = _constant(constant), strict * DAY
    elif isinstance(difference, exp.Sub) and moved_by(difference) is None:
        span = _constant(constant)
    else:
        return None
    if span is None:
        return None
    (a, here), (b, there) = offset(difference.this), offset(difference.expression)
    room = added(span, added(there, negated(here)))
    if room is None:
        return None
    link = Link(a, b)
    if at_least:
        return replace(link, low=room[0] + strict)
    return replace(link, high=room[1] - strict)


def _of_whole_units(
    difference: exp.TimestampDiff, constant: exp.Expr, *, at_least: bool, strict: int
) -> Link | None:
    """``timestampdiff(MINUTE, b, a)``: so many whole minutes lie between; the rest is cut off."""
    unit = of_units(exp.Literal.number(1), difference.args.get("unit"))
    count = number(constant)
    if unit is None or unit[0] != unit[1] or count is None or count != int(count):
        return None
    whole = int(count) + (strict if at_least else -strict)
    room = unit[0] - 1
    low = whole * unit[0] - (room if whole <= 0 else 0)
    high = whole * unit[0] + (room if whole >= 0 else 0)
    link = Link(difference.this, difference.expression)
    return replace(link, low=low) if at_least else replace(link, high=high)


def _names_a_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) or node.find(exp.Column) is not None
