"""
Pictures of the docs: each `drawings/NAME.txt`, drawn with the characters of boxes, as an SVG.

    python docs/draw.py           write drawings/*.svg
    python docs/draw.py --check   end with 1 if one of them is not what its text says

A text is read as a grid. Lines and corners become lines, `▶` an arrow, `●` a late row, `▓` and `░`
bars.
A box of single lines is a step, one of double lines is what changes, one with round corners is
stored. A box around boxes is a frame. All else is text, in the middle of its box unless all lines
begin at one place. The file's first line is the picture's title, for readers who do not see it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

DRAWINGS = Path(__file__).parent / "drawings"
WIDE, HIGH = 8.4, 19.0
"""The size of one character of a drawing."""

LINES = {
    "─": "lr",
    "│": "ud",
    "┌": "dr",
    "┐": "dl",
    "└": "ur",
    "┘": "ul",
    "├": "udr",
    "┤": "udl",
    "┬": "dlr",
    "┴": "ulr",
    "┼": "udlr",
    "═": "lr",
    "║": "ud",
    "╔": "dr",
    "╗": "dl",
    "╚": "ur",
    "╝": "ul",
    "╭": "dr",
    "╮": "dl",
    "╰": "ur",
    "╯": "ul",
    "╌": "lr",
    "┆": "ud",
    "╤": "dlr",
}
"""The ends of a character's lines: up, down, left, right."""

ARROWS = {"▶": (1, 0), "◀": (-1, 0), "▼": (0, 1), "▲": (0, -1)}
BARS = {"▓": "#4c7fb8", "░": "#c3d5e8"}
LATE = "●"
SHAPES = {"┌": "#eef2f7", "╔": "#ffe3c2", "╭": "#e0f0e3"}
"""What a box is filled with, by its first corner."""

STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#1f2933}"
    "path{stroke:#52606d;stroke-width:1.4;fill:none}.dashed{stroke-dasharray:4 3}"
)


class Box(NamedTuple):
    """A rectangle of lines: the columns and rows of its corners, and the first corner."""

    left: int
    top: int
    right: int
    bottom: int
    corner: str

    def inside(self, other: Box) -> bool:
        """Whether this one is drawn in another."""
        return (
            other.left < self.left
            and self.right < other.right
            and other.top < self.top
            and self.bottom < other.bottom
        )


class Grid:
    """A drawing by its characters."""

    def __init__(self, text: str) -> None:
        rows = text.rstrip("\n").split("\n")
        self.wide = max(map(len, rows))
        self.rows = [row.ljust(self.wide) for row in rows]

    def at(self, x: int, y: int) -> str:
        """The character at a place; a space outside."""
        inside = 0 <= y < len(self.rows) and 0 <= x < self.wide
        return self.rows[y][x] if inside else " "

    def boxes(self) -> list[Box]:
        """All closed rectangles, large ones first."""
        found = [
            box
            for y, row in enumerate(self.rows)
            for x, corner in enumerate(row)
            if corner in SHAPES
            if (box := self._box(x, y, corner))
        ]
        return sorted(found, key=lambda box: (box.left - box.right) * (box.bottom - box.top))

    def _box(self, left: int, top: int, corner: str) -> Box | None:
        right = self._end(left, top, (1, 0), "┐╗╮")
        bottom = self._end(left, top, (0, 1), "└╚╰")
        if right is None or bottom is None or self.at(right[0], bottom[1]) not in "┘╝╯":
            return None
        return Box(left, top, right[0], bottom[1], corner)

    def _end(self, x: int, y: int, step: tuple[int, int], ends: str) -> tuple[int, int] | None:
        """Where a line from a corner ends, if in one of some other corners."""
        while True:
            x, y = x + step[0], y + step[1]
            if self.at(x, y) in ends:
                return x, y
            if ("l" if step[0] else "u") not in LINES.get(self.at(x, y), ""):
                return None

    def texts(self) -> Iterator[tuple[int, int, str]]:
        """Runs of text: where they begin, and what they say; two spaces end a run."""
        drawn = {*LINES, *ARROWS, *BARS, LATE}
        for y, row in enumerate(self.rows):
            plain = "".join("\0" if char in drawn else char for char in row)
            x = 0
            for part in plain.replace("  ", "\0\0").split("\0"):
                if part.strip():
                    yield x + len(part) - len(part.lstrip()), y, part.strip()
                x += len(part) + 1


def svg(text: str) -> str:
    """A picture of a drawing."""
    title, _, drawing = text.partition("\n")
    grid = Grid(drawing.strip("\n"))
    boxes = grid.boxes()
    width, height = (grid.wide + 4) * WIDE, (len(grid.rows) + 1) * HIGH
    shapes = [*map(_filled, boxes, [any(o.inside(b) for o in boxes) for b in boxes])]
    parts = [*shapes, *_bars(grid), *_lines(grid), *_words(grid, boxes)]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect width="100%" height="100%" rx="6" fill="#fff"/>\n'
        f'<g transform="translate({2 * WIDE:g} {HIGH / 2:g})">\n{body}\n</g>\n</svg>\n'
    )


def _middle(x: float, y: float) -> tuple[float, float]:
    """The middle of a character."""
    return (x + 0.5) * WIDE, (y + 0.5) * HIGH


def _filled(box: Box, frame: bool) -> str:
    (x, y), (to_x, to_y) = _middle(box.left, box.top), _middle(box.right, box.bottom)
    fill = "#fafbfc" if frame else SHAPES[box.corner]
    size = f'width="{to_x - x:g}" height="{to_y - y:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size} rx="4" fill="{fill}"/>'


def _bars(grid: Grid) -> Iterator[str]:
    """Bars of time, and late rows."""
    for y, row in enumerate(grid.rows):
        for x, char in enumerate(row):
            if char in BARS and grid.at(x - 1, y) != char:
                end = x
                while grid.at(end, y) == char:
                    end += 1
                size = f'width="{(end - x) * WIDE:g}" height="{HIGH * 0.7:g}"'
                place = f'x="{x * WIDE:g}" y="{(y + 0.15) * HIGH:g}"'
                yield f'<rect {place} {size} rx="3" fill="{BARS[char]}"/>'
            elif char == LATE:
                cx, cy = _middle(x, y)
                yield f'<circle cx="{cx:g}" cy="{cy:g}" r="5" fill="#d9480f"/>'


def _lines(grid: Grid) -> Iterator[str]:
    """Lines and arrows, each straight one in one piece."""
    for y in range(len(grid.rows)):
        yield from _straight(grid, (0, y), (1, 0))
    for x in range(grid.wide):
        yield from _straight(grid, (x, 0), (0, 1))
    for y, row in enumerate(grid.rows):
        for x, char in enumerate(row):
            if char in ARROWS:
                yield _arrow(x, y, *ARROWS[char])


def _straight(grid: Grid, start: tuple[int, int], step: tuple[int, int]) -> Iterator[str]:
    """The lines of one row or column."""
    (x, y), (right, down) = start, step
    end, begin = ("r", "l") if right else ("d", "u")
    while x < grid.wide and y < len(grid.rows):
        first = x, y
        while end in LINES.get(grid.at(x, y), "") and begin in LINES.get(
            grid.at(x + right, y + down), ""
        ):
            x, y = x + right, y + down
        if (x, y) != first:
            yield _line(first, (x, y), dashed=grid.at(*first) in "╌┆")
        x, y = x + right, y + down


def _line(start: tuple[int, int], end: tuple[int, int], *, dashed: bool) -> str:
    (x, y), (to_x, to_y) = _middle(*start), _middle(*end)
    kind = ' class="dashed"' if dashed else ""
    return f'<path{kind} d="M{x:g} {y:g}L{to_x:g} {to_y:g}"/>'


def _arrow(x: int, y: int, right: int, down: int) -> str:
    """A head whose tip touches what follows, with the rest of its line."""
    cx, cy = _middle(x, y)
    tip = cx + right * WIDE, cy + down * HIGH
    back = tip[0] - right * 8, tip[1] - down * 8
    side = down * 4.5, right * 4.5
    points = (tip, (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1]))
    drawn = " ".join(f"{px:g},{py:g}" for px, py in points)
    start = cx - right * WIDE, cy - down * HIGH
    line = f'<path d="M{start[0]:g} {start[1]:g}L{back[0]:g} {back[1]:g}"/>'
    return f'{line}<polygon points="{drawn}" fill="#52606d"/>'


def _words(grid: Grid, boxes: list[Box]) -> Iterator[str]:
    """The texts, at their place, or in the middle of their box or line."""
    texts = list(grid.texts())
    inner = {box for box in boxes if not any(other.inside(box) for other in boxes)}
    for box in (*boxes, None):
        around = [one for one in texts if box == _innermost(boxes, one[0], one[1])]
        places = [x for x, _, _ in around]
        one_a_line = len({y for _, y, _ in around}) == len(around)
        listed = len(set(places)) == 1 < len(around)  # all lines begin at one place
        for x, y, text in around:
            middle, anchor = float(x), ' text-anchor="middle"'
            if box in inner and box and one_a_line and not listed:
                middle = (box.left + box.right + 1) / 2
            elif LINES.get(grid.at(x - 2, y)) and LINES.get(grid.at(x + len(text) + 1, y)):
                middle = x + len(text) / 2
            else:
                anchor = ""
            place = f'x="{middle * WIDE:g}" y="{(y + 0.5) * HIGH + 4.5:g}"'
            yield f"<text {place}{anchor}>{escape(text)}</text>"


def _innermost(boxes: list[Box], x: int, y: int) -> Box | None:
    """The smallest box around a place."""
    around = [b for b in boxes if b.left < x < b.right and b.top < y < b.bottom]
    return around[-1] if around else None


def main() -> int:
    """Write the pictures, or compare them with their texts."""
    old = []
    for path in sorted(DRAWINGS.glob("*.txt")):
        picture, drawn = path.with_suffix(".svg"), svg(path.read_text(encoding="utf-8"))
        if not picture.exists() or picture.read_text(encoding="utf-8") != drawn:
            old.append(path.name)
            if "--check" not in sys.argv:
                picture.write_text(drawn, encoding="utf-8")
    if old and "--check" in sys.argv:
        sys.stderr.write(f"Run `python docs/draw.py`: {', '.join(old)} changed.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
