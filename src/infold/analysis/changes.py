"""What calls do to the shape of the one value that they are a function of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from infold.analysis.floors import floor_of
from infold.analysis.lengths import negated, of_units, offsets
from infold.analysis.links import moved_by
from infold.analysis.shape import Shape, Span
from infold.interval import Granularity

Change = tuple[exp.Expr, Callable[[Shape], Shape]]
"""The value, and what becomes of its shape."""


def change_of(node: exp.Expr) -> Change | None:
    """What a call does to the shape of the one value that it is a function of."""
    floor = floor_of(node)
    if floor is not None:
        unit = floor.unit
        if floor.inside and unit is not None:
            return floor.inner, lambda shape: shape.inside(unit)
        return floor.inner, lambda shape: shape.floor(unit)
    moved = moved_by(node)
    if moved is not None:
        return moved[0], lambda shape: shape.moved(moved[1])
    if isinstance(node, exp.AddMonths):
        span = of_units(node.expression, exp.Var(this="MONTH"))
        if span is None:
            return None
        return node.this, lambda shape: shape.floor(Granularity.DAY).moved(span)
    if isinstance(node, exp.LastDay) and not node.args.get("unit"):
        month_of = Granularity.MONTH
        return node.this, lambda shape: replace(shape.inside(month_of), grain=Granularity.DAY)
    return _in_zone(node)


def _in_zone(node: exp.Expr) -> Change | None:
    """A time on the clocks of a zone."""
    ahead: Span | None = None
    inner: exp.Expr | None = None
    if isinstance(node, (exp.AtTimeZone, exp.FromTimeZone)):
        zone = node.args.get("zone")
        if isinstance(zone, exp.Literal):
            ahead = offsets(zone.name)
            ahead = ahead if isinstance(node, exp.AtTimeZone) else negated(ahead)
            inner = node.this
    elif isinstance(node, exp.ConvertTimezone):
        source, target = node.args.get("source_tz"), node.args.get("target_tz")
        back = offsets(source.name) if isinstance(source, exp.Literal) else None
        if source is None:
            back = 0, 0  # the session's own zone
        there = offsets(target.name) if isinstance(target, exp.Literal) else None
        if back is not None and there is not None:
            ahead = there[0] - back[1], there[1] - back[0]
            inner = node.args.get("timestamp")
    if ahead is None or inner is None:
        return None
    span = ahead
    return inner, lambda shape: shape.moved(span)
