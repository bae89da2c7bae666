"""Calls that floor a time to a unit of the calendar: casts to a date, date_trunc, trunc."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.sql.text import UNIT
from infold.analysis.times.durations import is_text_of_seconds, length_of_text, number_of
from infold.analysis.times.shape import Grain, Shape, cell_lengths
from infold.core.interval import DAY, HOUR, Granularity

INSIDE = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE"})
"""The units of date_trunc that are finer than any cell."""

TRUNC = {
    "WEEK": Granularity.WEEK,
    "MONTH": Granularity.MONTH,
    "MON": Granularity.MONTH,
    "MM": Granularity.MONTH,
    "QUARTER": Granularity.QUARTER,
    "YEAR": Granularity.YEAR,
    "YYYY": Granularity.YEAR,
    "YY": Granularity.YEAR,
}
"""The units that Spark's trunc knows, to the letter; with any other it gives NULL."""

DATE_TRUNC = {
    "HOUR": Granularity.HOUR,
    "DAY": Granularity.DAY,
    "DD": Granularity.DAY,
    **TRUNC,
}
"""The units of date_trunc that are floors to a cell; with others than these it gives NULL, too."""

_TIMESTAMPS = frozenset(
    {
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ,
        exp.DType.DATETIME,
    }
)
_DATES = frozenset({exp.DType.DATE, exp.DType.DATE32})


@dataclass(frozen=True, slots=True)
class TimeFloor:
    """
    A node that floors ``inner`` to a unit; None leaves it as it is.

    ``inside``: to something finer, so that it only stays inside the unit.
    """

    inner: exp.Expr
    unit: Grain
    inside: bool = False

    def changes_nothing(self, shapes: Iterable[Shape]) -> bool:
        """Whether it leaves each value as it is that has these shapes."""
        if self.unit is None:
            return True
        grains = [shape.grain for shape in shapes]
        return bool(grains) and all(
            grain is not None and grain.contains(self.unit) for grain in grains
        )


def floor_of(node: exp.Expr) -> TimeFloor | None:
    """The floor that a call is: a cast to a date or a timestamp, date_trunc, trunc, to_date."""
    if isinstance(node, exp.Cast):  # TRY_CAST too
        if node.to.this in _DATES:
            return TimeFloor(node.this, Granularity.DAY)
        return TimeFloor(node.this, None) if node.to.this in _TIMESTAMPS else None
    if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        return TimeFloor(node.this, Granularity.DAY)
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
        # As it was written: in the tree H has become HOUR, and a column is like a text.
        name = str(node.meta.get(UNIT, "")).upper()
        if isinstance(node, exp.DateTrunc):
            return TimeFloor(node.this, TRUNC[name]) if name in TRUNC else None
        if name in INSIDE:
            return TimeFloor(node.this, Granularity.HOUR, inside=True)
        return TimeFloor(node.this, DATE_TRUNC[name]) if name in DATE_TRUNC else None
    return None


def is_time_cast(node: exp.Expr) -> bool:
    """Whether it is a cast to a timestamp."""
    return isinstance(node, exp.Cast) and node.to.this in _TIMESTAMPS


def is_date(node: exp.Expr) -> bool:
    """Whether it says itself that it is a date."""
    if isinstance(node, exp.Cast):
        return node.to.this in _DATES
    if isinstance(node, exp.TsOrDsAdd):
        return str(node.args.get("unit", "DAY")).upper() == "DAY"
    return isinstance(node, (exp.TsOrDsToDate, exp.DateTrunc, exp.NextDay, exp.LastDay))


def floored_value(node: exp.Expr) -> tuple[exp.Expr, int]:
    """The value that floors are of, and how much later than its floor it can be."""
    floor, room = floor_of(node), 0
    while floor is not None:
        room += 0 if floor.unit is None else cell_lengths(floor.unit)[1] - 1
        node = floor.inner.unnest()
        floor = floor_of(node)
    return node, room


# `window(ts, size, step, offset)` puts a row into every range `[s, s + size)` that contains its
# time, where `s` is `offset` and any number of steps after 1970-01-01, in UTC. So `s` is between
# `ts - size` (exclusive) and `ts`, and `s + size` is the end. Without a step (or with one as long
# as the range) there is one such `s`: a floor. If a size that divides a day or an hour starts with
# it, `s` is in the same day or hour as `ts`. With shorter steps a row is in several buckets. Rows
# without a time are in none.

_FEWEST, _MOST = 2, 4
"""How many arguments ``window`` takes."""

FIELDS = ("start", "end")
"""What a bucket is made of."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Stretches of ``size`` that start every ``step``; all in microseconds."""

    time: exp.Expr
    size: int
    step: int
    offset: int

    def started(self, shape: Shape) -> Shape:
        """The shape of a start, by that of the time."""
        aligned = self.step == self.size and self.offset % self.size == 0
        for unit, length in ((Granularity.HOUR, HOUR), (Granularity.DAY, DAY)):
            if aligned and self.size == length:
                return shape.floor(unit)
            if aligned and length % self.size == 0:
                return shape.in_same_cell(unit)
        first_start = shape.moved_by((1 - self.size, 0))
        for unit, length in ((Granularity.DAY, DAY), (Granularity.HOUR, HOUR)):
            if self.step % length == 0 and self.offset % length == 0:
                return replace(first_start, grain=unit)
        return first_start

    def ended(self, shape: Shape) -> Shape:
        """The shape of an end: a size after its start."""
        return self.started(shape).moved_by((self.size, self.size))


def is_bucket(node: exp.Expr) -> bool:
    """Whether a node is a call of ``window``."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def bucket_of(node: exp.Expr) -> Buckets | None:
    """The buckets that a call of ``window`` puts rows into; None where they are not known."""
    if not is_bucket(node) or not _FEWEST <= len(node.expressions) <= _MOST:
        return None
    time, *texts = node.expressions
    lengths = [_exact_length(text) for text in texts]
    size = lengths[0]
    step = lengths[1] if len(lengths) > 1 else size
    offset = lengths[2] if len(lengths) > 2 else 0
    if size is None or step is None or offset is None or not 0 < step <= size:
        return None
    return Buckets(time, size, step, offset)


def _exact_length(text: exp.Expr) -> int | None:
    """The length that a text says, ``15 minutes``; None for months, which are no one length."""
    if not isinstance(text, exp.Literal) or not text.is_string:
        return None
    span = length_of_text(text.name)
    return span[0] if span is not None and span[0] == span[1] else None


def makes_several_buckets(node: exp.Expr) -> bool:
    """Whether a call of ``window`` may make several rows of one: its steps are shorter."""
    if not is_bucket(node):
        return False
    buckets = bucket_of(node)
    return buckets is None or buckets.step != buckets.size


def change_of_bucket(node: exp.Expr) -> tuple[exp.Expr, Callable[[Shape], Shape]] | None:
    """What ``window(ts, …).start`` and ``.end`` do to the shape of the time."""
    if not isinstance(node, exp.Dot) or node.expression.name.lower() not in FIELDS:
        return None
    buckets = bucket_of(node.this.unnest())
    if buckets is None:
        return None
    starts = node.expression.name.lower() == "start"
    return buckets.time, buckets.started if starts else buckets.ended


def field_of(value: exp.Expr, name: str) -> exp.Dot:
    """A field of a value, which stays where it is in its own tree."""
    dot = exp.Dot(expression=exp.Identifier(this=name))
    dot.args["this"] = value
    return dot


# `date_format(ts, 'yyyy-MM')`, `year(ts)` beside `month(ts)`, `year(ts) * 100 + month(ts)`. They
# are texts and numbers, so nothing is known of them but that; for GROUP BY and PARTITION BY it is
# enough.

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
    """The start of the stretch, or the second, that a value names by itself; None for others."""
    node = node.unnest()
    if is_text_of_seconds(node):
        instant = exp.Anonymous(this="timestamp_seconds")
        instant.args["expressions"] = [node.this]  # which stays where it is in its own tree
        return instant
    if isinstance(node, exp.TimeToStr) and isinstance(node.args["format"], exp.Literal):
        form = _FORMAT.fullmatch(node.args["format"].name)
        inner = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
        return None if form is None else floor_to(inner, _BY_DEPTH[form.groups().count(None)])
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
            names = {name for name, source in parts if source == time}
            yield floor_to(time, next(unit for needed, unit in _UNITS if needed <= names))


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
