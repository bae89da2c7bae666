"""Numbers, counts, times and ranges as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infold.core.interval import (
    DAY,
    MAX,
    MIN,
    SECOND,
    Granularity,
    Interval,
    Ranges,
    datetime_of,
    show_instant,
)

WIDTH = 100
"""How wide a screen is made."""


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 file``, ``1,204 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def folders(listed: int, left_out: int, before: str = "") -> str:
    """Dated folders of a source, if some were not listed."""
    if not left_out:
        return ""
    out = f"{left_out:,} left for a full listing"
    return f"{before}{count(listed, 'dated folder')} listed, {out}"


def seconds(length: float) -> str:
    """A measured time: ``0.31 s``, ``12.4 s``, ``3 min 20 s``."""
    if length < 9.995:
        return f"{length:.2f} s"
    if length < 99.95:
        return f"{length:.1f} s"
    minutes, rest = divmod(round(length), 60)
    return f"{minutes} min {rest} s"


def clock(at: int | None) -> str:
    """An instant to the second, ``never`` for None: when something happened."""
    if at is None:
        return "never"
    return datetime_of(at - at % SECOND).strftime("%Y-%m-%d %H:%M:%S")


def iso(at: int | None) -> str | None:
    """An instant for programs, None for none and an open end: ``2024-03-09T00:00:00Z``."""
    if at is None or at <= MIN or at >= MAX:
        return None
    try:
        return datetime_of(at).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None


def cells_in(ranges: Ranges, granularity: Granularity | None) -> int | None:
    """How many cells ``ranges`` hold; None when an end is open."""
    if granularity is None:
        return len(ranges)
    if not has_ends(ranges):
        return None
    fixed = granularity.next(0) if granularity in _EVEN_GRANULARITIES else 0
    if fixed:
        return sum((part.end - part.start) // fixed for part in ranges)
    return sum(1 for part in ranges for _ in granularity.cells(part))


_EVEN_GRANULARITIES = (Granularity.HOUR, Granularity.DAY)


def has_ends(ranges: Ranges) -> bool:
    """Whether no end is open."""
    return all(part.start > MIN and part.end < MAX for part in ranges)


def rebuilt_part_text(covered: Ranges, left: Ranges, granularity: Granularity | None) -> str:
    """How much of a table that is rebuilt part by part is there: ``3 of 5 cells …``."""
    cells = cells_in(covered, granularity) or 0
    all_ = cells + (cells_in(left, granularity) or 0)
    of = f"{cells:,} of {count(all_, 'cell')} under the new definition"
    return f"{of}; not built yet: {ranges_text(left, granularity)}"


def range_text(part: Interval, granularity: Granularity | None) -> str:
    """One range: the cell alone when it is one, ``since``/``until`` when an end is open."""
    if part.start <= MIN:
        return "all of it" if part.end >= MAX else f"until {show_instant(part.end)}"
    if part.end >= MAX:
        return f"since {show_instant(part.start)}"
    if granularity is not None and granularity.next(part.start) == part.end:
        return cell_text(part, granularity)
    return str(part)


def cell_text(cell: Interval, granularity: Granularity | None) -> str:
    """One cell by its start, as short as its granularity allows: a month is ``2024-03``."""
    if granularity is None or cell.start <= MIN:
        return "all of it"
    if granularity is Granularity.MONTH:
        return show_instant(cell.start)[:7]
    if granularity is Granularity.YEAR:
        return show_instant(cell.start)[:4]
    if granularity is Granularity.HOUR and cell.start % DAY == 0:
        return show_instant(cell.start) + " 00:00"
    return show_instant(cell.start)


def ranges_text(ranges: Ranges, granularity: Granularity | None) -> str:
    """Ranges in order, the first three of many."""
    shown = [range_text(part, granularity) for part in ranges.parts[:3]]
    if len(ranges) > 3:
        shown.append(f"and {len(ranges) - 3} more")
    return ", ".join(shown)


def names(words: Iterable[str], most: int = 8) -> str:
    """Names in a sentence, the first few of many."""
    every = list(words)
    if len(every) > most:
        return ", ".join(every[:most]) + f" and {len(every) - most} more"
    return ", ".join(every)


def clip(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, a cut shown."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def columns(rows: Sequence[Sequence[str]], right: Iterable[int] = (), indent: int = 2) -> list[str]:
    """Rows with their columns aligned, two spaces between; ``right`` are the numbers' columns."""
    if not rows:
        return []
    numbers = frozenset(right)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        parts = [
            text.rjust(width) if i in numbers else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(" " * indent + "  ".join(parts).rstrip())
    return lines
