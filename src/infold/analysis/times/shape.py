"""
What is known of a column's value against the times of the rows behind it.

A value ``v`` and the time ``t`` of one row of one input are related by a :class:`Shape`: ``v`` is
in the same cell as some ``x`` with ``low <= x - t <= high``. The shape of the time column itself is
``Shape()``; a cast to a date puts ``v`` into the day of ``x``; adding an interval moves ``x``. The
shape of a model's partition column gives the times of an input that its cells are made from
(:meth:`Shape.bound`). All lengths are microseconds, all calendar units are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from infold.core.interval import DAY, WEEK, Granularity

Grain = Granularity | None
"""How coarse values are known to be: all are starts of such cells; None for any."""

Span = tuple[int, int]
"""The least and the greatest that a difference can be."""

_LENGTHS: dict[Granularity, Span] = {
    Granularity.MONTH: (28 * DAY, 31 * DAY),
    Granularity.QUARTER: (90 * DAY, 92 * DAY),
    Granularity.YEAR: (365 * DAY, 366 * DAY),
}


_OTHER_WEEK = {
    Granularity.WEEK: (Granularity.SUNDAY_WEEK, -DAY),
    Granularity.SUNDAY_WEEK: (Granularity.WEEK, DAY),
}
"""What weeks become that are moved by a day, or by that and whole weeks."""


def cell_lengths(unit: Granularity) -> Span:
    """The shortest and the longest cell of a unit."""
    return _LENGTHS.get(unit) or (unit.next(0), unit.next(0))


def coarser_of(a: Grain, b: Grain) -> tuple[bool, Grain]:
    """Whether cells of one unit lie in cells of the other, and the coarser one; None is finest."""
    if a is None or b is None:
        return True, b if a is None else a
    if a.contains(b):
        return True, a
    return b.contains(a), b


@dataclass(frozen=True, slots=True)
class Shape:
    """``v`` is in the ``cell`` of an ``x`` with ``low <= x - t <= high``; None: ``v`` is ``x``."""

    cell: Grain = None
    low: int = 0
    high: int = 0
    grain: Grain = None

    @property
    def is_exact(self) -> bool:
        """Whether ``x`` is ``t`` and a constant."""
        return self.low == self.high

    @property
    def is_start(self) -> bool:
        """Whether ``v`` is the start of the cell of ``x``."""
        return self.cell is not None and self.grain is not None and self.grain.contains(self.cell)

    def difference(self) -> Span:
        """How far ``v`` can be from ``t``."""
        if self.cell is None:
            return self.low, self.high
        room = cell_lengths(self.cell)[1] - 1
        return self.low - room, self.high + (0 if self.is_start else room)

    def without_cell(self) -> Shape:
        """The same as a shape without a cell."""
        low, high = self.difference()
        return Shape(None, low, high, self.grain)

    def floor(self, unit: Grain) -> Shape:
        """The shape of what ``v`` becomes when it is floored to a unit; None changes nothing."""
        if unit is None:
            return self
        if self.grain is not None and self.grain.contains(unit):
            return self  # it is the start of such a cell already
        nested, cell = coarser_of(self.cell, unit)
        if nested:
            return Shape(cell, self.low, self.high, unit)
        low, high = self.difference()
        return Shape(unit, low, high, unit)

    def in_same_cell(self, unit: Granularity) -> Shape:
        """The shape of something that is in the same cell of a unit as ``v``."""
        nested, cell = coarser_of(self.cell, unit)
        low, high = (self.low, self.high) if nested else self.difference()
        return Shape(cell if nested else unit, low, high)

    def moved_by(self, by: Span) -> Shape:
        """The shape of ``v`` plus something in ``by``."""
        low, high = by
        cell = self.cell
        if cell is None:
            grain = self.grain if low == high and _moves_starts_to_starts(low, self.grain) else None
            return Shape(None, self.low + low, self.high + high, grain)
        if low == high and _moves_starts_to_starts(low, cell):
            grain = self.grain if _moves_starts_to_starts(low, self.grain) else None
            return Shape(cell, self.low + low, self.high + low, grain)
        if low == high and cell in _OTHER_WEEK and (low - _OTHER_WEEK[cell][1]) % WEEK == 0:
            other = _OTHER_WEEK[cell][0]
            return Shape(other, self.low + low, self.high + low, other if self.is_start else None)
        least, most = self.difference()
        return Shape(None, least + low, most + high)

    def at_distance(self, other: Span, grain: Grain) -> Shape:
        """
        The shape of ``w``, with starts of ``grain`` as its only values, where ``w - v`` is in
        ``other``.

        A start between ``v + low`` and ``v + high`` is the floor of something between ``v + low +
        one cell less a microsecond`` and ``v + high``.
        """
        low, high = other
        if low == high == 0:
            return replace(self, grain=self.grain or grain)
        least, most = self.difference()
        if grain is None:
            return self.moved_by(other) if low == high else Shape(None, least + low, most + high)
        if (
            self.cell in (None, grain)
            and self.grain
            and self.grain.contains(grain)
            and _has_fixed_length(grain)
        ):
            size = cell_lengths(grain)[0]  # both are starts, so whole cells lie between them
            low, high = -(-low // size) * size, high // size * size
            if low <= high:
                return Shape(self.cell, self.low + low, self.high + high, grain)
        first = least + low + cell_lengths(grain)[0] - 1
        if first > most + high:
            return Shape(None, least + low, most + high, grain)
        return Shape(grain, first, most + high, grain)

    def hull(self, other: Shape) -> Shape:
        """The shape of a value that has one shape or the other."""
        nested, cell = coarser_of(self.cell, other.cell)
        nested_grain, _ = coarser_of(self.grain, other.grain)
        grain = None
        if nested_grain and self.grain is not None and other.grain is not None:
            grain = self.grain if other.grain.contains(self.grain) else other.grain
        if nested:
            low, high = min(self.low, other.low), max(self.high, other.high)
            return Shape(cell, low, high, grain)
        a, b = self.difference(), other.difference()
        return Shape(None, min(a[0], b[0]), max(a[1], b[1]), grain)

    def of_rows_within(self, before: int, after: int) -> Shape:
        """
        The shape of one row's ``v`` against the times of other rows.

        Their ``v`` is at most ``before`` less, and ``after`` more.
        """
        return self.at_distance((-after, before), self.grain)

    def through(self, bridge: Shape, far: Shape) -> Shape:
        """
        The shape of ``v`` against an input that only ``bridge`` knows.

        ``self`` and ``bridge`` are shapes against one input, ``far`` is that of the bridge's value
        against the other.
        """
        if bridge.cell is None and bridge.is_exact:
            low, high = far.difference()
            shift = self.low - bridge.low, self.high - bridge.low
            return Shape(self.cell, low + shift[0], high + shift[1], self.grain)
        if self.is_exact and bridge.is_exact and self.low == bridge.low:
            nested, cell = coarser_of(self.cell, bridge.cell)
            inside, whole = coarser_of(cell, far.cell)
            if nested and inside and whole is cell:
                return Shape(cell, far.low, far.high, self.grain)
        own, between, beyond = self.difference(), bridge.difference(), far.difference()
        return Shape(
            None,
            own[0] - between[1] + beyond[0],
            own[1] - between[0] + beyond[1],
            self.grain,
        )

    def stays_in_cell(self, granularity: Granularity) -> bool:
        """Whether ``v`` is always in the same cell of ``granularity`` as ``x``."""
        return self.cell is None or granularity.contains(self.cell)

    def can_partition(self, granularity: Granularity) -> bool:
        """Whether ``v`` is no mere start of a longer cell, in a table of such shorter ones."""
        return self.stays_in_cell(granularity) or not (
            self.is_start and self.cell is not None and self.cell.contains(granularity)
        )

    def bound(self, granularity: Granularity) -> Span:
        """
        How far before and after an output cell the times lie that it is made from.

        ``(before, after)``: the cell ``[start, end)`` is made from times in ``[start - before, end
        + after)``. A value in the month of ``x`` is up to a month away from it.
        """
        if not self.stays_in_cell(granularity):
            return self.without_cell().bound(granularity)
        after = -self.low
        if self.cell is None and self.grain is not None and granularity.contains(self.grain):
            # The last value in a cell is the last start in it, and that is a unit before its end.
            unit = cell_lengths(self.grain)[0]
            if after > 0 and (not _has_fixed_length(self.grain) or (after + 1) % unit == 0):
                after = max(0, after - unit + 1)
        return self.high, after


def _has_fixed_length(unit: Granularity) -> bool:
    least, most = cell_lengths(unit)
    return least == most


def _moves_starts_to_starts(length: int, unit: Grain) -> bool:
    """Whether moving by a length takes starts of cells to starts of cells."""
    return unit is None or (_has_fixed_length(unit) and length % cell_lengths(unit)[0] == 0)
