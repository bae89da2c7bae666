"""CSV files without a JVM. ``spark/reading/csv_files.py`` says what a CSV file is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from infold.core.model import Source
from infold.lake.reading import listing

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.lake.reading.source_file import SourceFile

list_files = listing.list_files
row_counts = listing.uncounted


def event_times(file: SourceFile, source: Source, column: str) -> Iterator[pa.Array]:
    """See ``FormatFiles``; rows with a wrong number of fields are left out."""
    import pyarrow as pa
    from pyarrow import csv

    if file.size == 0:
        return
    parse = csv.ParseOptions(
        delimiter=source.delimiter,
        quote_char='"' if source.quoted else False,
        newlines_in_values=True,
        invalid_row_handler=lambda _: "skip",
    )
    by_place = bool(source.positions)
    column = f"f{source.positions.index(column)}" if by_place else column
    read = csv.ReadOptions(autogenerate_column_names=by_place)
    convert = csv.ConvertOptions(
        include_columns=[column], column_types={column: pa.string()}, strings_can_be_null=True
    )
    with file.arrow_stream() as stream:
        table = csv.read_csv(
            stream, read_options=read, parse_options=parse, convert_options=convert
        )
    yield from table.column(column).chunks


def blanks_of(source: Source) -> str:
    """The characters of a blank line: space and tab, unless one is the delimiter."""
    return " \t".replace(source.delimiter, "")


@cache
def record_pattern(delimiter: str) -> re.Pattern[bytes]:
    """
    A record and its end; a field that is quoted and has more behind that is in its line.

    A field without an end is all that is left of the text.
    """
    start, field, _ = field_patterns(delimiter)
    stray = start + rb'(?:[^"\r\n]++|"")*+"'
    begun = start + rb'(?:[^"]++|"")*+\Z'
    return re.compile(
        rb'((?:[^"\r\n]++|' + b"|".join((field, begun, stray)) + rb'|")*+)(?:\r\n?|\n|\Z)',
    )


def field_patterns(delimiter: str) -> Sequence[bytes]:
    """The quote that a quoted field begins with, all of the field, and one of a single line."""
    parts = re.escape(delimiter.encode())
    start = rb'"(?:(?<=\A")|(?<=[\r\n]")|(?<=' + parts + rb'"))'
    end = rb'"(?=[\r\n]|' + parts + rb"|\Z)"
    return start, start + rb'(?:[^"]++|"")*+' + end, start + rb'(?:[^"\r\n]++|"")*+' + end
