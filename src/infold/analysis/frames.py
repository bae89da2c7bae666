"""How far a window looks: by the intervals of a RANGE frame, or a predicate on LAG and LEAD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.lengths import length, number
from infold.analysis.links import FAR, Link, asked_for_truth, links
from infold.interval import DAY

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
"""Functions that look at their whole partition, whatever frame is written."""


@dataclass(frozen=True, slots=True)
class Reach:
    """
    Rows whose ``order`` value is at most ``before`` less, and at most ``after`` more, in
    microseconds; either may be negative.
    """

    order: exp.Expr
    before: int
    after: int


def reach(window: exp.Window, named: Mapping[str, exp.Expr]) -> Reach | None:
    """The reach of a window's frame; None when nothing bounds it."""
    if isinstance(called(window), _FRAMELESS):
        return None
    order, spec = _part(window, named, "order"), _part(window, named, "spec")
    if not isinstance(order, exp.Order) or not isinstance(spec, exp.WindowSpec):
        return None
    if str(spec.args.get("kind", "")).upper() != "RANGE" or len(order.expressions) != 1:
        return None
    start = _end(spec.args.get("start"), spec.args.get("start_side"))
    last = spec.args.get("end") or "CURRENT ROW"
    end = _end(last, spec.args.get("end_side"), last=True)
    if start is None or end is None:
        return None
    by = order.expressions[0]
    before, after = start, -end
    if by.args.get("desc"):
        before, after = after, before
    return Reach(by.this, before, after)


def called(window: exp.Window) -> exp.Expr:
    """The function that a window belongs to, without FILTER and what it does with NULLs."""
    inner: exp.Expr = window.this
    while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    return inner


def base_of(window: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """The window of the WINDOW clause that a window builds on, if it does."""
    alias = window.args.get("alias")
    base = named.get(alias.name.lower()) if isinstance(alias, exp.Expr) else None
    return base if base is not window else None


def _part(window: exp.Expr, named: Mapping[str, exp.Expr], key: str) -> exp.Expr | None:
    """A clause of a window, or of the named one that it builds on."""
    found = window.args.get(key)
    base = base_of(window, named)
    if found is None and base is not None:
        return _part(base, named, key)
    return found if isinstance(found, exp.Expr) else None


def _end(bound: object, side: object, *, last: bool = False) -> int | None:
    """How far one end of a frame lies before the current row; None for an unbounded one."""
    if isinstance(bound, str):
        return 0 if bound.upper() == "CURRENT ROW" else None
    if not isinstance(bound, exp.Expr):
        return None
    span = length(bound)
    if span is None:
        days = number(bound)  # a frame over dates counts days
        span = None if days is None else (int(days) * DAY, int(days) * DAY)
    if span is None:
        return None
    span = span if str(side).upper() == "PRECEDING" else (-span[1], -span[0])
    return min(span) if last else max(span)


def guarded(window: exp.Window, named: Mapping[str, exp.Expr]) -> Reach | None:
    """
    The reach of LAG or LEAD over the ordering column that is only asked whether it is near.

    ``CASE WHEN ts - lag(ts) OVER (… ORDER BY ts) <= INTERVAL 30 MINUTES THEN … END`` is as false
    for a row that is further away as it is unknown where that row was not read. So whatever lies
    beyond the interval makes no difference, as long as nothing is said of the opposite.
    """
    predicate = _comparison(window)
    if predicate is None or not asked_for_truth(predicate):
        return None
    order = _ordered_by(window, named)
    if order is None or not _plain_shift(window, order.this):
        return None
    for link in links(predicate):
        for one in (link, link.turned):
            if one.left is window and one.right == order.this:
                return _near(window, order, one)
    return None


def near_outside(
    window: exp.Window, named: Mapping[str, exp.Expr], distance: tuple[int, int]
) -> Reach | None:
    """The reach of a LAG or LEAD of which a query around it keeps what is within ``distance``."""
    order = _ordered_by(window, named)
    if order is None or not _plain_shift(window, order.this):
        return None
    return _near(window, order, Link(window, order.this, *distance))


def ordering(window: exp.Window, named: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """What a window is ordered by first."""
    order = _ordered_by(window, named)
    return order.this if order is not None else None


def _near(window: exp.Window, order: exp.Ordered, link: Link) -> Reach | None:
    """The side on which the other row lies, and how far the link lets it be."""
    back = isinstance(window.this, exp.Lag) != bool(order.args.get("desc"))
    far = -link.low if back else link.high
    if far >= FAR:
        return None
    far = max(0, far)
    return Reach(order.this, far if back else 0, 0 if back else far)


def _ordered_by(window: exp.Window, named: Mapping[str, exp.Expr]) -> exp.Ordered | None:
    """What a window is ordered by first: what follows only says which of tied rows comes first."""
    order = _part(window, named, "order")
    first = order.expressions[0] if isinstance(order, exp.Order) and order.expressions else None
    return first if isinstance(first, exp.Ordered) else None


def _plain_shift(window: exp.Window, order: exp.Expr) -> bool:
    """Whether it is LAG or LEAD of the ordering column itself, NULL where there is no such row."""
    call = window.this
    return (
        isinstance(call, (exp.Lag, exp.Lead))
        and call.args.get("default") is None
        and call.this == order
        and (call.args.get("offset") is None or (number(call.args["offset"]) or 0) > 0)
    )


_ARITHMETIC = (exp.Paren, exp.Sub, exp.Add, exp.DateDiff, exp.TimestampDiff, exp.TsOrDsToDate)
_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def _comparison(window: exp.Window) -> exp.Expr | None:
    node = window.parent
    while isinstance(node, _ARITHMETIC):
        node = node.parent
    return node if isinstance(node, _COMPARISONS) else None
