"""
Coverage strips: one row a table, one character a cell, on a common axis of event time.

A strip is at most :data:`COLUMNS` characters wide whatever it shows: cells are grouped into weeks,
months, quarters or years until they fit, and a long stretch in which no table has anything is one
``…``. So one event of 1999 beside today's costs two columns, and no strip has a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from infold.core.interval import MAX, MIN, Granularity, Interval, Ranges, datetime_of

COLUMNS = 54
"""The widest that a strip gets: a year of weeks."""

_MOST_QUIET = 3  # so many columns with nothing in them are drawn; more become one …


@dataclass(frozen=True, slots=True)
class Row:
    """
    One table's row: the first of ``marks`` with a range in a column is drawn there, else
    ``rest``. ``single`` is the mark of a table that is one cell, instead. ``note`` is on the right.

    ``shows`` is what the axis has to have a place for; None: all marks. A mark may reach over years
    in which there is nothing to see.
    """

    name: str
    marks: tuple[tuple[str, Ranges], ...] = ()
    rest: str = " "
    single: str = ""
    note: str = ""
    shows: Ranges | None = None

    @property
    def shown(self) -> Ranges:
        """What the axis has a place for, as far as it has ends."""
        marked = (part for _, ranges in self.marks for part in ranges)
        return Ranges.of(
            part for part in (marked if self.shows is None else self.shows) if _has_ends(part)
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """The columns of a strip: a cell of ``granularity`` each, None for a stretch left out."""

    granularity: Granularity
    columns: tuple[Interval | None, ...]
    room: int = COLUMNS
    """How many characters there is room for."""

    @property
    def spaced(self) -> bool:
        """Whether there is room to label every column."""
        return 0 < len(self.columns) * _SCALES[self.granularity].width <= self.room

    @property
    def step(self) -> int:
        """How many characters one column takes."""
        return _SCALES[self.granularity].width if self.spaced else 1

    @property
    def offset(self) -> int:
        """Where in its column a mark is."""
        return 1 if self.spaced else 0

    @property
    def width(self) -> int:
        """How many characters all columns take."""
        return max(1, len(self.columns) * self.step)


def axis(domain: Ranges, finest: Granularity, most: int = COLUMNS) -> Axis:
    """The finest axis that shows ``domain`` in at most ``most`` columns, open parts left out."""
    parts = Ranges.of(part for part in domain if _has_ends(part))
    for granularity in _GRANULARITIES[_GRANULARITIES.index(_on_ladder(finest)) :]:
        actual = finest if granularity is _on_ladder(finest) else granularity
        columns = tuple(_columns(parts, actual, most + 1))
        if len(columns) <= most:
            return Axis(actual, columns, most)
    every = list(_columns(parts, Granularity.YEAR, 10_000))
    return Axis(Granularity.YEAR, (None, *every[-(most - 1) :]), most)


def axis_of(rows: Sequence[Row], finest: Granularity) -> Axis:
    """The axis on which all that the rows show has a place."""
    return axis(Ranges.of(part for row in rows for part in row.shown), finest)


def strip_lines(rows: Sequence[Row], finest: Granularity, width: int) -> list[str]:
    """The rows with their header lines, no wider than ``width`` where names are of usual length."""
    axes = axis_of(rows, finest)
    margin = max(len(row.name) for row in rows) + 4
    room = max(axes.width, width - margin)
    lines = [" " * margin + line for line in header_lines(axes, room)] if axes.columns else []
    for row in rows:
        drawn = f"  {row.name:<{margin - 2}}{_row_text(row, axes):<{axes.width}}"
        if row.note:
            room = max(20, width - len(drawn) - 3)
            note = row.note if len(row.note) <= room else row.note[: room - 1] + "…"
            drawn = f"{drawn}   {note}"
        lines.append(drawn.rstrip())
    return lines


def header_lines(axis: Axis, width: int) -> list[str]:
    """The lines above the columns, no wider than ``width``: times of each, or of some of them."""
    scale = _SCALES[axis.granularity]
    moments = [None if cell is None else datetime_of(cell.start) for cell in axis.columns]
    top, before = [], None
    for i, when in enumerate(moments):
        above = scale.above(when) if when else ()
        if above and above != before:
            top.append((i * axis.step, above))
        before = above
    label = scale.each if axis.spaced else scale.some
    bottom = [(i * axis.step, (label(when, i == 0),)) for i, when in enumerate(moments) if when]
    labels = [entry for entry in bottom if entry[1][0]]
    lines = [_labels_line(top, width), _labels_line(labels, width)]
    return [line for line in lines if line]


def _has_ends(part: Interval) -> bool:
    return part.start > MIN and part.end < MAX


def _row_text(row: Row, axis: Axis) -> str:
    """One row's characters."""
    if row.single:  # one cell that reaches over all columns
        return f"[{row.single:^{axis.width - 2}}]" if axis.width > 2 else row.single
    marks = ["…" if cell is None else _mark_at(row, cell) for cell in axis.columns]
    return "".join(" " * axis.offset + mark + " " * (axis.step - axis.offset - 1) for mark in marks)


def _mark_at(row: Row, cell: Interval) -> str:
    return next((mark for mark, ranges in row.marks if ranges.overlaps(cell)), row.rest)


def _columns(parts: Ranges, granularity: Granularity, most: int) -> Iterator[Interval | None]:
    """The columns that show ``parts``, quiet stretches shortened; stops after ``most``."""
    count = 0
    last: Interval | None = None
    for part in granularity.cover(parts):
        gap = _quiet_columns(last, part, granularity)
        for cell in (*gap, *_at_most(granularity.cells(part), most)):
            yield cell
            last = cell or last
            count += 1
            if count >= most:
                return


def _quiet_columns(
    last: Interval | None, part: Interval, granularity: Granularity
) -> tuple[Interval | None, ...]:
    if last is None or last.end >= part.start:
        return ()
    quiet = tuple(_at_most(granularity.cells(Interval(last.end, part.start)), _MOST_QUIET + 1))
    return quiet if len(quiet) <= _MOST_QUIET else (None,)


def _at_most(cells: Iterable[Interval], most: int) -> Iterator[Interval]:
    for i, cell in enumerate(cells):
        if i >= most:
            return
        yield cell


def _labels_line(labels: Sequence[tuple[int, tuple[str, ...]]], width: int) -> str:
    """
    Labels at their places on one line; of each the longest variant that keeps clear of the next.
    The line's end is at ``width``.

    A single character needs no space around it; a label for which there is no room is left out.
    """
    line = ""
    for i, (at, variants) in enumerate(labels):
        room = labels[i + 1][0] - at if i + 1 < len(labels) else width - at + 1
        fits = next((text for text in variants if len(text) < room or len(text) == room == 1), "")
        if fits and at >= len(line) + (1 if line and len(fits) > 1 else 0):
            line = line.ljust(at) + fits
    return line


# -- how each granularity is labelled --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scale:
    """``each`` labels every column of a spaced strip, ``some`` a few of a tight one."""

    width: int
    above: Callable[[datetime], tuple[str, ...]]
    each: Callable[[datetime, bool], str]
    some: Callable[[datetime, bool], str]


def _month_labels(when: datetime) -> tuple[str, ...]:
    return (when.strftime("%B %Y"), when.strftime("%b %Y"), when.strftime("%b"))


def _day_labels(when: datetime) -> tuple[str, ...]:
    return (f"{when:%a} {when.day} {when:%B %Y}", f"{when.day} {when:%b %Y}", f"{when:%m-%d}")


def _year_labels(when: datetime) -> tuple[str, ...]:
    return (f"{when.year:04}", f"{when.year % 100:02}")


def _no_labels(_: datetime) -> tuple[str, ...]:
    return ()


def _formatted(style: str) -> Callable[[datetime, bool], str]:
    return lambda when, _: when.strftime(style)


_WEEKS = _Scale(
    6,
    _year_labels,
    _formatted("%m-%d"),
    lambda when, first: when.strftime("%b") if first or when.day <= 7 else "",
)
_SCALES = {
    Granularity.HOUR: _Scale(
        3,
        _day_labels,
        _formatted("%H"),
        lambda when, first: f"{when:%H}" if first or when.hour % 6 == 0 else "",
    ),
    Granularity.DAY: _Scale(
        3,
        _month_labels,
        _formatted("%d"),
        lambda when, first: f"{when:%d}" if first or when.weekday() == 0 else "",
    ),
    Granularity.WEEK: _WEEKS,
    Granularity.SUNDAY_WEEK: _WEEKS,
    Granularity.MONTH: _Scale(4, _year_labels, _formatted("%b"), lambda when, _: f"{when:%b}"[0]),
    Granularity.QUARTER: _Scale(
        3,
        _year_labels,
        lambda when, _: f"Q{when.month // 3 + 1}",
        lambda when, _: str(when.month // 3 + 1),
    ),
    Granularity.YEAR: _Scale(
        5,
        _no_labels,
        lambda when, _: f"{when.year:04}",
        lambda when, first: f"{when.year:04}" if first or when.year % 5 == 0 else "",
    ),
}
_GRANULARITIES = (
    Granularity.HOUR,
    Granularity.DAY,
    Granularity.WEEK,
    Granularity.MONTH,
    Granularity.QUARTER,
    Granularity.YEAR,
)


def _on_ladder(granularity: Granularity) -> Granularity:
    return Granularity.WEEK if granularity is Granularity.SUNDAY_WEEK else granularity
