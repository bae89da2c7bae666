"""
How long an interval in SQL is, and how far a time zone is from UTC.

Lengths are spans of microseconds, the least and the greatest: a month has 28 to 31 days, and a
zone with summer time two offsets. Spark's interval syntaxes are those of its reference, "Literals"
(interval literals, multi-unit and single-unit, year-month and day-time) and of ``make_interval``
and ``make_dt_interval``. The session's time zone is UTC, so a day has 24 hours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from infold.analysis.times.shape import Grain, Span
from infold.core.interval import DAY, HOUR, MINUTE, SECOND, WEEK, Granularity

UNITS: dict[str, Span] = {
    "MICROSECOND": (1, 1),
    "MILLISECOND": (1_000, 1_000),
    "SECOND": (SECOND, SECOND),
    "MINUTE": (MINUTE, MINUTE),
    "HOUR": (HOUR, HOUR),
    "DAY": (DAY, DAY),
    "DAYOFYEAR": (DAY, DAY),
    "WEEK": (WEEK, WEEK),
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_PART = re.compile(r"([+-]?\s*\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?\Z")
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")


def interval_length(node: exp.Expr) -> Span | None:
    """The length of an interval expression; None when it is not a constant."""
    if isinstance(node, exp.Paren):
        return interval_length(node.this)
    if isinstance(node, exp.Neg):
        return negate_span(interval_length(node.this))
    if isinstance(node, (exp.Add, exp.Sub)):
        left, right = interval_length(node.this), interval_length(node.expression)
        return add_spans(left, right if isinstance(node, exp.Add) else negate_span(right))
    if isinstance(node, exp.Mul):
        return _multiply_span(node)
    if isinstance(node, exp.Interval):
        return _length_of_literal(node)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.INTERVAL:
        return length_of_text(node.this.name) if isinstance(node.this, exp.Literal) else None
    if isinstance(node, exp.MakeInterval):
        units = {key: number_of(value) for key, value in node.args.items() if value is not None}
        return _sum_of_spans([_length_of(count, unit.upper()) for unit, count in units.items()])
    if isinstance(node, exp.Anonymous) and node.name.lower() == "make_dt_interval":
        counts = [number_of(value) for value in node.expressions]
        return _sum_of_spans(
            [_length_of(count, unit) for count, unit in zip(counts, _FIELDS, strict=False)]
            or [(0, 0)]
        )
    return None


def length_of_units(count: exp.Expr | None, unit: exp.Expr | None) -> Span | None:
    """The length of so many units, as functions such as ``dateadd(DAY, 3, d)`` have them."""
    number = number_of(count) if count is not None else None
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Expr) else "DAY"
    return _length_of(number, name)


def number_of(node: exp.Expr | None) -> float | None:
    """A constant number; None for anything else."""
    if isinstance(node, exp.Paren):
        return number_of(node.this)
    if isinstance(node, exp.Neg):
        negated = number_of(node.this)
        return None if negated is None else -negated
    if isinstance(node, exp.Mul):
        left, right = number_of(node.this), number_of(node.expression)
        return None if left is None or right is None else left * right
    if isinstance(node, exp.Literal) and _NUMBER.match(node.name.strip()):
        return float(node.name)
    return None


def add_spans(a: Span | None, b: Span | None) -> Span | None:
    """The sum of two spans."""
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])


def negate_span(span: Span | None) -> Span | None:
    """A span the other way round."""
    return None if span is None else (-span[1], -span[0])


@cache
def zone_offsets(zone: str) -> Span | None:
    """
    How far a zone's clocks are ahead of UTC, least and most; None for a zone that is not known.

    Looked up on the first and the fifteenth of every month since 1850, which sees every standing
    and every summer time.
    """
    fixed = re.match(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?(\d{2}))?\Z", zone.strip(), re.IGNORECASE)
    if fixed:
        ahead = int(fixed[2]) * HOUR + int(fixed[3] or 0) * MINUTE
        return (ahead, ahead) if fixed[1] == "+" else (-ahead, -ahead)
    if zone.strip().upper() in ("UTC", "GMT", "Z"):
        return 0, 0
    try:
        info = ZoneInfo(zone.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    offsets = {
        datetime(year, month, day, tzinfo=UTC).astimezone(info).utcoffset()
        for year in range(1850, 2101)
        for month in range(1, 13)
        for day in (1, 15)
    }
    seconds = [offset // timedelta(microseconds=1) for offset in offsets if offset is not None]
    return min(seconds), max(seconds)


def _length_of_literal(node: exp.Interval) -> Span | None:
    unit, this = node.args.get("unit"), node.this
    if isinstance(unit, exp.IntervalSpan):
        return _span_of_number(this.name, unit) if isinstance(this, exp.Literal) else None
    if unit is None:
        return length_of_text(this.name) if isinstance(this, exp.Literal) else None
    name = unit.name.upper()
    # A text after a text with units, such as INTERVAL '1 day 2' HOURS, is none of Spark's forms.
    return _length_of(number_of(this), name.removesuffix("S"))


def length_of_text(text: str) -> Span | None:
    """``1 day 2 hours``, signs included; the word ``interval`` before it is allowed."""
    body = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE)
    parts = _PART.findall(body)
    if not parts or _PART.sub("", body).strip():
        return None
    return _sum_of_spans(
        [_length_of(float(n.replace(" ", "")), unit.upper().removesuffix("S")) for n, unit in parts]
    )


def _span_of_number(text: str, unit: exp.IntervalSpan) -> Span | None:
    """``'1 02:03:04' DAY TO SECOND`` and ``'2-3' YEAR TO MONTH``."""
    first, last = unit.this.name.upper(), unit.expression.name.upper()
    negative = text.strip().startswith("-")
    body = text.strip().lstrip("+-")
    if (first, last) == ("YEAR", "MONTH"):
        numbers = body.split("-")
        units = ["YEAR", "MONTH"]
    elif first in _FIELDS and last in _FIELDS:
        numbers = re.split(r"[ :]", body)
        units = list(_FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1])
    else:
        return None
    if len(numbers) != len(units) or not all(_NUMBER.match(part) for part in numbers):
        return None
    span = _sum_of_spans(
        [_length_of(float(n), name) for n, name in zip(numbers, units, strict=True)]
    )
    return negate_span(span) if negative else span


def _length_of(count: float | None, unit: str) -> Span | None:
    if count is None:
        return None
    if unit in MONTHS:
        months = count * MONTHS[unit]
        return _length_of_months(int(months)) if months == int(months) else None
    if unit not in UNITS:
        return None
    exact = round(count * UNITS[unit][0])
    return exact, exact


def _length_of_months(count: int) -> Span:
    """The shortest and the longest that so many months in a row can be."""
    years, months = divmod(abs(count), 12)
    least = years * 365 + (0, 28, 59, 89, 120, 150, 181, 212, 242, 273, 303, 334)[months]
    most = years * 366 + (0, 31, 62, 92, 123, 153, 184, 215, 245, 276, 306, 337)[months]
    # A day that the month has not is moved to its last: 31 January and a month is 28 February.
    span = (max(0, least - 3) * DAY, most * DAY) if count else (0, 0)
    return span if count >= 0 else (-span[1], -span[0])


def _multiply_span(node: exp.Mul) -> Span | None:
    for length, factor in ((node.this, node.expression), (node.expression, node.this)):
        span, times = interval_length(length), number_of(factor)
        if span is not None and times is not None and times == int(times):
            product = span[0] * int(times), span[1] * int(times)
            return product if times >= 0 else (product[1], product[0])
    return None


def _sum_of_spans(spans: list[Span | None]) -> Span | None:
    total: Span | None = (0, 0)
    for span in spans:
        total = add_spans(total, span)
    return total


# `unix_timestamp(ts)` counts seconds, and `floor(unix_timestamp(ts) / 900) * 900` is the start of a
# quarter of an hour as such a number. Times before 1970 are negative; `unix_timestamp`, `div` and
# `%` round these up, towards zero, and `unix_seconds`, a cast and `floor` down.

_MILLI = 1_000
_BY_NAME = {"bigint": SECOND}
_SECONDS = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"
"""How the parser writes the format that ``unix_timestamp`` has by itself."""

TIMES = {"timestamp_seconds": SECOND, "timestamp_millis": _MILLI, "timestamp_micros": 1}
"""Calls that make a time of a number: what the number counts."""


@dataclass(frozen=True, slots=True)
class EpochNumber:
    """
    A number that counts ``unit_length`` microseconds since 1970.

    The time that it counts lies between ``low`` and ``high`` of ``time``, and in the same ``cell``.
    """

    time: exp.Expr
    unit_length: int
    low: int
    high: int
    cell: Grain = None


def epoch_number_of(node: exp.Expr) -> EpochNumber | None:
    """The time that a number counts; None for any other number."""
    if isinstance(node, exp.Paren):
        return epoch_number_of(node.this)
    if isinstance(node, exp.StrToUnix) and _plain_number(node):
        return EpochNumber(node.this, SECOND, 1 - SECOND, SECOND - 1)
    if isinstance(node, exp.UnixSeconds):
        return _whole_number(node.this, SECOND)
    if isinstance(node, exp.UnixMillis):
        return _whole_number(node.this, _MILLI)
    if isinstance(node, exp.UnixMicros):
        return EpochNumber(node.this, 1, 0, 0, Granularity.HOUR)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.BIGINT:
        return epoch_number_of(node.this) or _whole_number(node.this, SECOND)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _BY_NAME and node.expressions:
        return epoch_number_of(node.expressions[0]) or _whole_number(node.expressions[0], SECOND)
    return _moved_number(node) or _floored_number(node)


def is_text_of_seconds(node: exp.Expr) -> bool:
    """Whether it is ``from_unixtime(n)``: a time to the second, as a text."""
    return isinstance(node, exp.UnixToStr) and _plain_number(node)


def _plain_number(node: exp.StrToUnix | exp.UnixToStr) -> bool:
    form = node.args.get("format")
    return form is None or form.name == _SECONDS


def _whole_number(time: exp.Expr, scale: int) -> EpochNumber | None:
    """So many whole units; the rest is cut off."""
    if time.find(exp.Column) is None:
        return None
    return EpochNumber(time, scale, 1 - scale, 0, Granularity.HOUR)


def _moved_number(node: exp.Expr) -> EpochNumber | None:
    """A number of that kind and a constant."""
    if not isinstance(node, (exp.Add, exp.Sub)):
        return None
    inner, by = epoch_number_of(node.this), number_of(node.expression)
    if inner is None or by is None or by != int(by):
        return None
    far = int(by) * inner.unit_length * (1 if isinstance(node, exp.Add) else -1)
    return replace(inner, low=inner.low + far, high=inner.high + far, cell=None)


def _floored_number(node: exp.Expr) -> EpochNumber | None:
    """A number of that kind, rounded to so many units."""
    if isinstance(node, exp.Mul):
        return _multiple_of(node.this, node.expression) or _multiple_of(node.expression, node.this)
    if isinstance(node, exp.Sub):
        rest = node.expression.unnest()
        of = rest.expressions if isinstance(rest, exp.Anonymous) else [rest.this, rest.expression]
        exact = isinstance(rest, exp.Anonymous) and rest.name.lower() == "pmod"
        if (exact or isinstance(rest, exp.Mod)) and len(of) == 2 and of[0] == node.this.unnest():
            return _rounded_number(epoch_number_of(node.this), number_of(of[1]), exact=exact)
    return None


def _multiple_of(part: exp.Expr, times: exp.Expr) -> EpochNumber | None:
    """``floor(n / 900) * 900`` and ``n div 900 * 900``."""
    part, by = part.unnest(), number_of(times)
    if isinstance(part, exp.IntDiv) and number_of(part.expression) == by:
        return _rounded_number(epoch_number_of(part.this), by, exact=False)
    if isinstance(part, exp.Floor) and not part.args.get("decimals"):
        inside = part.this.unnest()
        if isinstance(inside, exp.Div) and number_of(inside.expression) == by:
            number = epoch_number_of(inside.this)
            # A quotient is a double, which is too coarse for microseconds.
            return (
                None
                if number is None or number.unit_length == 1
                else _rounded_number(number, by, exact=True)
            )
    return None


def _rounded_number(
    inner: EpochNumber | None, by: float | None, *, exact: bool
) -> EpochNumber | None:
    if inner is None or by is None or by != int(by) or by < 1:
        return None
    size = int(by) * inner.unit_length
    room = size - inner.unit_length
    if not exact:
        return replace(inner, low=inner.low - room, high=inner.high + room, cell=None)
    cell = None
    if inner.cell is not None and HOUR % size == 0:
        cell = inner.cell
    elif inner.cell is not None and DAY % size == 0:
        cell = Granularity.DAY
    return replace(inner, low=inner.low - room, cell=cell)


_BETWEEN: dict[type[exp.Expr], Span] = {
    exp.Second: (0, 59),
    exp.Minute: (0, 59),
    exp.Hour: (0, 23),
    exp.DayOfWeek: (1, 7),
    exp.Day: (1, 31),
    exp.DayOfMonth: (1, 31),
    exp.Month: (1, 12),
    exp.Quarter: (1, 4),
}


def range_of(node: exp.Expr) -> Span | None:
    """The least and the greatest that a number can be, where it is not NULL."""
    if isinstance(node, exp.Paren):
        return range_of(node.this)
    constant = number_of(node)
    if constant is not None:
        return (int(constant), int(constant)) if constant == int(constant) else None
    if type(node) in _BETWEEN:
        return _BETWEEN[type(node)]
    if isinstance(node, exp.Anonymous) and node.name.lower() == "weekday":
        return 0, 6
    if isinstance(node, exp.Mul):
        return _product_range(range_of(node.this), range_of(node.expression), node)
    if isinstance(node, (exp.Add, exp.Sub)):
        right = range_of(node.expression)
        return add_spans(
            range_of(node.this), right if isinstance(node, exp.Add) else negate_span(right)
        )
    return _remainder_range(node) if isinstance(node, exp.Mod) else None


def _remainder_range(node: exp.Mod) -> Span | None:
    left, by = range_of(node.this), number_of(node.expression)
    if left is None or left[0] < 0 or by is None or by != int(by) or by < 1:
        return None
    return 0, min(left[1], int(by) - 1)


def _product_range(left: Span | None, right: Span | None, node: exp.Mul) -> Span | None:
    for part, by in ((node.this, node.expression), (node.expression, node.this)):
        times, inner = number_of(by), part.unnest()
        if isinstance(inner, exp.Floor) and not inner.args.get("decimals"):
            inner = inner.this.unnest()
            kind: type[exp.Expr] = exp.Div
        else:
            kind = exp.IntDiv
        if times is None or not isinstance(inner, kind) or number_of(inner.expression) != times:
            continue
        dividend = range_of(inner.this)
        if dividend is not None and dividend[0] >= 0 and times == int(times) and times >= 1:
            size = int(times)
            return dividend[0] // size * size, dividend[1] // size * size
    if left is None or right is None:
        return None
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)
