"""
What is known of a column's value against the times of the rows behind it.

A value ``v`` and the time ``t`` of one row of one input are related by a :class:`Shape`: ``v`` lies
in the same cell as some ``x`` with ``low <= x - t <= high``. The shape of the time column itself is
``Shape()``; a cast to a date puts ``v`` into the day of ``x``; adding an interval moves ``x``. From
the shape of a model's partition column follows which times of an input its cells are made from
(:meth:`Shape.bound`). All lengths are microseconds, all calendar units are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from infold.core.interval import DAY, Granularity

Grain = Granularity | None
"""How coarse values are known to be: all are starts of such cells; None for any."""

Span = tuple[int, int]
"""The least and the greatest that a difference can be."""

_LENGTHS: dict[Granularity, Span] = {
    Granularity.MONTH: (28 * DAY, 31 * DAY),
    Granularity.QUARTER: (90 * DAY, 92 * DAY),
    Granularity.YEAR: (365 * DAY, 366 * DAY),
}


def lengths(unit: Granularity) -> Span:
    """The shortest and the longest cell of a unit."""
    return _LENGTHS.get(unit) or (unit.next(0), unit.next(0))


def coarser(a: Grain, b: Grain) -> tuple[bool, Grain]:
    """Whether cells of one unit lie in cells of the other, and the coarser one; None is finest."""
    if a is None or b is None:
        return True, b if a is None else a
    if a.holds(b):
        return True, a
    return b.holds(a), b


@dataclass(frozen=True, slots=True)
class Shape:
    """``v`` is in the ``cell`` of an ``x`` with ``low <= x - t <= high``; None: ``v`` is ``x``."""

    cell: Grain = None
    low: int = 0
    high: int = 0
    grain: Grain = None

    @property
    def exact(self) -> bool:
        """Whether ``x`` is ``t`` and a constant."""
        return self.low == self.high

    @property
    def starts(self) -> bool:
        """Whether ``v`` is the start of the cell of ``x``."""
        return self.cell is not None and self.grain is not None and self.grain.holds(self.cell)

    def difference(self) -> Span:
        """How far ``v`` can be from ``t``."""
        if self.cell is None:
            return self.low, self.high
        room = lengths(self.cell)[1] - 1
        return self.low - room, self.high + (0 if self.starts else room)

    def loose(self) -> Shape:
        """The same, said without a cell."""
        low, high = self.difference()
        return Shape(None, low, high, self.grain)

    def floor(self, unit: Grain) -> Shape:
        """The shape of what ``v`` becomes when it is floored to a unit; None changes nothing."""
        if unit is None:
            return self
        if self.grain is not None and self.grain.holds(unit):
            return self  # it is the start of such a cell already
        nested, cell = coarser(self.cell, unit)
        if nested:
            return Shape(cell, self.low, self.high, unit)
        low, high = self.difference()
        return Shape(unit, low, high, unit)

    def inside(self, unit: Granularity) -> Shape:
        """The shape of something that is in the same cell of a unit as ``v``."""
        nested, cell = coarser(self.cell, unit)
        low, high = (self.low, self.high) if nested else self.difference()
        return Shape(cell if nested else unit, low, high)

    def moved(self, by: Span) -> Shape:
        """The shape of ``v`` and something between ``by``, of which nothing else is known."""
        low, high = by
        cell = self.cell
        if cell is None:
            grain = self.grain if low == high and _whole(low, self.grain) else None
            return Shape(None, self.low + low, self.high + high, grain)
        if low == high and _whole(low, cell):
            grain = self.grain if _whole(low, self.grain) else None
            return Shape(cell, self.low + low, self.high + low, grain)
        least, most = self.difference()
        return Shape(None, least + low, most + high)

    def among(self, other: Span, grain: Grain) -> Shape:
        """
        The shape of ``w``, all of whose values are starts of ``grain``, where ``w - v`` is in
        ``other``.

        A start between ``v + low`` and ``v + high`` is the floor of something between
        ``v + low + one cell less a microsecond`` and ``v + high``.
        """
        low, high = other
        if low == high == 0:
            return replace(self, grain=self.grain or grain)
        least, most = self.difference()
        if grain is None:
            return self.moved(other) if low == high else Shape(None, least + low, most + high)
        if self.cell in (None, grain) and self.grain and self.grain.holds(grain) and _fixed(grain):
            size = lengths(grain)[0]  # both are starts, so whole cells lie between them
            low, high = -(-low // size) * size, high // size * size
            if low <= high:
                return Shape(self.cell, self.low + low, self.high + high, grain)
        first = least + low + lengths(grain)[0] - 1
        if first > most + high:
            return Shape(None, least + low, most + high, grain)
        return Shape(grain, first, most + high, grain)

    def hull(self, other: Shape) -> Shape:
        """What holds of a value that has one shape or the other."""
        nested, cell = coarser(self.cell, other.cell)
        nested_grain, _ = coarser(self.grain, other.grain)
        grain = None
        if nested_grain and self.grain is not None and other.grain is not None:
            grain = self.grain if other.grain.holds(self.grain) else other.grain
        if nested:
            low, high = min(self.low, other.low), max(self.high, other.high)
            return Shape(cell, low, high, grain)
        a, b = self.difference(), other.difference()
        return Shape(None, min(a[0], b[0]), max(a[1], b[1]), grain)

    def near(self, before: int, after: int) -> Shape:
        """
        The shape of one row's ``v`` against the times of rows whose own is near to it.

        The other rows' is at most ``before`` less, and ``after`` more.
        """
        return self.among((-after, before), self.grain)

    def through(self, bridge: Shape, far: Shape) -> Shape:
        """
        The shape of ``v`` against an input that only ``bridge`` knows.

        ``self`` and ``bridge`` are shapes against one input, ``far`` is that of the bridge's value
        against the other.
        """
        if bridge.cell is None and bridge.exact:
            low, high = far.difference()
            shift = self.low - bridge.low, self.high - bridge.low
            return Shape(self.cell, low + shift[0], high + shift[1], self.grain)
        if self.exact and bridge.exact and self.low == bridge.low:
            nested, cell = coarser(self.cell, bridge.cell)
            inside, whole = coarser(cell, far.cell)
            if nested and inside and whole is cell:
                return Shape(cell, far.low, far.high, self.grain)
        mine, theirs, there = self.difference(), bridge.difference(), far.difference()
        return Shape(
            None,
            mine[0] - theirs[1] + there[0],
            mine[1] - theirs[0] + there[1],
            self.grain,
        )

    def nested(self, granularity: Granularity) -> bool:
        """Whether ``v`` is in the same cell of ``granularity`` as ``x`` is."""
        return self.cell is None or granularity.holds(self.cell)

    def tells(self, granularity: Granularity) -> bool:
        """Whether ``v`` is no mere start of a longer cell, in a table of such shorter ones."""
        return self.nested(granularity) or not (
            self.starts and self.cell is not None and self.cell.holds(granularity)
        )

    def bound(self, granularity: Granularity) -> Span:
        """
        How far before and after an output cell the times lie that it is made from.

        ``(before, after)``: the cell ``[start, end)`` is made from times in ``[start - before, end
        + after)``. A value in the month of ``x`` is up to a month away from it.
        """
        if not self.nested(granularity):
            return self.loose().bound(granularity)
        after = -self.low
        if self.cell is None and self.grain is not None and granularity.holds(self.grain):
            # The last value in a cell is the last start in it, and that is a unit before its end.
            unit = lengths(self.grain)[0]
            if after > 0 and (not _fixed(self.grain) or (after + 1) % unit == 0):
                after = max(0, after - unit + 1)
        return self.high, after


def _fixed(unit: Granularity) -> bool:
    least, most = lengths(unit)
    return least == most


def _whole(length: int, unit: Grain) -> bool:
    """Whether moving by a length takes starts of cells to starts of cells."""
    return unit is None or (_fixed(unit) and length % lengths(unit)[0] == 0)
