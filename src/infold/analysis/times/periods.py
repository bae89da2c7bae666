"""
Values that name a stretch of the calendar: rows that are alike in them are in the same one.

``date_format(ts, 'yyyy-MM')``, ``year(ts)`` beside ``month(ts)``, ``year(ts) * 100 + month(ts)``.
They are texts and numbers, so nothing is known of them but that; for GROUP BY and PARTITION BY
it is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from infold.analysis.sql.text import UNIT
from infold.analysis.times.durations import number_of

_FORMAT = re.compile(r"%Y([^%\w]*%mstrict([^%\w]*%dstrict([^%\w]*%Hstrict.*)?)?)?", re.DOTALL)
"""How the parser writes year, month, day and hour of ``date_format``, each of fixed length."""

_BY_DEPTH = ("HOUR", "DAY", "MONTH", "YEAR")
_MONTHS = 12

_CALLS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
    exp.Hour: "HOUR",
}
_UNITS = (
    ({"YEAR", "MONTH", "DAY", "HOUR"}, "HOUR"),
    ({"YEAR", "DOY", "HOUR"}, "HOUR"),
    ({"YEAR", "MONTH", "DAY"}, "DAY"),
    ({"YEAR", "DOY"}, "DAY"),
    ({"YEAR", "MONTH"}, "MONTH"),
    ({"YEAR", "QUARTER"}, "QUARTER"),
    ({"YEAR"}, "YEAR"),
)
"""Which parts of a time name which stretch, the shortest first."""


def period_of(node: exp.Expr) -> exp.Expr | None:
    """The start of the stretch that a value names by itself; None for any other value."""
    node = node.unnest()
    if isinstance(node, exp.TimeToStr) and isinstance(node.args["format"], exp.Literal):
        found = _FORMAT.fullmatch(node.args["format"].name)
        inner = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
        return None if found is None else floor_to(inner, _BY_DEPTH[found.groups().count(None)])
    if isinstance(node, exp.Add) and isinstance(node.this.unnest(), exp.Mul):
        product, month = node.this.unnest(), _part_of(node.expression.unnest())
        year, times = _part_of(product.this.unnest()), number_of(product.expression)
        if year is None or month is None or times is None or times < _MONTHS:
            return None
        named = year[0] == "YEAR" and month[0] == "MONTH" and year[1] == month[1]
        return floor_to(year[1], "MONTH") if named else None
    return None


def periods_of(items: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """The starts of the stretches that several values name together."""
    parts: list[tuple[str, exp.Expr]] = []
    for item in items:
        if (start := period_of(item)) is not None:
            yield start
        if (part := _part_of(item.unnest())) is not None:
            parts.append(part)
    for unit, time in parts:
        if unit == "YEAR":
            there = {name for name, of in parts if of == time}
            yield floor_to(time, next(unit for needed, unit in _UNITS if needed <= there))


def _part_of(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Which part of a time a number is, and the time."""
    if type(node) in _CALLS:
        inner = node.this
        return _CALLS[type(node)], inner.this if isinstance(inner, exp.TsOrDsToDate) else inner
    if isinstance(node, exp.Extract) and node.name.upper() in _CALLS.values():
        return node.name.upper(), node.expression
    return None


def floor_to(time: exp.Expr, unit: str) -> exp.Expr:
    """``date_trunc`` of a time, which stays where it is in its own tree."""
    floor = exp.TimestampTrunc(unit=exp.Var(this=unit))
    floor.args["this"] = time
    floor.meta[UNIT] = unit
    return floor
