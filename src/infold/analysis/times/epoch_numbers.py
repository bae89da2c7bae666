"""
Numbers that count time units since 1970, and numbers with a known range.

``unix_timestamp(ts)`` counts seconds, and ``floor(unix_timestamp(ts) / 900) * 900`` is the start of
a quarter of an hour as such a number. Times before 1970 are negative; ``unix_timestamp``, ``div``
and ``%`` round these up, towards zero, and ``unix_seconds``, a cast and ``floor`` down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from infold.analysis.times.durations import add_spans, negate_span, number_of
from infold.analysis.times.shape import Grain, Span
from infold.core.interval import DAY, HOUR, SECOND, Granularity

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


def _plain_number(node: exp.StrToUnix) -> bool:
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
            found = epoch_number_of(inside.this)
            # A quotient is a double, which is too coarse for microseconds.
            return (
                None
                if found is None or found.unit_length == 1
                else _rounded_number(found, by, exact=True)
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
        whole = range_of(inner.this)
        if whole is not None and whole[0] >= 0 and times == int(times) and times >= 1:
            size = int(times)
            return whole[0] // size * size, whole[1] // size * size
    if left is None or right is None:
        return None
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)
