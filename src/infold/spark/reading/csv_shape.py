"""
What a CSV file is as a whole: its header, and what takes it apart.

``csv_files`` says what a CSV file is.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from io import TextIOWrapper
from itertools import dropwhile
from typing import BinaryIO, Literal, NamedTuple

from infold.core.model import Drift, Source
from infold.messages import run_errors
from infold.spark.reading.drift import (
    DAMAGED,
    FileShape,
    PresentFile,
    check_unpacks,
    differences,
)

FIELDS = 20_480
"""How many fields a record may have for Spark, but in a file with a line that long."""
_LONGEST = (1 << 31) - 1


class Way(Enum):
    """What takes a file apart; ``csv_files`` says why."""

    LINES = "lines"
    WHOLE_LF = "whole files whose records end at LF"
    WHOLE_CRLF = "whole files whose records end at CR and LF"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class CsvShape(FileShape):
    """
    What decides how a CSV file is read: its header, what takes it apart, whether some bytes may be
    no UTF-8, and whether a line is so long that it may have more fields than Spark makes room for.
    And whether a file without a header begins with a mark of its encoding, which the reader of
    whole files leaves in the first field.
    """

    header: tuple[str, ...]
    way: Way
    bytewise: bool
    long: bool
    mark: bool = False


def check_readable(source: Source, file: PresentFile) -> None:
    """See ``FormatReader``: it unpacks, and no quote takes in further rows or is no quote."""
    check_unpacks(source, file)
    if source.quoted:
        _refuse_swallowing(source, file)
    if source.positions:
        _begins_with_mark(source, file)


def shape_of(file: PresentFile, source: Source) -> CsvShape | None:
    """
    The shape of a file; None for one without a header, which has no rows.

    Raises ``errors.unreadable_file``.
    """
    header = _header(file, source)
    if not header:
        return None
    twice = sorted({name for name in header if header.count(name) > 1})
    wrong = [f"column {name} is there twice" for name in twice]
    optional = all(column.optional for column in source.columns)
    if (
        optional
        and not source.positions
        and not {*source.unread_columns, *(column.name for column in source.columns)} & set(header)
    ):
        wrong.append("no column of the source is in its first line")
    drift = differences(source, file, header, wrong)
    try:
        mark = bool(source.positions) and _begins_with_mark(source, file)
        found = _bytes(source, file, header, quoted=source.quoted)
        way = _way(source, file, header, found)
        long = file.packed or (file.size >= FIELDS and _has_long_line(file))
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    bytewise = not (found.text and source.quoted) or way is Way.RECORDS
    return CsvShape(header, way, bytewise=bytewise, long=long, mark=mark, drift=drift)


def _has_long_line(file: PresentFile) -> bool:
    """Whether a line is so long that it may have more fields than Spark makes room for."""
    with file.open() as opened:
        return has_long_line(opened, FIELDS)


def _bytes(source: Source, file: PresentFile, header: Sequence[str], *, quoted: bool) -> Bytes:
    with file.open() as opened:
        return bytes_of(opened, blanks_of(source), one_field=len(header) == 1, quoted=quoted)


def _way(source: Source, file: PresentFile, header: Sequence[str], found: Bytes) -> Way:
    """What takes a file apart; raises ``errors.unreadable_file`` where it was not judged before."""
    judged = file.known or source.on_unreadable is Drift.SET_ASIDE
    if not found.quotes and not found.odd:
        return Way.LINES
    whole = Way.WHOLE_LF
    if found.returns or (found.quotes and not judged):
        quotes = _quotes(source, file) if judged else _refuse_swallowing(source, file)
        if quotes.ends == {CRLF} and not quotes.strays:
            whole = Way.WHOLE_CRLF
        elif not quotes.ends <= {LF}:
            whole = Way.RECORDS
            spans = quotes.spans and _quotes(source, file, closely=True).spans
            if found.quotes and not spans and not _bytes(source, file, header, quoted=False).odd:
                return Way.LINES
    return Way.RECORDS if found.blank and not source.positions else whole


def _begins_with_mark(source: Source, file: PresentFile) -> bool:
    with file.open() as opened:
        first = opened.read(4)
    if source.quoted and first == codecs.BOM_UTF8 + b'"':
        raise run_errors.unreadable_file(
            path=file.path, why="there is a mark of its encoding before the first quote"
        )
    return first.startswith(codecs.BOM_UTF8)


def blanks_of(source: Source) -> str:
    """The characters of a blank line: space and tab, unless one is the delimiter."""
    return " \t".replace(source.delimiter, "")


def _header(file: PresentFile, source: Source) -> tuple[str, ...]:
    """
    The names in the first line that is not blank; none when there is no such line.

    Without a header, those of the columns that its fields are.
    """
    first = next(_records(file, source), ())
    if not source.positions:
        return first
    more = range(len(source.positions), len(first))
    return (*source.positions[: len(first)], *(f"number {at + 1}" for at in more))


def has_rows(file: PresentFile, source: Source) -> bool:
    """Whether there is anything after the header."""
    records = _records(file, source)
    if not source.positions:
        next(records, None)
    return any(len(record) > 1 or record[0].strip(blanks_of(source)) for record in records)


def _records(file: PresentFile, source: Source) -> Iterator[tuple[str, ...]]:
    """The lines that are not empty, from the first that is not blank on, as their fields."""
    blank = f"{blanks_of(source)}\r\n"
    csv.field_size_limit(_LONGEST)  # a longer field is text like any other
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if source.quoted else csv.QUOTE_NONE
    try:
        with (
            file.open() as opened,
            TextIOWrapper(opened, "utf-8-sig", errors="replace", newline="") as lines,
        ):
            found = dropwhile(lambda line: not line.strip(blank), lines)
            for record in csv.reader(found, delimiter=source.delimiter, quoting=quoting):
                if record:
                    yield tuple(record)
    except (*DAMAGED, csv.Error) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error


def _refuse_swallowing(source: Source, file: PresentFile) -> Quotes:
    """Raise ``errors.unreadable_file`` where a quote that does not end takes in further rows."""
    found = _quotes(source, file)
    if found.swallows is not None:
        line = found.swallows
        raise run_errors.unreadable_file(
            path=file.path,
            why=f"a field in line {line} begins with a quote that does not end on that line",
        )
    return found


def _quotes(source: Source, file: PresentFile, *, closely: bool = False) -> Quotes:
    with file.open() as opened:
        return quotes_of(opened, source.delimiter, quoted=source.quoted, closely=closely)


_CHUNK = 1 << 22
_TRIMMED = bytes(range(0x21))
"""What Java trims."""


class Bytes(NamedTuple):
    """What is in a file."""

    quotes: bool
    """Whether there is a quote that is one."""
    returns: bool
    """Whether there is a CR."""
    odd: bool
    """Whether a line that is not blank is nothing once trimmed by Java; sought up to a quote."""
    text: bool
    """Whether all of it is UTF-8."""
    blank: bool
    """Whether it begins with a line of blanks."""


def bytes_of(file: BinaryIO, blanks: str, *, one_field: bool, quoted: bool = True) -> Bytes:
    """A look through a file; blanks are a value where a record has one field."""
    quotes = returns = odd = blank = False
    text, decoder = True, codecs.getincrementaldecoder("utf-8")()
    others = "\r\n" if one_field else f"{blanks}\r\n"
    shown = re.escape(bytes(code for code in _TRIMMED if chr(code) not in others))
    trimmed = re.compile(
        rb"(?:\A|[\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]*[" + shown + rb"]"
        rb"[\x00-\x09\x0b\x0c\x0e-\x20]*+(?=[\r\n]|\Z)"
    )
    begins = rb"(?:\xef\xbb\xbf)?[\r\n]*[" + blanks.encode() + rb"]+(?:[\r\n]|\Z)"
    carried, chunk, first = b"", b"-", True
    while chunk:
        chunk = file.read(_CHUNK)
        if first:
            blank, first = re.match(begins, chunk) is not None, False
        quotes = quotes or (quoted and b'"' in chunk)
        returns = returns or b"\r" in chunk
        if not quotes and not odd:
            lines = carried + chunk
            end = max(lines.rfind(b"\n"), lines.rfind(b"\r")) + 1 if chunk else len(lines)
            odd = _suspect(lines[:end]) and trimmed.search(lines, 0, end) is not None
            carried = lines[end:]
            if carried.strip(_TRIMMED):
                carried = b"-"  # whatever follows, this line is not trimmed to nothing
        if text:
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                text = False
    return Bytes(quotes, returns, odd, text, blank)


_CONTROLS = bytes(code for code in range(0x20) if chr(code) not in "\t\r\n")
_STARTS = (b"\n ", b"\n\t", b"\r ", b"\r\t")


def _suspect(lines: bytes) -> bool:
    """Whether one of the lines may have only characters that Java trims; that is rare."""
    if lines[:1] in (b" ", b"\t") or any(start in lines for start in _STARTS):
        return True
    return len(lines.translate(None, delete=_CONTROLS)) != len(lines)


def has_long_line(file: BinaryIO, least: int) -> bool:
    """Whether a line has as many bytes."""
    carried = b""
    while chunk := file.read(_CHUNK):
        lines, at = carried + chunk, 0
        while len(lines) - at >= least:
            end = max(lines.rfind(sign, at, at + least) for sign in (b"\n", b"\r"))
            if end < 0:
                return True
            at = end + 1
        carried = lines[at:]
    return False


# A field that begins with a quote ends at the next single quote. If that is missing, or is followed
# by anything but the end of a field, every reader takes the following rows for the field's text,
# and they would be lost in it. (A stray quote that does not reach beyond its line is kept as it
# is.)
#
# Records end at LF, CR, or both, one file's in several ways too. In quotes these are text.

LF, CRLF, CR = "\n", "\r\n", "\r"


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
        chunk = file.read(max(_CHUNK, len(rest)))
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
