"""The rows of every table over time, as shades on one axis; stale and empty cells are marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from infold.core.interval import MAX, MIN, Granularity, Interval, Ranges
from infold.core.project import Project
from infold.core.report import ModelStatus, State
from infold.render import formatting
from infold.render.coverage_strip import Axis, axis, header_lines
from infold.render.pictures.look import Look, compact

_NUMBER = 8
"""How wide a number of rows is at most."""

_NO_STRIP = 8
"""How much room the words need that stand in place of a strip."""

_STALE, _EMPTY = "!", "_"


def status_plot(
    project: Project, models: Sequence[ModelStatus], gaps: Mapping[str, Ranges], look: Look
) -> str:
    """
    A line for each stored table: its rows over event time.

    Shades are quarters of the most rows that a column of the same table has.
    """
    title = f"infold status · {project.name} · {project.target.name}"
    head = [formatting.clip(title, look.width), ""]
    stored = [entry for entry in models if entry.state is not State.VIEW]
    if not stored:
        return look.screen([*head, "There are no tables to draw."])
    name = min(max(len(entry.model) for entry in stored), max(12, look.width // 3))
    margin = name + 4
    room = look.width - margin - _NUMBER - 2
    parts = (part for entry in stored for part in (*entry.covered, *entry.stale))
    domain = Ranges.of(part for part in parts if part.start > MIN and part.end < MAX)
    time_axis = axis(domain, _finest(project, stored), room)
    lines = head + [" " * margin + line for line in header_lines(time_axis, look.width - margin)]
    for entry in stored:
        strip = _strip(project, entry, gaps.get(entry.model, Ranges()), time_axis, look)
        label = formatting.clip(entry.model, name)
        lines.append(f"  {label:<{name}}  {strip}  {compact(entry.rows):>{_NUMBER}}")
    shades = "  ".join(f"{sign} {part}" for sign, part in zip(look.shades, _PARTS, strict=True))
    lines += ["", *look.wrapped(f"  {shades} of its most rows")]
    lines.append(f"  {_EMPTY} no rows  {_STALE} stale")
    partly = [entry.model for entry in stored if entry.partly]
    lines += look.wrapped(f"  stale in part: {formatting.names(partly)}") if partly else []
    return look.screen(lines)


_PARTS = ("1/4", "2/4", "3/4", "4/4")


def _finest(project: Project, stored: Sequence[ModelStatus]) -> Granularity:
    """The shortest cells that a table has."""
    order = list(Granularity)
    every = (project[entry.model].model.granularity for entry in stored)
    return min((one for one in every if one is not None), key=order.index, default=Granularity.DAY)


def _strip(project: Project, entry: ModelStatus, gaps: Ranges, axis: Axis, look: Look) -> str:
    """One table's columns, all of one width, whatever colours are in them."""
    width = max(axis.width, _NO_STRIP)
    words = ""
    if project[entry.model].model.granularity is None:
        words = "one cell, stale" if entry.stale else "one cell"
        words = words if len(words) <= width else words.split(", ")[-1]
    elif not entry.cells and not entry.stale:
        words = "no rows"
    if words:
        return look.tinted(f"{words:<{width}}", "faint")
    counts = _counts(entry, axis)
    most = max(counts, default=0) or 1
    wide = max(1, axis.step - 1)
    text = ""
    for column, rows in zip(axis.columns, counts, strict=True):
        sign, colour = _sign(entry, gaps, column, rows / most, look)
        text += look.tinted(sign * wide, colour) + " " * (axis.step - wide)
    return text + " " * (width - len(axis.columns) * axis.step)


def _sign(
    entry: ModelStatus, gaps: Ranges, column: Interval | None, share: float, look: Look
) -> tuple[str, str]:
    """What stands in one column, and its colour."""
    if column is None:
        return "…", "faint"
    if not entry.partly and entry.stale.overlaps(column):
        return _STALE, "yellow"
    if share > 0:
        return look.shades[min(3, int(share * 4 - 1e-9))], "blue"
    return (_EMPTY, "faint") if gaps.overlaps(column) else (" ", "")


def _counts(entry: ModelStatus, axis: Axis) -> list[int]:
    """The rows of each column: of the cells that begin in it."""
    cells = sorted(entry.cells, key=lambda one: one.cell)
    sums = [0, *accumulate(cell.rows for cell in cells)]
    starts = [cell.cell.start for cell in cells]
    return [
        0 if column is None else sums[_at(starts, column.end)] - sums[_at(starts, column.start)]
        for column in axis.columns
    ]


def _at(starts: Sequence[int], instant: int) -> int:
    from bisect import bisect_left

    return bisect_left(starts, instant)
