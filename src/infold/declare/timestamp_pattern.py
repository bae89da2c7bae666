"""
Patterns of times, judged as Spark's parser does before it reads a value.

Spark takes the pattern letters of Java's ``DateTimeFormatter`` but for those of weeks, and each as
often in a row as Java does but for the longest. What it refuses it refuses by an exception in the
middle of a run. The tests compare this with Spark, letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_UP_TO = {
    **dict.fromkeys("dhHkKms", 2),
    **dict.fromkeys("GML", 4),
    **dict.fromkeys("XxZ", 5),
    "y": 6,
    "D": 3,
    "S": 9,
    "a": 1,
    "g": 19,
}
"""How often a letter may be there in a row, at most."""

_EXACTLY = {"V": (2,), "O": (1, 4)}

_OTHERWISE = {
    **dict.fromkeys("zv", "names of zones as in PST mean several: VV reads Europe/Berlin and UTC"),
    **dict.fromkeys("YWwuec", "Spark reads no weeks, and no days of weeks: yyyy-MM-dd says a day"),
    **dict.fromkeys("EFqQ", "Spark writes it and does not read it; quoted text is read as it is"),
}
"""Letters that Java has, and why they are none here."""

_BARE_NANOS = re.compile(r"(?<![.,S])S{7}")
"""Digits finer than microseconds right after the seconds: where they begin is unknown."""


def find_pattern_fault(pattern: str) -> str:
    """Why Spark reads no time by a pattern, or reads some as others; empty if nothing is wrong."""
    return next(_wrong(pattern), "")


def _wrong(pattern: str) -> Iterator[str]:
    # Each second part is in quotes. With fractions Spark looks for no end of the last one.
    parts = pattern.split("'")
    if "S" not in pattern and len(parts) % 2 == 0:
        yield "a quote has no end"
    parts = parts[::2]
    letters = [letter for part in parts for letter in part if letter.isascii() and letter.isalpha()]
    if not letters:
        yield "it has no letter of a part of a time"
    for part in parts:
        for letter, run in groupby(part):
            yield from _wrong_run(letter, len([*run]))
    opened = 0
    for letter in "".join(parts):
        opened += (letter == "[") - (letter == "]")
        if opened < 0:
            yield "a ] has no [ before it"
    if _BARE_NANOS.search(pattern):
        yield "digits finer than microseconds come after a point: .SSSSSSSSS"


def _wrong_run(letter: str, count: int) -> Iterator[str]:
    """What is wrong with a letter that is there so often in a row."""
    if letter in _OTHERWISE:
        yield f"{letter}: {_OTHERWISE[letter]}"
    elif letter in "{}#":
        yield f"{letter} is reserved: write it in quotes"
    elif letter.isascii() and letter.isalpha():
        allowed = _EXACTLY.get(letter) or range(1, _UP_TO.get(letter, 0) + 1)
        if not allowed:
            yield f"{letter} is no letter of a pattern: write text in quotes, 'T'"
        elif count not in allowed:
            known = " or ".join(letter * one for one in allowed[:4])
            yield f"{letter * count}: it is {known}"
