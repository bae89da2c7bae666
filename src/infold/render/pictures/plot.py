"""Rows of a table as bars, lines and shades: over time, or one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from infold.core.interval import Interval, Ranges
from infold.core.report import OverTime, Point, RowByRow, Series
from infold.render import formatting
from infold.render.coverage_strip import Axis, axis, header_lines
from infold.render.pictures.look import Look, compact
from infold.render.table import cell as cell_text

HEIGHT = 6
"""How many lines the bars of one column have."""

GROUP_HEIGHT = 3
"""How many the line of one group has, of which there are several."""

_NUMBER = 10
"""How wide the text of a number is at most."""


def plot_screen(
    table: str, drawn: OverTime | RowByRow, look: Look, note: str = "", *, as_lines: bool = False
) -> str:
    """All pictures of a table, over time as bars or as lines, and what they do not show."""
    if isinstance(drawn, RowByRow):
        lines = _row_by_row_lines(table, drawn, look)
    else:
        lines = _over_time_lines(table, drawn, look, as_lines=as_lines)
    ends = [note] if note else []
    if drawn.not_drawn:
        ends.append(f"Not drawn: {formatting.names(drawn.not_drawn)} (--columns).")
    if isinstance(drawn, OverTime) and drawn.left_out:
        ends.append(f"{formatting.count(drawn.left_out, 'row')} without a time.")
    folded = [line for text in ends for line in look.wrapped(text)]
    return look.screen([*lines, *([""] if folded else []), *folded])


def _over_time_lines(table: str, drawn: OverTime, look: Look, *, as_lines: bool) -> list[str]:
    points = [point for series in drawn.series for point in series.points]
    if not points:
        return look.wrapped(f"{table} has no values with a time in {drawn.time} to draw.")
    margin = _NUMBER + 4
    if drawn.by and not as_lines:
        names = [name for series in drawn.series for name, _ in series.groups]
        margin = 4 + min(max(len(cell_text(name)) for name in names), max(8, look.width // 3))
    axes = axis(Ranges.of(point.cell for point in points), drawn.finest, look.width - margin)
    by = f", for each {drawn.by}" if drawn.by else ""
    lines = look.wrapped(f"{table} by {drawn.time}, a column is {_unit_with_article(axes)}{by}")
    header = [" " * margin + line for line in header_lines(axes, look.width - margin)]
    for series in drawn.series:
        lines += ["", *look.wrapped(_title(series, axes, drawn))]
        if not series.points:
            continue
        if as_lines:
            lines += [*_line_lines(series, axes, look), *header]
        elif drawn.by:
            lines += [*header, *_shade_lines(series, axes, margin, look)]
        else:
            lines += [*_bar_lines(_columns(series, axes), axes, look), *header]
    if not drawn.by and any(not one.adds_up for one in drawn.series):
        low, high = ("#", ":") if look.plain else ("█", "░")
        if axes.granularity is not drawn.finest or _has_ranges(drawn.series):
            unit = _unit_with_article(axes)
            text = f"  {low} all values of {unit} reach here, {high} some do"
            if as_lines:
                text = f"  Where there are two lines: the lowest and the highest value of {unit}"
            lines += ["", *look.wrapped(text)]
    return lines


def _line_lines(series: Series, axis: Axis, look: Look) -> list[str]:
    """The line of a series, or of each of its groups on one scale, with the ends of the scale."""
    every = _columns(series, axis)
    if not series.groups:
        return _on_scale(every, axis, scale_of(every, HEIGHT), look)
    scale, lines = scale_of(every, GROUP_HEIGHT), []
    for name, points in series.groups:
        columns = _placed(points, axis, adds_up=False)
        lines += [f"  {formatting.clip(cell_text(name), look.width - 2)}"]
        lines += _on_scale(columns, axis, scale, look)
    return lines


def _on_scale(columns: Columns, axis: Axis, scale: Scale, look: Look) -> list[str]:
    drawn = line_texts(columns, axis.columns, axis.step, scale, look)
    labels = {line: compact(value) for line, value in scale.ends().items()}
    texts = zip(range(scale.height - 1, -1, -1), drawn, strict=True)
    return [_after_label(labels.get(line, ""), text, look) for line, text in texts]


def _after_label(label: str, text: str, look: Look) -> str:
    ruler = "|" if look.plain else "│"
    return f"  {label:>{_NUMBER}}{ruler} " + look.tinted(text.rstrip(), "blue")


def _unit_with_article(axis: Axis) -> str:
    unit = axis.granularity.value
    return f"an {unit}" if unit == "hour" else f"a {unit}"


def _has_ranges(series: Sequence[Series]) -> bool:
    return any(point.low != point.high for one in series for point in one.points)


def _title(series: Series, axis: Axis, drawn: OverTime) -> str:
    """What is drawn, and from where to where its values reach."""
    if not series.points:
        return f"{series.name}: no values"
    if series.adds_up:
        known = [column[1] for column in _columns(series, axis) if column is not None]
        return f"{series.name}: up to {compact(max(known))} in {_unit_with_article(axis)}"
    low = min(point.low for point in series.points)
    high = max(point.high for point in series.points)
    reach = compact(low) if low == high else f"{compact(low)} to {compact(high)}"
    if drawn.by and axis.granularity is not drawn.finest:
        reach += f", the highest of {_unit_with_article(axis)}"
    return f"{series.name}: {reach}"


def _columns(series: Series, axis: Axis) -> Columns:
    """What each column of the axis shows of a series."""
    return _placed(series.points, axis, adds_up=series.adds_up)


def _placed(points: Sequence[Point], axis: Axis, *, adds_up: bool) -> Columns:
    """Points by columns; both are in the order of time."""
    placed: list[tuple[float, float] | None] = []
    at = 0
    for column in axis.columns:
        inside: list[Point] = []
        while column and at < len(points) and points[at].cell.start < column.end:
            if points[at].cell.start >= column.start:
                inside.append(points[at])
            at += 1
        if not inside:
            placed.append(None)
        elif adds_up:
            total = sum(point.high for point in inside)
            placed.append((total, total))
        else:
            low, high = min(one.low for one in inside), max(one.high for one in inside)
            placed.append((low, high))
    return placed


def _bar_lines(columns: Columns, axis: Axis, look: Look) -> list[str]:
    """Bars up from zero and down from it; a lighter end reaches to the highest (or lowest)."""
    known = [column for column in columns if column is not None]
    top, bottom = max(0.0, *(high for _, high in known)), min(0.0, *(low for low, _ in known))
    up, down, unit = _scale(top, bottom)
    wide = max(1, axis.step - 1)
    lines = []
    for line in range(up, -down, -1):
        sign = _above(line, unit, look) if line > 0 else _below(1 - line, unit, look)
        label = _scale_label(line, up, down, unit)
        text = "".join(
            (_gap_mark(axis.columns[i], line) if one is None else sign(one) * wide).ljust(axis.step)
            for i, one in enumerate(columns)
        )
        lines.append(_after_label(label, text, look))
    return lines


def _gap_mark(column: Interval | None, line: int) -> str:
    """A stretch without anything is marked once, at the foot of the bars."""
    return "…" if column is None and line == 1 else " "


def _scale(top: float, bottom: float) -> tuple[int, int, float]:
    """How many lines there are above and below zero, and how much one of them is."""
    if top == bottom == 0:
        return 1, 0, 1.0
    if bottom == 0:
        return HEIGHT, 0, top / HEIGHT
    if top == 0:
        return 0, HEIGHT, -bottom / HEIGHT
    down = min(HEIGHT - 1, max(1, round(HEIGHT * _share_below(top, bottom))))
    return HEIGHT - down, down, max(top / (HEIGHT - down), -bottom / down)


def _scale_label(line: int, up: int, down: int, unit: float) -> str:
    if line == up and up:
        return compact(up * unit)
    if line == 1 - down and down:
        return compact(-down * unit)
    return "0" if line == 1 else ""


Sign = Callable[[tuple[float, float]], str]


def _above(line: int, unit: float, look: Look) -> Sign:
    """The sign of a value in one of the lines above zero, counted from it."""

    def sign(value: tuple[float, float]) -> str:
        low, high = value
        whole, light = max(0.0, low) / unit - (line - 1), max(0.0, high) / unit - (line - 1)
        if whole >= 1:
            return "#" if look.plain else "█"
        if light >= 0.5 and whole < 0.5:
            return ":" if look.plain else "░"
        if whole > 0:
            eighths = "____####" if look.plain else "▁▂▃▄▅▆▇█"
            return eighths[int(whole * 8)]
        foot = line == 1 and (light > 0 or low <= 0 <= high)
        return ("_" if look.plain else "▁") if foot else " "

    return sign


def _below(line: int, unit: float, look: Look) -> Sign:
    """What a column shows in a line below zero, ``line`` lines down from it, from 1 on."""

    def sign(value: tuple[float, float]) -> str:
        low, high = value
        whole, light = -min(0.0, high) / unit - (line - 1), -min(0.0, low) / unit - (line - 1)
        if whole >= 0.75:
            return "#" if look.plain else "█"
        if whole > 0 and (whole >= 0.25 or line == 1):
            return "#" if look.plain else "▀"
        if light >= 0.5 or (light > 0 and line == 1):
            return ":" if look.plain else "░"
        return " "

    return sign


def _shade_lines(series: Series, axis: Axis, margin: int, look: Look) -> list[str]:
    """A line for each group, its values as shades; the last line says what they mean."""
    low = min(0.0, *(point.low for point in series.points))
    high = max(0.0, *(point.high for point in series.points))
    limits = [low * (1 - part / 4) + high * part / 4 for part in range(4)]
    wide = max(1, axis.step - 1)
    lines = []
    for name, points in series.groups:
        text = ""
        placed = _placed(points, axis, adds_up=False)
        for column, value in zip(axis.columns, placed, strict=True):
            sign = "…" if column is None else " "
            if value is not None:
                sign = look.shades[max(0, sum(value[1] >= limit for limit in limits) - 1)]
            text += (sign * wide).ljust(axis.step)
        label = formatting.clip(cell_text(name), margin - 4)
        lines.append(f"  {label:<{margin - 2}}" + look.tinted(text.rstrip(), "blue"))
    legend = "  ".join(
        f"{sign} {compact(limit)}" for sign, limit in zip(look.shades, limits, strict=True)
    )
    return [*lines, *look.wrapped(f"  {legend} or more")]


def _row_by_row_lines(table: str, drawn: RowByRow, look: Look) -> list[str]:
    name = min(max(len(cell_text(one)) for one in drawn.labels), max(8, look.width // 3))
    room = look.width - name - _NUMBER - 6
    lines = [f"{table} by {drawn.label}"]
    for column, values in drawn.columns:
        known = [one for one in values if one is not None]
        top, bottom = max([0.0, *known]), min([0.0, *known])
        share = _share_below(top, bottom) if bottom else 0.0
        left = min(room - bool(top), max(bool(bottom), round(room * share)))
        lines += ["", column]
        for label, value in zip(drawn.labels, values, strict=True):
            shown = formatting.clip(cell_text(label), name)
            number = "NULL" if value is None else compact(value)
            bar = _bar(value or 0.0, (top, bottom), (left, room - left), look)
            lines.append(f"  {shown:<{name}}  {number:>{_NUMBER}}  " + look.tinted(bar, "blue"))
    return lines


def _share_below(top: float, bottom: float) -> float:
    """Which part of a picture is below zero; by halves, as the span of huge numbers is infinite."""
    return (-bottom / 2) / (top / 2 - bottom / 2)


def _bar(value: float, reach: tuple[float, float], widths: tuple[int, int], look: Look) -> str:
    """A bar to the right of zero, or to the left of it if the value is negative."""
    (top, bottom), (left, right) = reach, widths
    if value < 0:
        size = min(left, max(1, round(value / bottom * left)))
        return " " * (left - size) + ("#" if look.plain else "█") * size
    return " " * left + (look.bar(value / top, right) if top else "")


# Where several values are in one column of the picture there are two lines, of the lowest and of
# the highest. A line joins neighbours on the axis only: nothing is drawn where nothing is known.

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
    known = [column for column in columns if column is not None]
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
    lines = []
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
            text += _braille(inside, look) if inside else "…" if quiet else " "
        lines.append(text)
    return lines


def _dots(columns: Columns, wide: int, scale: Scale, top: int) -> Iterator[Dot]:
    """All dots of the lines through the lowest and through the highest values."""
    for end in (0, 1):
        before: Dot | None = None
        for at, ends in enumerate(columns):
            dot = (
                None
                if ends is None
                else (at * wide + wide // 2, round(scale.share(ends[end]) * top))
            )
            if dot is not None:
                yield from _line_of_dots(before or dot, dot)
            before = dot


def _line_of_dots(first: Dot, last: Dot) -> Iterator[Dot]:
    """
    The dots of a straight line, with no gap in it.

    As many of them as the longer of its two extents, each to the nearest dot.
    """
    (x, y), (across, up) = first, (last[0] - first[0], last[1] - first[1])
    count = max(abs(across), abs(up), 1)
    for part in range(count + 1):
        yield x + round(across * part / count), y + round(up * part / count)


def _braille(inside: Sequence[Dot], look: Look) -> str:
    if look.plain:
        return "|" if len(inside) > 1 else "_-'"[inside[0][1]]
    return chr(_BRAILLE + sum(_SIGNS[y][x] for x, y in inside))
