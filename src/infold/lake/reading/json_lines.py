"""JSON without a JVM. ``spark/reading/json_lines.py`` says what a line is."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from infold.core.formats import EPOCH_UNITS
from infold.core.model import Source
from infold.lake.reading import listing

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.lake.reading.source_file import SourceFile


list_files = listing.list_files
row_counts = listing.uncounted


def event_times(file: SourceFile, source: Source, column: str) -> Iterator[pa.Array]:
    """See ``FormatFiles``; broken lines are left out."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if source.multiline:
        with file.unpacked() as opened:
            yield _one_by_one(json_values(opened.read()), column)
        return
    kind = pa.int64() if source.timestamp_format in EPOCH_UNITS else pa.string()
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema([(column, kind)]), unexpected_field_behavior="ignore"
    )
    try:
        with file.arrow_stream() as stream:
            table = arrow_json.read_json(stream, parse_options=options)
    except pa.ArrowInvalid:  # a broken line, or values of several kinds
        with file.unpacked() as opened:
            yield _one_by_one(opened, column)
    else:
        yield from table.column(column).chunks


def _one_by_one(objects: Iterable[bytes], column: str) -> pa.Array:
    """The column of objects that Arrow does not read, each value as text."""
    import pyarrow as pa

    values: list[str | None] = []
    for text in objects:
        try:
            value = json.loads(text, parse_float=str, parse_int=str)[column]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        values.append(None if value is None else str(value))
    return pa.array(values, pa.string())


# A file is one value or several, one after the other; a value may take many lines. An object is a
# row, and so is each part of a list; a list inside a list is a part like others. Only brackets,
# quotes and commas are looked at: whether a part is an object is for its reader. So what is wrong
# inside a part spoils that part alone, and what is wrong with the brackets spoils the rest of the
# file, which is one part then.

_MARK = b"\xef\xbb\xbf"
_TEXT = rb'"(?:[^"\\]++|\\.)*+"'
_BEFORE = re.compile(rb'(?:[^"\[{]++|' + _TEXT + rb")*+", re.DOTALL)
"""What is passed over before an object or a list; a quote that does not end is not."""
_BETWEEN = re.compile(rb'(?:[^"\[\]{},]++|' + _TEXT + rb")*+", re.DOTALL)
"""What is passed over between the parts of a list, which commas and brackets end."""
_INSIDE = re.compile(rb'(?:[^"\[\]{}]++|' + _TEXT + rb")*+", re.DOTALL)
"""What is passed over inside a part, where commas end nothing."""

_CLOSING = {b"[": b"]", b"{": b"}"}

NO_END = b"["
"""The part that stands for the end of a list that is not there."""


def json_values(text: bytes) -> Iterator[bytes]:
    """
    The parts of a file, in order; none of nothing and of empty lists.

    A part that is no object is there too, also a comma without a part before it: nothing in the
    file but blanks, the brackets of lists and commas in their places is left out.
    """
    at = len(_MARK) if text.startswith(_MARK) else 0
    while at < len(text):
        start, at = at, _over(_BEFORE, text, at)
        if before := text[start:at].strip():
            yield before
        if text[at : at + 1] == b"[":
            at = yield from _list(text, at + 1)
        elif at < len(text):
            start, at = at, _closed(text, at) or len(text)
            yield text[start:at].strip()


def _list(text: bytes, at: int) -> Generator[bytes, None, int]:
    """The parts of a list whose first bracket is before ``at``; returns where it has ended."""
    start, after_comma = at, False
    while True:
        at = _over(_BETWEEN, text, at)
        sign = text[at : at + 1]
        if sign in _CLOSING and (end := _closed(text, at)):
            at = end
        elif sign in (b",", b"]"):
            part = text[start:at].strip()
            if part or after_comma or sign == b",":
                yield part or b","
            start = at = at + 1
            after_comma = True
            if sign == b"]":
                return at
        else:
            break
    if unclosed := text[start:].strip():
        yield unclosed
    yield NO_END
    return len(text)


def _closed(text: bytes, at: int) -> int:
    """The end of what the bracket at ``at`` opens; 0 where its brackets or quotes do not fit."""
    awaited: list[bytes] = []
    while sign := text[at : at + 1]:
        if sign in _CLOSING:
            awaited.append(_CLOSING[sign])
        elif not awaited or awaited.pop() != sign:
            return 0
        at += 1
        if not awaited:
            return at
        at = _over(_INSIDE, text, at)
    return 0


def _over(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None, "it matches nothing too"
    return match.end()
