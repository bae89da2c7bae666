"""
Quotes in CSV that swallow the lines after them.

A field that begins with a quote ends at the next single quote. If that is missing, or is followed
by anything but the end of a field, every reader takes the following rows for the field's text, and
they would be lost in it. (A stray quote that does not reach beyond its line is kept as it is.)
"""

from __future__ import annotations

import re
from functools import cache
from typing import BinaryIO

_CHUNK = 1 << 22


def swallowed(file: BinaryIO, delimiter: str) -> int | None:
    """The line in which a field begins that swallows others; None if there is no such field."""
    well, opened = _patterns(delimiter)
    rest, line, at = b"", 1, 0
    while True:
        # What is carried along doubles at least: a field that never ends is read once, not often.
        chunk = file.read(max(_CHUNK, len(rest)))
        text = rest + chunk
        end = text.rfind(b"\n") + 1 if chunk else len(text)
        at = 0
        while (at := well.match(text, at, end).end()) < end:  # type: ignore[union-attr] # always
            field = opened.match(text, at, end)
            assert field is not None, "it stopped at a quote"
            if field.end() == end and chunk:
                break  # it may end further on
            if field.end() == end or b"\n" in field[0] or b"\r" in field[0]:
                return line + text.count(b"\n", 0, at)
            at = field.end() + 1
        if not chunk:
            return None
        line += text.count(b"\n", 0, at)
        rest = text[at:]


@cache
def _patterns(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """As much as is well quoted; and a quoted field up to where a quote ends it, or the end."""
    parts = re.escape(delimiter.encode())
    start = rb'"(?:(?<=\A")|(?<=[\r\n]")|(?<=' + parts + rb'"))'
    field = start + rb'(?:[^"]++|"")*+"(?=[\r\n]|' + parts + rb"|\Z)"
    return (
        re.compile(rb'(?:[^"]++|' + field + rb"|(?!" + start + rb')")*+'),
        re.compile(rb'"(?:[^"]++|"")*+'),
    )
