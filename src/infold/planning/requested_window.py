"""
The range of event time that a command was asked for: ``--start`` and ``--end``.

Half-open, and whole cells only: an end inside a cell would leave half of the cell unbuilt, or build
more than was asked for. So it is refused with the nearest instants that fit. It bounds the cells of
models that are built cell by cell, so it has to fit those models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from infold.core.interval import MAX, MIN, Granularity, Interval, parse_instant_text, show_instant
from infold.core.model import Kind
from infold.core.project import Project
from infold.messages import command_errors


def parse_window(
    project: Project, names: Iterable[str], start: str | None, end: str | None
) -> Interval | None:
    """The window as asked for, open where an end was not given; None when neither was."""
    if start is None and end is None:
        return None
    first = MIN if start is None else _instant("--start", start)
    last = MAX if end is None else _instant("--end", end)
    if first >= last:
        raise command_errors.window_empty(str(start), str(end))
    chosen = frozenset(names)
    cells = {
        node.name: node.model.granularity
        for node in project
        if node.name in chosen and node.model.kind is Kind.INCREMENTAL_TABLE
    }
    if start is not None:
        _refuse_inside("--start", first, cells)
    if end is not None:
        _refuse_inside("--end", last, cells)
    return Interval(first, last)


def parse_as_of(text: str | None) -> int | None:
    """The instant of ``--as-of``; None when it was not given."""
    return parse_instant("--as-of", text)


def parse_instant(option: str, text: str | None) -> int | None:
    """The instant of an option or argument; None when it was not given."""
    return None if text is None else _instant(option, text)


def is_instant(text: str) -> bool:
    """Whether a text says a date or time."""
    try:
        parse_instant_text(text)
    except ValueError:
        return False
    return True


def _instant(option: str, text: str) -> int:
    try:
        return parse_instant_text(text)
    except ValueError:
        raise command_errors.not_an_instant(option=option, text=text) from None


def _refuse_inside(option: str, at: int, cells: Mapping[str, Granularity | None]) -> None:
    """Refuse an end that is inside a cell of any model, and name all of these."""
    nearest = {
        name: (
            granularity.value,
            show_instant(granularity.cell(at).start),
            show_instant(granularity.cell(at).end),
        )
        for name, granularity in cells.items()
        if granularity is not None and not granularity.aligned(at)
    }
    if nearest:
        raise command_errors.window_unaligned(option, show_instant(at), nearest)
