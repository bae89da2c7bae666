"""
Predicates that state how far two values of one row are apart.

``b.ts BETWEEN a.ts - INTERVAL 1 DAY AND a.ts`` is the link ``-1 day <= b.ts - a.ts <= 0``. Links
come from what must be true of a row: the conjuncts of WHERE and of ON, and USING. These forms are
understood: comparisons and BETWEEN, with constant intervals and days on either side, and
differences of two values compared with a constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.times.durations import (
    EpochNumber,
    add_spans,
    epoch_number_of,
    interval_length,
    length_of_units,
    negate_span,
    number_of,
)
from infold.analysis.times.shape import Span
from infold.core.interval import DAY

UNBOUNDED = 2**61
"""Further apart than any two times: one end of a link that has only the other."""


@dataclass(frozen=True, slots=True)
class Link:
    """``low <= left - right <= high`` in microseconds."""

    left: exp.Expr
    right: exp.Expr
    low: int = -UNBOUNDED
    high: int = UNBOUNDED
    or_null: bool = False
    """Whether it also lets two NULLs pass."""

    @property
    def reversed(self) -> Link:
        """The same, seen from the right."""
        return Link(self.right, self.left, -self.high, -self.low, self.or_null)


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


def is_asked_for_truth(node: exp.Expr) -> bool:
    """Whether false and unknown mean the same at the place of a predicate."""
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


def links_of(predicate: exp.Expr | None) -> Iterator[Link]:
    """The links that a predicate states; those between the same two values are not yet joined."""
    for node in conjuncts(predicate):
        if isinstance(node, exp.Between):
            yield from _links_of_comparison(node.this, node.args["low"], at_least=True)
            yield from _links_of_comparison(node.this, node.args["high"], at_least=False)
        elif isinstance(node, (exp.EQ, exp.NullSafeEQ)):
            for at_least in (True, False):
                for link in _links_of_comparison(node.this, node.expression, at_least=at_least):
                    yield replace(link, or_null=isinstance(node, exp.NullSafeEQ))
        elif isinstance(node, exp.Or):
            yield from _links_of_or(node)
        elif isinstance(node, (exp.GTE, exp.GT)):
            strict = int(isinstance(node, exp.GT))
            yield from _links_of_comparison(
                node.this, node.expression, at_least=True, strict=strict
            )
        elif isinstance(node, (exp.LTE, exp.LT)):
            strict = int(isinstance(node, exp.LT))
            yield from _links_of_comparison(
                node.this, node.expression, at_least=False, strict=strict
            )


def _links_of_or(node: exp.Or) -> Iterator[Link]:
    """What both sides state of the same two values, as far as either lets them be."""
    sides = [_merged_links(links_of(side)) for side in (node.this, node.expression)]
    for link in sides[0]:
        for other in sides[1]:
            for turned in (other, other.reversed):
                if turned.left == link.left and turned.right == link.right:
                    low, high = min(link.low, turned.low), max(link.high, turned.high)
                    yield Link(link.left, link.right, low, high, link.or_null or turned.or_null)


def _merged_links(links: Iterable[Link]) -> list[Link]:
    """Links, one for each pair of values in the same order."""
    merged: list[Link] = []
    for link in links:
        at = next(
            (
                i
                for i, known in enumerate(merged)
                if (known.left, known.right, known.or_null) == (link.left, link.right, link.or_null)
            ),
            None,
        )
        if at is None:
            merged.append(link)
        else:
            low, high = max(merged[at].low, link.low), min(merged[at].high, link.high)
            merged[at] = replace(link, low=low, high=high)
    return merged


def values_needed(predicate: exp.Expr | None) -> Iterator[exp.Expr]:
    """Values that are not NULL where a predicate is true."""
    for node in conjuncts(predicate):
        if isinstance(node, _COMPARISONS):
            for side in (node.this, node.expression):
                yield value_and_offset(side)[0]
        elif isinstance(node, exp.Between):
            for side in (node.this, node.args["low"], node.args["high"]):
                yield value_and_offset(side)[0]
        elif isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
            condition = node.this.unnest()
            if isinstance(condition.expression, exp.Null):
                yield value_and_offset(condition.this)[0]
    for link in links_of(predicate):
        if not link.or_null:
            yield from (link.left, link.right)


_COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def value_and_offset(node: exp.Expr) -> tuple[exp.Expr, Span]:
    """A value and the constant that is added to it."""
    if isinstance(node, exp.Paren):
        return value_and_offset(node.this)
    moved = moved_by(node)
    if moved is None:
        return node, (0, 0)
    inner, by = value_and_offset(moved[0])
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
        span = length_of_units(node.expression, node.args.get("unit"))
        return (_date_of(node.this), span) if span is not None else None
    if isinstance(node, exp.TimestampAdd):
        span = length_of_units(node.expression, node.args.get("unit"))
        return (node.this, span) if span is not None else None
    return None


def _date_of(node: exp.Expr) -> exp.Expr:
    """The date of a value; the value stays where it is in its own tree."""
    date = exp.TsOrDsToDate()
    date.args["this"] = node
    return date


def _constant(node: exp.Expr) -> Span | None:
    """A constant length: an interval, or a number of days."""
    length = interval_length(node)
    if length is not None:
        return length
    days = number_of(node)
    return None if days is None or days != int(days) else (int(days) * DAY, int(days) * DAY)


def _links_of_comparison(
    left: exp.Expr, right: exp.Expr, *, at_least: bool, strict: int = 0
) -> Iterator[Link]:
    """``left >= right`` or ``left <= right``."""
    for absolute, constant, side in ((left, right, at_least), (right, left, not at_least)):
        inner = absolute.unnest()
        if isinstance(inner, exp.Abs) and not side and _constant_limit(constant) is not None:
            minus = exp.Neg()
            minus.args["this"] = constant
            yield from _links_of_comparison(inner.this, constant, at_least=False, strict=strict)
            yield from _links_of_comparison(inner.this, minus, at_least=True, strict=strict)
            return
    link = _of_numbers(left, right, at_least=at_least, strict=strict)
    if link is None:
        link = _link_of_difference(left, right, at_least=at_least, strict=strict)
    if link is None:
        turned = _link_of_difference(right, left, at_least=not at_least, strict=strict)
        link = turned
    if link is None:
        (a, left_offset), (b, right_offset) = value_and_offset(left), value_and_offset(right)
        if at_least:
            link = Link(a, b, low=right_offset[0] - left_offset[1] + strict)
        else:
            link = Link(a, b, high=right_offset[1] - left_offset[0] - strict)
    if _names_a_column(link.left) and _names_a_column(link.right):
        yield link


def _constant_limit(node: exp.Expr) -> Span | float | None:
    """A constant that a distance is compared with."""
    return _constant(node) or number_of(node)


def _of_numbers(left: exp.Expr, right: exp.Expr, *, at_least: bool, strict: int) -> Link | None:
    """``unix_timestamp(a) >= unix_timestamp(b) + 60``: numbers that count the same unit."""
    one, other = epoch_number_of(left), epoch_number_of(right)
    if one is None or other is None or one.unit_length != other.unit_length:
        return None
    return _link_of_counts(one, other, 0, at_least=at_least, strict=strict)


def _link_of_counts(
    left: EpochNumber, right: EpochNumber, more: int, *, at_least: bool, strict: int
) -> Link:
    """So many units of the one number are more than of the other."""
    link = Link(left.time, right.time)
    if at_least:
        return replace(link, low=(more + strict) * left.unit_length + right.low - left.high)
    return replace(link, high=(more - strict) * left.unit_length + right.high - left.low)


def _link_of_difference(
    difference: exp.Expr, constant: exp.Expr, *, at_least: bool, strict: int
) -> Link | None:
    """``a - b`` or ``datediff(a, b)`` compared with a constant."""
    while isinstance(difference, exp.Paren):
        difference = difference.this
    if isinstance(difference, exp.Div):
        return _link_of_quotient(difference, constant, at_least=at_least)
    if isinstance(difference, exp.Sub) and epoch_number_of(difference.this) is not None:
        return _link_of_counted(difference, constant, at_least=at_least, strict=strict)
    if isinstance(difference, (exp.TimestampDiff, exp.DateDiff)) and difference.args.get("unit"):
        return _link_of_whole_units(difference, constant, at_least=at_least, strict=strict)
    if isinstance(difference, exp.DateDiff):
        span, strict = _constant(constant), strict * DAY
    elif isinstance(difference, exp.Sub) and moved_by(difference) is None:
        span = _constant(constant)
    else:
        return None
    if span is None:
        return None
    (a, left_offset), (b, right_offset) = (
        value_and_offset(difference.this),
        value_and_offset(difference.expression),
    )
    room = add_spans(span, add_spans(right_offset, negate_span(left_offset)))
    if room is None:
        return None
    link = Link(a, b)
    if at_least:
        return replace(link, low=room[0] + strict)
    return replace(link, high=room[1] - strict)


def _link_of_counted(
    difference: exp.Sub, constant: exp.Expr, *, at_least: bool, strict: int
) -> Link | None:
    """``unix_timestamp(a) - unix_timestamp(b)`` compared with a number."""
    one, other, more = (
        epoch_number_of(difference.this),
        epoch_number_of(difference.expression),
        number_of(constant),
    )
    if one is None or other is None or one.unit_length != other.unit_length:
        return None
    if more is None or more != int(more):
        return None
    return _link_of_counts(one, other, int(more), at_least=at_least, strict=strict)


def _link_of_quotient(difference: exp.Div, constant: exp.Expr, *, at_least: bool) -> Link | None:
    """``(unix_timestamp(a) - unix_timestamp(b)) / 60 <= 30``: so many times as much."""
    by, limit = number_of(difference.expression), number_of(constant)
    inner = difference.this.unnest()
    if by is None or limit is None or by <= 0 or not isinstance(inner, exp.Sub):
        return None
    if epoch_number_of(inner.this) is None or epoch_number_of(inner.expression) is None:
        return None
    whole = math.floor(by * limit) if at_least else math.ceil(by * limit)
    more = exp.Literal.number(whole) if whole >= 0 else exp.Neg(this=exp.Literal.number(-whole))
    return _link_of_difference(inner, more, at_least=at_least, strict=0)


def _link_of_whole_units(
    difference: exp.Binary | exp.Func, constant: exp.Expr, *, at_least: bool, strict: int
) -> Link | None:
    """
    ``timestampdiff(MINUTE, b, a)``, or ``datediff`` with a unit: so many whole minutes lie between.

    The rest is cut off, so a count that is at most 2 is of less than 3 minutes.
    """
    count = number_of(constant)
    if count is None or count != int(count):
        return None
    units = int(count) + (strict if at_least else -strict)
    cut = units <= 0 if at_least else units >= 0
    far = units + (0 if not cut else -1 if at_least else 1)
    span = length_of_units(exp.Literal.number(far), difference.args["unit"])
    if span is None:
        return None
    sides = (difference.this, difference.expression)
    if isinstance(difference, exp.DateDiff):  # the parser says of both that they are dates
        sides = (sides[0].this, sides[1].this)
    if at_least:
        return Link(*sides, low=span[0] + int(cut))
    return Link(*sides, high=span[1] - int(cut))


def _names_a_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) or node.find(exp.Column) is not None


_FRAMELESS = (
    exp.CumeDist,
    exp.DenseRank,
    exp.Lag,
    exp.Lead,
    exp.Ntile,
    exp.PercentRank,
    exp.Rank,
    exp.RowNumber,
)
"""Functions that look at their whole partition and ignore a frame."""


@dataclass(frozen=True, slots=True)
class Reach:
    """
    A window's rows: those with an ``order`` value at most ``before`` less and ``after`` more.

    In microseconds; either may be negative.
    """

    order: exp.Expr
    before: int
    after: int


def frame_reach(window: exp.Window, named: Mapping[str, exp.Expr]) -> Reach | None:
    """The reach of a window's frame; None when nothing bounds it."""
    if isinstance(function_of(window), _FRAMELESS):
        return None
    order, spec = window_clause(window, named, "order"), window_clause(window, named, "spec")
    if not isinstance(order, exp.Order) or not isinstance(spec, exp.WindowSpec):
        return None
    if str(spec.args.get("kind", "")).upper() != "RANGE" or len(order.expressions) != 1:
        return None
    by = order.expressions[0]
    counted = epoch_number_of(by.this)
    unit = counted.unit_length if counted is not None else None
    start = _frame_end(spec.args.get("start"), spec.args.get("start_side"), unit)
    last = spec.args.get("end") or "CURRENT ROW"
    end = _frame_end(last, spec.args.get("end_side"), unit, last=True)
    if start is None or end is None:
        return None
    before, after = start, -end
    if by.args.get("desc"):
        before, after = after, before
    if counted is not None:  # what is cut off of one time is not cut off of the other
        room = counted.high - counted.low
        return Reach(counted.time, before + room, after + room)
    return Reach(by.this, before, after)


def counts_rows(window: exp.Window, named: Mapping[str, exp.Expr]) -> bool:
    """
    Whether a window counts rows, by a frame or by what its function does, and no time.

    Where rows have gaps, no length of time holds so many of them.
    """
    if isinstance(function_of(window), _FRAMELESS):
        return True
    spec = window_clause(window, named, "spec")
    kind = spec.args.get("kind") if isinstance(spec, exp.WindowSpec) else None
    return str(kind or "").upper() in ("ROWS", "GROUPS")


def function_of(window: exp.Window) -> exp.Expr:
    """The function that a window belongs to, without FILTER and what it does with NULLs."""
    inner: exp.Expr = window.this
    while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    return inner


def base_window(window: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """The window of the WINDOW clause that a window builds on, if it does."""
    alias = window.args.get("alias")
    base = named.get(alias.name.lower()) if isinstance(alias, exp.Expr) else None
    return base if base is not window else None


def window_clause(window: exp.Expr, named: Mapping[str, exp.Expr], key: str) -> exp.Expr | None:
    """A clause of a window, or of the named one that it builds on."""
    clause = window.args.get(key)
    base = base_window(window, named)
    if clause is None and base is not None:
        return window_clause(base, named, key)
    return clause if isinstance(clause, exp.Expr) else None


def _frame_end(
    bound: object, side: object, unit: int | None = None, *, last: bool = False
) -> int | None:
    """
    How far one end of a frame lies before the current row; None for an unbounded one.

    ``unit`` is what numbers count that the frame is over; those over dates count days.
    """
    if isinstance(bound, str):
        return 0 if bound.upper() == "CURRENT ROW" else None
    if not isinstance(bound, exp.Expr):
        return None
    span = interval_length(bound) if unit is None else None
    if span is None:
        count, size = number_of(bound), unit or DAY
        span = None if count is None else (int(count) * size, int(count) * size)
    if span is None:
        return None
    span = span if str(side).upper() == "PRECEDING" else (-span[1], -span[0])
    return min(span) if last else max(span)
