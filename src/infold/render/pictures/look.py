"""
How a picture may look: how wide, and whether with colours and signs beyond ASCII.

What a picture shows is never told by colour alone, so that the plain one says the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

NARROWEST = 40
"""No picture is made narrower: names and numbers would have no room."""

_COLOURS = {"blue": "34", "yellow": "33", "faint": "2", "strong": "1"}
_PLAIN = str.maketrans({"·": "-", "…": "~"})


@dataclass(frozen=True, slots=True)
class Look:
    """The width of a picture in characters; a ``plain`` one is ASCII, without colours."""

    width: int = 100
    plain: bool = True

    @property
    def shades(self) -> str:
        """Four signs, from few to many."""
        return ".:*#" if self.plain else "░▒▓█"

    def tinted(self, text: str, colour: str) -> str:
        """A text in a colour."""
        if self.plain or not text.strip():
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def bar(self, share: float, width: int) -> str:
        """A horizontal bar, its end to an eighth of a character; whatever is not 0 is seen."""
        if share <= 0:
            return ""
        if self.plain:
            return "#" * max(1, round(share * width))
        eighths = max(1, round(share * width * 8))
        return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()

    def wrapped(self, text: str) -> list[str]:
        """A text in lines that are not too wide, all indented as the first."""
        indent = " " * (len(text) - len(text.lstrip()))
        return wrap(text, self.width, subsequent_indent=indent, break_on_hyphens=False)

    def screen(self, lines: Sequence[str]) -> str:
        """The lines as one text; of a plain one the signs that infold puts in are ASCII."""
        text = "\n".join(line.rstrip() for line in lines)
        return text.translate(_PLAIN) if self.plain else text


def compact(number: float) -> str:
    """A number in at most ten characters: ``1,204``, ``12.5``, ``3.41M``, ``-2.5e+40``."""
    size = abs(number)
    if size >= 1e15 or 0 < size < 1e-3:
        return f"{number:.3g}"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e5, "k")):
        if size >= limit:
            return _three_digits(number / (1e3 if unit == "k" else limit)) + unit
    return f"{int(number):,}" if number == int(number) else _three_digits(number)


def _three_digits(number: float) -> str:
    """A number below a million with three digits, or all that are before the point."""
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    digits = 3 if abs(number) < 0.1 else digits
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shade_limits(most: int) -> tuple[int, int, int, int]:
    """From how many rows on each of four shades counts, so that each covers as many powers."""
    return (1, *(max(1, math.ceil(most ** (part / 4))) for part in (1, 2, 3)))


def shade(look: Look, rows: int, limits: Sequence[int]) -> str:
    """The sign for so many rows; a blank for none."""
    level = sum(rows >= limit for limit in limits)
    return look.shades[level - 1] if level else " "


def shades_text(look: Look, limits: Sequence[int]) -> str:
    """What the shades mean: ``░ 1  ▒ 12  ▓ 144  █ 1,728 rows or more``."""
    signs = {limit: sign for sign, limit in zip(look.shades, limits, strict=True)}
    parts = "  ".join(f"{sign} {limit:,}" for limit, sign in signs.items())
    return f"{parts} rows or more"
