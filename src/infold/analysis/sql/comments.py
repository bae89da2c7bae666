"""Comments, as Spark reads them."""

from __future__ import annotations

import re


def continued_comment(source: str, start: int) -> tuple[int, int] | None:
    """Where a comment of one line ends in a backslash: for Spark it goes on in the next."""
    for match in _PIECES.finditer(source, start):
        if match[0].startswith("--") and match[0].endswith("\\"):
            return match.span()
    return None


_PIECES = re.compile(
    r"--[^\n\r]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL
)
