"""How far a window's RANGE frame looks, as its ORDER BY and its interval bounds say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.lengths import length, number
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
    inner = window.this
    while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        inner = inner.this
    if isinstance(inner, _FRAMELESS):
        return None
    order, spec = _part(window, named, "order"), _part(window, named, "spec")
    if not isinstance(order, exp.Order) or not isinstance(spec, exp.WindowSpec):
        return None
    if str(spec.args.get("kind", "")).upper() != "RANGE" or len(order.expressions) != 1:
        return None
    start = _end(spec.args.get("start"), spec.args.get("start_side"), "PRECEDING")
    last = spec.args.get("end") or "CURRENT ROW"
    end = _end(last, spec.args.get("end_side"), "PRECEDING")
    if start is None or end is None:
        return None
    by = order.expressions[0]
    before, after = start, -end
    if by.args.get("desc"):
        before, after = after, before
    return Reach(by.this, before, after)


def _part(window: exp.Expr, named: Mapping[str, exp.Expr], key: str) -> exp.Expr | None:
    """A clause of a window, or of the named one that it builds on."""
    found = window.args.get(key)
    alias = window.args.get("alias")
    base = named.get(alias.name.lower()) if isinstance(alias, exp.Expr) else None
    if found is None and base is not None and base is not window:
        return _part(base, named, key)
    return found if isinstance(found, exp.Expr) else None


def _end(bound: object, side: object, backwards: str) -> int | None:
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
    return max(span) if str(side).upper() == backwards else -min(span)
