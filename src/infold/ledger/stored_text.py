"""
Texts for a database that cannot store the character NUL, as PostgreSQL; users' keys may have it.

One character of Unicode's private use area marks what stands for another one: after ``MARK`` a 0
is NUL, and a 1 is ``MARK`` itself. Any other text is stored as it is.
"""

from __future__ import annotations

MARK = "\ue000"


def escaped(text: str) -> str:
    """The text as it is stored."""
    if "\0" not in text and MARK not in text:
        return text
    return text.replace(MARK, f"{MARK}1").replace("\0", f"{MARK}0")


def unescaped(text: str) -> str:
    """The text that :func:`escaped` stored."""
    return text.replace(f"{MARK}0", "\0").replace(f"{MARK}1", MARK) if MARK in text else text
