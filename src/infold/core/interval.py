"""
Half-open event time and its algebra.

An instant is a whole number of microseconds since 1970-01-01T00:00:00 UTC, as Spark and Iceberg
store timestamps. An :class:`Interval` is ``[start, end)``. :class:`Ranges` is a set of instants, as
sorted, disjoint, non-touching intervals. So five years of five-minute cells are one range and never
half a million ticks.

Rules of this file: nothing here reads a clock, a time zone or a setting; calendar arithmetic is
exact and in UTC; every function is total over the supported time ``[MIN, MAX)``.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MIN = -(2**62)
"""Before every event time: the open start of :data:`EVER`."""

MAX = 2**62
"""After every event time: the open end of :data:`EVER`."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DATE = date(1970, 1, 1)
_FIRST_DAY = -62_135_596_800 * SECOND  # 0001-01-01, the first day that Spark's calendar accepts
_END_OF_DAYS = 253_402_300_800 * SECOND  # 10000-01-01, one past the last


def parse_instant_text(text: str) -> int:
    """
    The instant of an ISO-8601 date or timestamp; without an offset it is UTC.

    Raises ValueError for anything else.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return micros_of(moment)


def micros_of(moment: datetime) -> int:
    """The instant of an aware datetime, exact to the microsecond."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def datetime_of(at: int) -> datetime:
    """The aware UTC datetime of an instant in the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=at)


def instants_of(table: pa.Table, name: str) -> list[int]:
    """A column of dates or timestamps of an Arrow table, in its order."""
    import pyarrow as pa

    column = table[name]
    if pa.types.is_date(column.type):
        return [day * DAY for day in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    values: list[int] = column.cast(pa.int64()).to_pylist()
    return values


def now() -> int:
    """The present instant, in microseconds since 1970."""
    return time.time_ns() // 1000


def show_instant(at: int) -> str:
    """An instant as people write it: the date alone at midnight, else date and time."""
    if at <= _FIRST_DAY:
        return "ever"
    if at >= _END_OF_DAYS:
        return "ever"
    when = datetime_of(at)
    if at % DAY == 0:  # not strftime: its %Y leaves the zeros of early years out
        return when.date().isoformat()
    timespec = "minutes" if at % MINUTE == 0 else "auto"
    return when.isoformat(sep=" ", timespec=timespec).removesuffix("+00:00")


def within_calendar(column: Any) -> Any:
    """Which values of an Arrow column of timestamps are in the years 1 to 9999; NULL is not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    inside = pc.and_(pc.greater_equal(at, _FIRST_DAY), pc.less(at, _END_OF_DAYS))
    return pc.fill_null(inside, pa.scalar(False))


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """Event time from ``start`` up to, not including, ``end``; both are instants."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"empty interval [{self.start}, {self.end})")

    def __contains__(self, at: int) -> bool:
        return self.start <= at < self.end

    def __str__(self) -> str:
        return f"[{show_instant(self.start)}, {show_instant(self.end)})"

    def overlaps(self, other: Interval) -> bool:
        """Whether the two share an instant."""
        return self.start < other.end and other.start < self.end

    def widen(self, before: int, after: int) -> Interval:
        """The interval with ``before`` more microseconds at its start and ``after`` at its end."""
        return Interval(max(MIN, self.start - before), min(MAX, self.end + after))


EVER = Interval(MIN, MAX)
"""All event time: the one cell of a table without a time column."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """A set of instants: sorted, disjoint intervals that do not touch. Build with :meth:`of`."""

    parts: tuple[Interval, ...] = ()

    @staticmethod
    def of(intervals: Iterable[Interval]) -> Ranges:
        """The union of any intervals, in any order, overlapping or not."""
        merged: list[Interval] = []
        for part in sorted(intervals):
            if merged and part.start <= merged[-1].end:
                if part.end > merged[-1].end:
                    merged[-1] = Interval(merged[-1].start, part.end)
            else:
                merged.append(part)
        return Ranges(tuple(merged))

    @staticmethod
    def ever() -> Ranges:
        """All event time."""
        return Ranges((EVER,))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, at: int) -> bool:
        i = bisect_right(self.parts, at, key=lambda part: part.start) - 1
        return i >= 0 and at < self.parts[i].end

    def __str__(self) -> str:
        return ", ".join(map(str, self.parts)) or "nothing"

    def __or__(self, other: Ranges) -> Ranges:
        return Ranges.of((*self.parts, *other.parts))

    def __and__(self, other: Ranges) -> Ranges:
        common: list[Interval] = []
        i = j = 0
        a, b = self.parts, other.parts
        while i < len(a) and j < len(b):
            start, end = max(a[i].start, b[j].start), min(a[i].end, b[j].end)
            if start < end:
                common.append(Interval(start, end))
            if a[i].end < b[j].end:
                i += 1
            else:
                j += 1
        return Ranges(tuple(common))

    def __sub__(self, other: Ranges) -> Ranges:
        left: list[Interval] = []
        b = other.parts
        for part in self.parts:
            at = part.start
            i = bisect_right(b, at, key=lambda hole: hole.end)
            while i < len(b) and b[i].start < part.end:
                if b[i].start > at:
                    left.append(Interval(at, b[i].start))
                at = max(at, b[i].end)
                i += 1
            if at < part.end:
                left.append(Interval(at, part.end))
        return Ranges(tuple(left))

    def overlaps(self, interval: Interval) -> bool:
        """Whether any instant of ``interval`` is in this set."""
        i = bisect_left(self.parts, interval.start, key=lambda part: part.end - 1)
        return i < len(self.parts) and self.parts[i].start < interval.end

    def widen(self, before: int, after: int) -> Ranges:
        """Every interval widened, then merged again."""
        return Ranges.of(part.widen(before, after) for part in self.parts)

    @property
    def span(self) -> Interval | None:
        """From the first start to the last end, or None when empty."""
        return Interval(self.parts[0].start, self.parts[-1].end) if self.parts else None

    @property
    def gaps(self) -> Ranges:
        """What lies between the parts."""
        return Ranges() if self.span is None else Ranges((self.span,)) - self


class Granularity(StrEnum):
    """
    How long one cell of a table is, on the UTC calendar.

    Weeks start on Monday here; a model's ``week_start`` chooses Sunday by
    :attr:`SUNDAY_WEEK`. Months, quarters and years are calendar ones, never 30 or 365 days.
    """

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    SUNDAY_WEEK = "week (sunday)"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    def floor(self, at: int) -> int:
        """The start of the cell that contains ``at``."""
        if self is Granularity.HOUR:
            return at - at % HOUR
        if self is Granularity.DAY:
            return at - at % DAY
        if self is Granularity.WEEK:  # 1970-01-01 was a Thursday
            return at - (at + 3 * DAY) % WEEK
        if self is Granularity.SUNDAY_WEEK:
            return at - (at + 4 * DAY) % WEEK
        if at >= _END_OF_DAYS:
            return _END_OF_DAYS  # where the year 10000 would begin: the end of the last cell
        day = _EPOCH_DATE + timedelta(days=_clip(at) // DAY)
        return _date_micros(self._first_of(day))

    def ceil(self, at: int) -> int:
        """The first cell start that is not before ``at``."""
        start = self.floor(at)
        return start if start == at else self.next(start)

    def next(self, start: int) -> int:
        """The start of the cell after the one that starts at ``start``."""
        fixed = _FIXED_LENGTHS.get(self)
        if fixed is not None:
            return start + fixed
        day = _EPOCH_DATE + timedelta(days=_clip(start) // DAY)
        months = _MONTHS[self]
        ahead = day.year * 12 + day.month - 1 + months
        if ahead // 12 > 9999:
            return _END_OF_DAYS
        return _date_micros(date(ahead // 12, ahead % 12 + 1, 1))

    def cell(self, at: int) -> Interval:
        """The cell that contains the instant ``at``."""
        start = self.floor(at)
        return Interval(start, self.next(start))

    def aligned(self, at: int) -> bool:
        """Whether ``at`` is the start of a cell."""
        return self.floor(at) == at

    def cover(self, ranges: Ranges) -> Ranges:
        """The smallest set of whole cells that contains ``ranges``; open ends stay open."""
        return Ranges.of(
            Interval(
                part.start if part.start <= _FIRST_DAY else self.floor(part.start),
                part.end if part.end >= _END_OF_DAYS else self.ceil(part.end),
            )
            for part in ranges
        )

    def cells(self, interval: Interval) -> Iterator[Interval]:
        """Every cell that overlaps a bounded ``interval``, in order."""
        start = self.floor(max(interval.start, _FIRST_DAY))
        while start < min(interval.end, _END_OF_DAYS):
            end = self.next(start)
            yield Interval(start, end)
            start = end

    def contains(self, finer: Granularity) -> bool:
        """Whether every cell of ``finer`` lies inside one cell of this granularity."""
        return finer is self or finer in _FINER_INSIDE[self]

    def _first_of(self, day: date) -> date:
        months = _MONTHS[self]
        return date(day.year, (day.month - 1) // months * months + 1, 1)


_FIXED_LENGTHS = {
    Granularity.HOUR: HOUR,
    Granularity.DAY: DAY,
    Granularity.WEEK: WEEK,
    Granularity.SUNDAY_WEEK: WEEK,
}
_MONTHS = {Granularity.MONTH: 1, Granularity.QUARTER: 3, Granularity.YEAR: 12}
_FINER_INSIDE: dict[Granularity, frozenset[Granularity]] = {
    Granularity.HOUR: frozenset(),
    Granularity.DAY: frozenset({Granularity.HOUR}),
    Granularity.WEEK: frozenset({Granularity.HOUR, Granularity.DAY}),
    Granularity.SUNDAY_WEEK: frozenset({Granularity.HOUR, Granularity.DAY}),
    Granularity.MONTH: frozenset({Granularity.HOUR, Granularity.DAY}),
    Granularity.QUARTER: frozenset({Granularity.HOUR, Granularity.DAY, Granularity.MONTH}),
    Granularity.YEAR: frozenset(
        {Granularity.HOUR, Granularity.DAY, Granularity.MONTH, Granularity.QUARTER}
    ),
}


def _clip(at: int) -> int:
    return min(max(at, _FIRST_DAY), _END_OF_DAYS - 1)


def _date_micros(day: date) -> int:
    return (day - _EPOCH_DATE).days * DAY


_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}
_DURATION = re.compile(r"\s*(\d+)\s*([a-z]+)\s*")


def parse_duration(text: str) -> int:
    """
    The microseconds of a text such as ``30 minutes``, ``1 hour 30 minutes`` or ``0 seconds``.

    Raises ValueError for anything else (months and years have no fixed length).
    """
    at, total, text = 0, 0, text.lower()
    while at < len(text):
        match = _DURATION.match(text, at)
        unit = match[2].removesuffix("s") if match else ""
        if match is None or unit not in _UNITS:
            raise ValueError(f"not a duration: {text!r}")
        total += int(match[1]) * _UNITS[unit]
        at = match.end()
    if not text.strip():
        raise ValueError("not a duration: ''")
    return total


def show_duration(length: int) -> str:
    """
    A length in microseconds as people write it, in its largest whole unit: ``30 minutes``.

    A microsecond less is shown as the whole: people write "less than seven days" as seven days.
    """
    length += (length + 1) % SECOND == 0
    for unit, size in reversed(_UNITS.items()):
        if length and length % size == 0:
            count = length // size
            return f"{count} {unit}" + ("s" if count != 1 else "")
    return "0 seconds"


def iso_duration(length: int) -> str:
    """A length in microseconds by ISO 8601: ``PT30M``, ``P1D``, ``P1DT2H``, ``PT0S``, ``-PT1H``."""
    if not length:
        return "PT0S"
    days, rest = divmod(abs(length), DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds = f"{rest / SECOND:.6f}".rstrip("0").rstrip(".")
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count) + (
        f"{seconds}S" if rest else ""
    )
    text = "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")
    return f"-{text}" if length < 0 else text
