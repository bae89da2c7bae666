"""
What a CSV file is as a whole: its header, and what takes it apart.

``csv_files`` says what a CSV file is.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from io import TextIOWrapper
from itertools import dropwhile
from typing import Literal

from infold.core.model import Drift, Source
from infold.messages import run_errors
from infold.spark.reading.csv_bytes import Bytes, bytes_of, has_long_line
from infold.spark.reading.csv_quotes import CRLF, LF, Quotes, quotes_of
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
