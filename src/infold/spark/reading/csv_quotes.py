"""
What quotes in CSV do to lines: which they swallow, which they hold together.

A field that begins with a quote ends at the next single quote. If that is missing, or is followed
by anything but the end of a field, every reader takes the following rows for the field's text, and
they would be lost in it. (A stray quote that does not reach beyond its line is kept as it is.)

Records end at LF, CR, or both, one file's in several ways too. In quotes these are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO, NamedTuple

LF, CRLF, CR = "\n", "\r\n", "\r"

_QUOTE_CHUNK = 1 << 22


class Quotes(NamedTuple):
    """What a look at all quotes of a file finds."""

    swallows: int | None
    """The line in which a field begins that swallows others; the look ends there."""
    strays: bool
    """Whether a field that begins with a quote does not end with one."""
    spans: bool
    """Whether a field in quotes has ends of lines in it, or may have them."""
    ends: frozenset[str]
    """How the records end."""


def quotes_of(
    file: BinaryIO, delimiter: str, *, quoted: bool = True, closely: bool = False
) -> Quotes:
    """
    A look through a file; where nothing is quoted, at the ends of its lines alone.

    Where all of its lines end alike, only one that looks ``closely`` knows whether a field spans
    them; that takes twice as long.
    """
    well, opened, field = _patterns(delimiter) if quoted else _NO_QUOTES
    ends: set[str] = set()
    swallows, strays, spans = None, False, False
    rest, line, chunk = b"", 1, b"-"
    while chunk and swallows is None:
        # What is carried along doubles at least: a field that never ends is read once, not often.
        chunk = file.read(max(_QUOTE_CHUNK, len(rest)))
        text, at = rest + chunk, 0
        # What follows the last end is not known, nor whether a CR there is half of an end.
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1 if chunk else len(text)
        while True:
            stop = well.match(text, at, end).end()  # type: ignore[union-attr] # always
            part, at = text[at:stop], stop
            kinds = _ends(part)
            if not quoted or b'"' not in part:
                ends |= kinds
            elif closely or len(kinds) > 1:
                bare = field.sub(b'"', part)
                spans = spans or _breaks(bare) < _breaks(part)
                ends |= _ends(bare)
            else:
                spans = spans or bool(kinds)
                ends |= kinds
            if at >= end:
                break
            begun = opened.match(text, at, end)
            assert begun is not None, "it stopped at a quote"
            if begun.end() == end and chunk:
                break  # it may end further on
            if begun.end() == end or _breaks(begun[0]):
                swallows = line + text.count(b"\n", 0, at)
                break
            strays = True
            at = begun.end() + 1
        line += text.count(b"\n", 0, at)
        rest = text[at:]
    return Quotes(swallows, strays, spans, frozenset(ends))


def records(text: bytes, delimiter: str, *, quoted: bool) -> Iterator[bytes]:
    """All records of a file without their ends, those of no bytes too."""
    if not quoted:
        yield from text.splitlines()
        return
    for found in _record(delimiter).finditer(text):
        yield found[1]


def _ends(text: bytes) -> set[str]:
    pairs = text.count(b"\r\n")
    found = {LF: text.count(b"\n") > pairs, CRLF: pairs > 0, CR: text.count(b"\r") > pairs}
    return {end for end, there in found.items() if there}


def _breaks(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r")


Patterns = tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]

_NO_QUOTES: Patterns = (re.compile(rb"(?s:.*+)"), re.compile(b""), re.compile(b""))


@cache
def _patterns(delimiter: str) -> Patterns:
    """As much as is well quoted; a field up to where a quote ends it, or the end; a good field."""
    start, field = _field(delimiter)
    return (
        re.compile(rb'(?:[^"]++|' + field + rb"|(?!" + start + rb')")*+'),
        re.compile(rb'"(?:[^"]++|"")*+'),
        re.compile(field),
    )


@cache
def _record(delimiter: str) -> re.Pattern[bytes]:
    """A record and its end; a field that is quoted and has more behind that is in its line."""
    start, field = _field(delimiter)
    stray = start + rb'(?:[^"\r\n]++|"")*+"'
    return re.compile(
        rb'((?:[^"\r\n]++|' + field + rb"|" + stray + rb'|")*+)(?:\r\n?|\n|\Z)',
    )


def _field(delimiter: str) -> tuple[bytes, bytes]:
    """The quote that a quoted field begins with, and all of the field."""
    parts = re.escape(delimiter.encode())
    start = rb'"(?:(?<=\A")|(?<=[\r\n]")|(?<=' + parts + rb'"))'
    return start, start + rb'(?:[^"]++|"")*+"(?=[\r\n]|' + parts + rb"|\Z)"
