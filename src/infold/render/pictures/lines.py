"""
Values over time as lines, from the lowest of them to the highest: a small change far from zero.

Where several values are in one column of the picture there are two lines, of the lowest and of the
highest. A line joins neighbours on the axis only: nothing is drawn where nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infold.core.interval import Interval
from infold.render.pictures.look import Look

Columns = Sequence[tuple[float, float] | None]
"""The lowest and the highest value of each column of a picture."""

Dot = tuple[int, int]
"""How far to the right, and how far up."""

_BRAILLE = 0x2800
_SIGNS = ((0x40, 0x80), (0x04, 0x20), (0x02, 0x10), (0x01, 0x08))
"""The dots of a sign of Braille, from the lowest line to the highest; Unicode, block U+2800."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From which value to which a picture goes, and how many lines of text it has."""

    low: float
    high: float
    height: int

    def share(self, value: float) -> float:
        """How far up a value is, of 1; by halves, as the span of huge numbers is infinite."""
        span = self.high / 2 - self.low / 2
        return (value / 2 - self.low / 2) / span if span else 0.0

    def ends(self) -> dict[int, float]:
        """The values at the ends, by their line of text, counted from below."""
        return {0: self.low} | ({self.height - 1: self.high} if self.high > self.low else {})


def scale_of(columns: Columns, height: int) -> Scale:
    """The scale on which all values have a place; one line of text where they are the same."""
    known = [one for one in columns if one is not None]
    low, high = min(low for low, _ in known), max(high for _, high in known)
    return Scale(low, high, height if high > low else 1)


def line_texts(
    columns: Columns, cells: Sequence[Interval | None], step: int, scale: Scale, look: Look
) -> list[str]:
    """
    The lines of text of a picture, the highest first, ``step`` characters a column.

    ``cells`` are the times of the columns, None for a stretch left out.
    """
    across, up = (1, 3) if look.plain else (2, 4)
    dots = frozenset(_dots(columns, step * across, scale, scale.height * up - 1))
    found = []
    for line in range(scale.height - 1, -1, -1):
        text = ""
        for at in range(len(columns) * step):
            inside = [
                (x - at * across, y - line * up)
                for x in range(at * across, (at + 1) * across)
                for y in range(line * up, (line + 1) * up)
                if (x, y) in dots
            ]
            quiet = line == 0 and at % step == 0 and cells[at // step] is None
            text += _sign(inside, look) if inside else "…" if quiet else " "
        found.append(text)
    return found


def _dots(columns: Columns, wide: int, scale: Scale, top: int) -> Iterator[Dot]:
    """All dots of the lines through the lowest and through the highest values."""
    for end in (0, 1):
        before: Dot | None = None
        for at, one in enumerate(columns):
            dot = (
                None if one is None else (at * wide + wide // 2, round(scale.share(one[end]) * top))
            )
            if dot is not None:
                yield from _between(before or dot, dot)
            before = dot


def _between(first: Dot, last: Dot) -> Iterator[Dot]:
    """
    The dots of a straight line, with no gap in it.

    As many of them as the longer of its two extents, each to the nearest dot.
    """
    (x, y), (across, up) = first, (last[0] - first[0], last[1] - first[1])
    count = max(abs(across), abs(up), 1)
    for part in range(count + 1):
        yield x + round(across * part / count), y + round(up * part / count)


def _sign(inside: Sequence[Dot], look: Look) -> str:
    if look.plain:
        return "|" if len(inside) > 1 else "_-'"[inside[0][1]]
    return chr(_BRAILLE + sum(_SIGNS[y][x] for x, y in inside))
