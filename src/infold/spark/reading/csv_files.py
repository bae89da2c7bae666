"""
CSV with a header line or without one, plain or packed, as RFC 4180 has it.

Every file's header is read in this process, so the order of columns may differ from file to file;
files with the same header are read together. A field is quoted by ``"`` and a quote inside it is
doubled, unless the source has no quotes; a backslash means itself. An empty field is NULL, a quoted
empty one is an empty string (in a column that is no string both are NULL). Blank lines, of spaces
and tabs or nothing, are nothing.

Without a header the columns are those that the source declares, in their order, as many as the
first record has fields.

A record ends at LF, CR, or both, whatever other records of the file end at. In quotes these are
text, and stay as they are. There are two ways to take a file apart, and its bytes decide:

- Spark's reader of lines, where no field extends over lines. It takes all ends, and splits a file
  over tasks. It passes over lines of nothing but control characters, such as NUL bytes, as if they
  were blank: a file that has one is not for it.
- All else is cut into its records by Spark's workers in Python, a file by one of them. They are
  given its lines one after the other, in order, so no file has to fit into memory.

Spark's reader of whole files would be a third way: it goes by one end of records alone, and takes a
line of blanks for a header (docs/decisions/0131).

Spark puts a replacement character in place of bytes that are not UTF-8, and two users become one.
So where a file is not all UTF-8, Spark reads it as Latin-1, in which every byte is a character, and
the bytes are decoded here: a row that is not UTF-8 is unparsable.

A frame of *fields* has these columns; from it comes a frame of texts (``fit``):

| column        | type   | meaning                                                                |
|---------------|--------|------------------------------------------------------------------------|
| `_field0` …   | string | the fields of a record, in the order of the header; NULL if empty      |
| `_corrupt`    | string | the record as text if it has a wrong number of fields, else NULL       |
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import TextIOWrapper
from itertools import dropwhile, groupby, islice
from operator import itemgetter
from typing import BinaryIO, Literal, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Drift, Source
from infold.core.project import Project
from infold.lake.reading.csv_files import blanks_of, field_patterns, record_pattern
from infold.messages import run_errors
from infold.spark.reading import fit
from infold.spark.reading.drift import (
    DAMAGED,
    FileShape,
    PresentFile,
    check_unpacks,
    declared_columns,
    differences,
)
from infold.spark.reading.paths import glob

_EMPTY = "\u0001infold: empty\u0001"  # what a quoted empty field is read as, to tell it from NULL
_CORRUPT = "_corrupt"
_RECORD, _PART, _LINE = "_record", "_part", "_line"
_BYTEWISE = "ISO-8859-1"
_MARK = "\ufeff"
_NO_QUOTE = "\u0100"
"""A quote for files that have none: read byte by byte, no file has this letter."""
_FIELDS_OF_LONG_LINE = 1_000_000
"""How many fields a record may have in a file with a line that long."""

columns = declared_columns


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, CsvShape]:
    """The shapes of files, by their ids; an empty file has no columns, no rows and no shape."""
    shapes = {file.id: shape_of(file, source) for file in files}
    return {id_: shape for id_, shape in shapes.items() if shape is not None}


def rows(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The rows of files with one header; those without a row are set aside where it drifts."""
    frame = _typed_records(spark, source, shape, files)
    bare = [file for file in files if shape.drift and not has_rows(file, source)]
    return frame.unionByName(_header_rows(spark, source, bare, shape)) if bare else frame


def _typed_records(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    # Of a file that drifted two columns will do: all records that have more are kept as they are.
    wide = len(shape.header) if shape.drift is None else min(len(shape.header), 2)
    names = [f"_field{at}" for at in range(wide)]
    fields = _record_fields(spark, source, shape, files, (*names, _CORRUPT))
    # Spark's line reader passes over lines of blanks, its whole-file reader does not.
    blanks = F.lit(blanks_of(source))
    fields = fields.where(F.coalesce(F.btrim(F.col(_CORRUPT), blanks), F.lit("-")) != "")
    if shape.bytewise:
        fields = fields.withColumns({name: _decoded(name) for name in (*names, _CORRUPT)})
    quote = _quote_of(source)
    if shape.mark:
        without_mark = F.nullif(F.ltrim(names[0], F.lit(_MARK)), F.lit(""))
        fields = fields.withColumn(names[0], without_mark)
    options = {"sep": source.delimiter, "nullValue": "", "emptyValue": quote * 2}
    options |= {"quote": quote, "escape": quote}
    plain = [_text_or_empty(name).alias(name) for name in names]
    broken = F.when(F.col(_CORRUPT).isNotNull(), F.lit("unparsable: wrong number of fields"))
    raw = F.coalesce(F.col(_CORRUPT), F.to_csv(F.struct(*plain), options))
    if shape.bytewise:
        invalid = (~F.is_valid_utf8(name) for name in (*names, _CORRUPT))
        broken = F.coalesce(*(F.when(bad, F.lit(fit.NOT_UTF8)) for bad in invalid), broken)
        raw = F.make_valid_utf8(raw)
    path = F.col(fit.PATH)
    if shape.drift is not None:
        if wide == 1:  # where one field is a row, a blank line is no wrong number of them
            field = F.coalesce(F.col(_CORRUPT), F.btrim(names[0], blanks), F.lit(""))
            fields = fields.where(field != "")
        return fit.unusable_rows(
            fields, source.columns, path, raw, F.lit(f"drift: {shape.drift.how}")
        )
    texts = []
    for at, column in enumerate(source.columns):
        text = F.lit(column.default).cast("string")
        if column.name in shape.header:
            name = names[shape.header.index(column.name)]
            is_text = isinstance(fit.datatype(column), T.StringType)
            text = _text_or_empty(name) if is_text else F.nullif(F.col(name), F.lit(_EMPTY))
        texts.append(text.alias(fit.text_name(at)))
    taken = fields.select(
        *texts,
        fit.PATH,
        raw.alias(fit.RAW),
        fit.broken(broken),
    )
    return fit.typed_rows(taken, source.columns, source.timestamp_format)


def _record_fields(
    spark: SparkSession,
    source: Source,
    shape: CsvShape,
    files: Sequence[PresentFile],
    names: Sequence[str],
) -> DataFrame:
    """The fields of all records but headers, and ``_path``."""
    paths = [glob(file.file.location) for file in files]
    encoding = _BYTEWISE if shape.bytewise else "UTF-8"
    quote = _quote_of(source)
    options = {
        "sep": source.delimiter.encode().decode(encoding),
        "quote": quote,
        "escape": quote,
        "charToEscapeQuoteEscaping": quote,  # it is NUL by default, which quoted fields would lose
        "nullValue": "",
        "emptyValue": _EMPTY,
        "columnNameOfCorruptRecord": _CORRUPT,
        "maxColumns": str(_FIELDS_OF_LONG_LINE if shape.long else FIELDS),
        "columnPruning": "false",  # else a record of the wrong length goes unnoticed
    }
    if not shape.lines:
        blanks = None if source.positions else blanks_of(source).encode()
        cut = partial(_cut_apart, delimiter=source.delimiter, quoted=source.quoted, blanks=blanks)
        lines = spark.read.text(paths, lineSep="\n").select(
            F.col("value").cast("binary").alias(_RECORD),
            F.col("_metadata.file_path").alias(fit.PATH),
            F.col("_metadata.file_block_start").alias(_PART),
            F.monotonically_increasing_id().alias(_LINE),  # in order within a part
        )
        ordered = lines.repartition(fit.PATH).sortWithinPartitions(fit.PATH, _PART, _LINE)
        cut_up = ordered.select(_RECORD, fit.PATH).mapInArrow(
            cut, f"{_RECORD} binary, {fit.PATH} string"
        )
        text = F.decode(_RECORD, _BYTEWISE)
        fields = F.from_csv(text, ", ".join(f"{name} string" for name in names), options)
        return cut_up.select(fields.alias(_RECORD), fit.PATH).select(f"{_RECORD}.*", fit.PATH)
    options |= {"header": str(not source.positions).lower(), "encoding": encoding}
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    fields_read = spark.read.schema(schema).options(**options).csv(paths)
    return fields_read.select(*names, F.col("_metadata.file_path").alias(fit.PATH))


def _cut_apart(
    batches: Iterable[pa.RecordBatch], *, delimiter: str, quoted: bool, blanks: bytes | None
) -> Iterator[pa.RecordBatch]:
    """
    The records of files but those of no bytes, with the paths; from their lines, in order.

    With ``blanks`` without a header, which is the first line that has anything else.
    """
    lines = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    for path, lines_of_file in groupby(lines, itemgetter(1)):
        all_ = records(map(itemgetter(0), lines_of_file), delimiter, quoted=quoted)
        left: Iterator[bytes] = filter(None, all_)
        if blanks is not None:
            left = islice(dropwhile(lambda record: not record.strip(blanks), left), 1, None)
        while portion := list(islice(left, _TOGETHER)):
            yield pa.RecordBatch.from_arrays(
                [pa.array(portion, pa.binary()), pa.array([path] * len(portion), pa.string())],
                names=[_RECORD, fit.PATH],
            )


def _header_rows(
    spark: SparkSession, source: Source, files: Sequence[PresentFile], shape: CsvShape
) -> DataFrame:
    """
    The header of files that have no other line, as a row that is set aside.

    The only line of an HTML page, or of a JSON file, looks like a header. Without this row such a
    file would be lost silently.
    """
    lines = spark.createDataFrame(
        pa.table(
            {
                fit.PATH: [file.spark_path for file in files],
                fit.RAW: [source.delimiter.join(shape.header) for _ in files],
            }
        )
    )
    how = F.lit(f"drift: {shape.drift.how if shape.drift else ''}")
    return fit.unusable_rows(lines, source.columns, F.col(fit.PATH), F.col(fit.RAW), how)


def _decoded(name: str) -> Column:
    """Text that was read with one character for each byte."""
    read = F.col(name)
    ascii_ = F.length(read) == F.octet_length(read)  # nearly all there is, and right already
    return F.when(ascii_, read).otherwise(F.encode(read, _BYTEWISE).cast("string"))


def _text_or_empty(name: str) -> Column:
    return F.when(F.col(name) == _EMPTY, F.lit("")).otherwise(F.col(name))


def _quote_of(source: Source) -> str:
    return '"' if source.quoted else _NO_QUOTE


# What a file is as a whole: its header, and what takes it apart.

FIELDS = 20_480
"""How many fields a record may have for Spark, but in a file with a line that long."""
_LONGEST = (1 << 31) - 1
_TOGETHER = 10_000
"""How many lines are cut into records at a time."""


@dataclass(frozen=True, slots=True)
class CsvShape(FileShape):
    """
    What decides how a CSV file is read: its header, whether its lines are its records (``lines``),
    whether some bytes may be no UTF-8, and whether a line is so long that it may have more fields
    than Spark makes room for. And whether a file without a header begins with a mark of its
    encoding: then one before a record, as joined files have them, is none of its first field.
    """

    header: tuple[str, ...]
    lines: bool
    bytewise: bool
    long: bool
    mark: bool = False


def check_readable(source: Source, file: PresentFile) -> None:
    """Raise ``errors.unreadable_file`` unless it unpacks and no quote takes in further rows."""
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
    repeated = sorted({name for name in header if header.count(name) > 1})
    problems = [f"column {name} is there twice" for name in repeated]
    optional = all(column.optional for column in source.columns)
    if (
        optional
        and not source.positions
        and not {*source.unread_columns, *(column.name for column in source.columns)} & set(header)
    ):
        problems.append("no column of the source is in its first line")
    drift = differences(source, file, header, problems)
    try:
        mark = bool(source.positions) and _begins_with_mark(source, file)
        with file.open() as opened:
            content = bytes_of(opened, blanks_of(source), one_field=len(header) == 1)
        spans = source.quoted and content.quotes and _spans_lines(source, file)
        lines = not spans and not content.odd
        long = file.packed or (file.size >= FIELDS and _has_long_line(file))
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    bytewise = not (content.text and source.quoted and lines)
    return CsvShape(header, lines, bytewise=bytewise, long=long, mark=mark, drift=drift)


def _has_long_line(file: PresentFile) -> bool:
    """Whether a line is so long that it may have more fields than Spark makes room for."""
    with file.open() as opened:
        return has_long_line(opened, FIELDS)


def _spans_lines(source: Source, file: PresentFile) -> bool:
    """
    Whether a field in quotes extends over lines.

    Raises ``errors.unreadable_file`` where that takes in further rows, unless it was judged before.
    """
    judged = file.known or source.on_unreadable is Drift.SET_ASIDE
    quotes = _quotes(source, file) if judged else _refuse_swallowing(source, file)
    return quotes.spans or quotes.swallows is not None


def _begins_with_mark(source: Source, file: PresentFile) -> bool:
    with file.open() as opened:
        first = opened.read(4)
    if source.quoted and first == codecs.BOM_UTF8 + b'"':
        raise run_errors.unreadable_file(
            path=file.path, why="there is a mark of its encoding before the first quote"
        )
    return first.startswith(codecs.BOM_UTF8)


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
            rest = dropwhile(lambda line: not line.strip(blank), lines)
            for record in csv.reader(rest, delimiter=source.delimiter, quoting=quoting):
                if record:
                    yield tuple(record)
    except (*DAMAGED, csv.Error) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error


def _refuse_swallowing(source: Source, file: PresentFile) -> Quotes:
    """Raise ``errors.unreadable_file`` where a quote that does not end takes in further rows."""
    quotes = _quotes(source, file)
    if quotes.swallows is not None:
        line = quotes.swallows
        raise run_errors.unreadable_file(
            path=file.path,
            why=f"a field in line {line} begins with a quote that does not end on that line",
        )
    return quotes


def _quotes(source: Source, file: PresentFile) -> Quotes:
    with file.open() as opened:
        return quotes_of(opened, source.delimiter)


_CHUNK = 1 << 22
_TRIMMED = bytes(range(0x21))
"""What Java trims."""


class Bytes(NamedTuple):
    """What is in a file."""

    quotes: bool
    """Whether there is a quote."""
    odd: bool
    """Whether a line that is not blank is nothing once trimmed by Java: Spark passes over it."""
    text: bool
    """Whether all of it is UTF-8."""


def bytes_of(file: BinaryIO, blanks: str, *, one_field: bool) -> Bytes:
    """A look through a file; blanks are a value where a record has one field."""
    quotes = odd = False
    text, decoder = True, codecs.getincrementaldecoder("utf-8")()
    others = "\r\n" if one_field else f"{blanks}\r\n"
    shown = re.escape(bytes(code for code in _TRIMMED if chr(code) not in others))
    trimmed = re.compile(
        rb"(?:\A|[\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]*[" + shown + rb"]"
        rb"[\x00-\x09\x0b\x0c\x0e-\x20]*+(?=[\r\n]|\Z)"
    )
    carried, chunk = b"", b"-"
    while chunk:
        chunk = file.read(_CHUNK)
        quotes = quotes or b'"' in chunk
        if not odd:
            lines = carried + chunk
            end = max(lines.rfind(b"\n"), lines.rfind(b"\r")) + 1 if chunk else len(lines)
            odd = _may_be_trimmed_away(lines[:end]) and trimmed.search(lines, 0, end) is not None
            carried = lines[end:]
            if carried.strip(_TRIMMED):
                carried = b"-"  # whatever follows, this line is not trimmed to nothing
        if text:
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                text = False
    return Bytes(quotes, odd, text)


_CONTROLS = bytes(code for code in range(0x20) if chr(code) not in "\t\r\n")
_BLANK_STARTS = (b"\n ", b"\n\t", b"\r ", b"\r\t")


def _may_be_trimmed_away(lines: bytes) -> bool:
    """Whether one of the lines may have only characters that Java trims; that is rare."""
    if lines[:1] in (b" ", b"\t") or any(start in lines for start in _BLANK_STARTS):
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


class Quotes(NamedTuple):
    """What a look at all quotes of a file finds."""

    swallows: int | None
    """The line in which a field begins that swallows others; the look ends there."""
    spans: bool
    """Whether a field in quotes has ends of lines in it."""


def quotes_of(file: BinaryIO, delimiter: str) -> Quotes:
    """A look through a file."""
    within_lines, whole, opened = _patterns(delimiter)
    swallows, spans = None, False
    rest, line, chunk = file.read(3).removeprefix(codecs.BOM_UTF8), 1, b"-"
    while chunk and swallows is None:
        # What is carried along doubles at least: a field that never ends is read once, not often.
        chunk = file.read(max(_CHUNK, len(rest)))
        text, at = rest + chunk, 0
        # What follows the last end is not known, nor whether a CR there is half of an end.
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1 if chunk else len(text)
        while (at := within_lines.match(text, at, end).end()) < end:  # type: ignore[union-attr]
            if (over := whole.match(text, at, end)) is not None:
                spans, at = True, over.end()
                continue
            begun = opened.match(text, at, end)
            assert begun is not None, "it stopped at a quote"
            if begun.end() == end and chunk:
                break  # it may end further on
            if begun.end() == end or re.search(rb"[\r\n]", begun[0]):
                swallows = line + text.count(b"\n", 0, at)
                break
            at = begun.end() + 1
        line += text.count(b"\n", 0, at)
        rest = text[at:]
    return Quotes(swallows, spans)


def records(lines: Iterable[bytes], delimiter: str, *, quoted: bool) -> Iterator[bytes]:
    """
    All records of a file without their ends, those of no bytes too.

    Its lines are what LF ends, so there may be more in each: what ends at CR, or a part of a field.
    """
    pattern, rest, remaining = record_pattern(delimiter), b"", iter(lines)
    while portion := list(islice(remaining, _TOGETHER)):
        text, rest = rest + b"\n".join(portion) + b"\n", b""
        if not quoted:
            yield from text.splitlines()
            continue
        for match in pattern.finditer(text):
            if match.end(1) < len(text):
                yield match[1]
            else:  # a field that goes on, or nothing
                rest = rest or match[1]
    yield from rest.splitlines()


@cache
def _patterns(delimiter: str) -> Sequence[re.Pattern[bytes]]:
    """
    As much as is well quoted and extends over no line, a good field, and one up to its quote.

    The last goes on to the end of the text, if there is no such quote.
    """
    start, field, within_line = field_patterns(delimiter)
    return (
        re.compile(rb'(?:[^"]++|' + within_line + rb"|(?!" + start + rb')")*+'),
        re.compile(field),
        re.compile(rb'"(?:[^"]++|"")*+'),
    )
