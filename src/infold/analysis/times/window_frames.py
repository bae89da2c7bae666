"""How far a window looks by the intervals, or numbers, of a RANGE frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.times.durations import epoch_number_of, interval_length, number_of
from infold.core.interval import DAY

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
