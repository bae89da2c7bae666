"""
CSV with a header line or without one, plain or packed, as RFC 4180 has it.

Every file's header is read in this process, so the order of columns may differ from file to file;
files with the same header are read together. A field is quoted by ``"`` and a quote inside it is
doubled, unless the source has no quotes; a backslash means itself. An empty field is NULL, a quoted
empty one is an empty string (in a column that is no string both are NULL). Blank lines, of spaces
and tabs or nothing, are nothing.

Without a header the columns are those that the source declares, in their order, as many as the
first record has fields.

Quoted line breaks need Spark's whole-file reader, which cannot split a file over tasks; it is used
for files with a quote in them, and for packed ones, few of which can be split anyway. It is also
used for files with a line of nothing but control characters, such as NUL bytes: the other reader
takes such lines for blank ones, and skips them silently.

Spark puts a replacement character in place of bytes that are not UTF-8, and two users become one.
So where a file is not all UTF-8 (or is packed, and not checked before), Spark reads it as Latin-1,
in which every byte is a character, and the bytes are decoded here: a row that is not UTF-8 is
unparsable.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from io import TextIOWrapper
from operator import and_
from typing import Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Drift, Source
from infold.core.project import Project
from infold.messages import run_errors
from infold.spark.reading import fit
from infold.spark.reading.csv_quotes import swallowed
from infold.spark.reading.drift import (
    DAMAGED,
    FileShape,
    PresentFile,
    check_bzip2,
    check_unpacks,
    declared_columns,
    differences,
)
from infold.spark.reading.paths import glob

_EMPTY = "\u0001infold: empty\u0001"  # what a quoted empty field is read as, to tell it from NULL
_CORRUPT = "_corrupt"
_CHUNK = 1 << 22
_LONGEST = (1 << 31) - 1
_BYTEWISE = "ISO-8859-1"
_MARK = "\ufeff"
_NO_QUOTE = "\u0100"
"""A quote for files that have none: read byte by byte, no file has this letter."""
_FIELDS, _MANY = 20_480, 1_000_000
"""How many fields a record may have by default, and in a file with a line that long."""


@dataclass(frozen=True, slots=True)
class CsvShape(FileShape):
    """
    What decides how a CSV file is read: its header, whether it needs the reader of whole files
    (``quotes``), whether some bytes may be no UTF-8, and whether a line is so long that it may have
    more fields than Spark makes room for. And whether a file without a header begins with a mark of
    its encoding, which the reader of whole files leaves in the first field.
    """

    header: tuple[str, ...]
    quotes: bool
    bytewise: bool
    long: bool
    mark: bool = False


columns = declared_columns


def check_readable(source: Source, file: PresentFile) -> None:
    """See ``FormatReader``: it unpacks, and no quote takes in further rows or is no quote."""
    check_unpacks(source, file)
    if source.quoted:
        _refuse_swallowing(source, file)
    if source.positions:
        _begins_with_mark(source, file)


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, CsvShape]:
    """See ``FormatReader``; an empty file has no columns and no rows."""
    found = {file.id: _shape(file, source) for file in files}
    return {id_: shape for id_, shape in found.items() if shape is not None}


def rows(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    found = _read(spark, source, shape, files)
    bare = [file for file in files if shape.drift and not _has_rows(file, source)]
    return found.unionByName(_headers(spark, source, bare, shape)) if bare else found


def _refuse_swallowing(source: Source, file: PresentFile) -> None:
    """Raise ``errors.unreadable_file`` where a quote that does not end takes in further rows."""
    with file.open() as opened:
        line = swallowed(opened, source.delimiter)
    if line is not None:
        raise run_errors.unreadable_file(
            path=file.path,
            why=f"a field in line {line} begins with a quote that does not end on that line",
        )


def _read(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    # Of a file that drifted two columns will do: all records that have more are kept as they are.
    wide = len(shape.header) if shape.drift is None else min(len(shape.header), 2)
    names = [f"_field{at}" for at in range(wide)]
    encoding = _BYTEWISE if shape.bytewise else "UTF-8"
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, _CORRUPT)])
    fields = (
        spark.read.schema(schema)
        .options(
            header=str(not source.positions).lower(),
            encoding=encoding,
            sep=source.delimiter.encode().decode(encoding),
            quote=_quote(source),
            escape=_quote(source),
            nullValue="",
            emptyValue=_EMPTY,
            multiLine=str(shape.quotes).lower(),
            columnNameOfCorruptRecord=_CORRUPT,
            maxColumns=str(_MANY if shape.long else _FIELDS),
            columnPruning="false",  # else a record of the wrong length goes unnoticed
        )
        .csv([glob(file.file.location) for file in files])
    )
    # Spark's line reader passes over lines of blanks, its whole-file reader does not.
    blanks = F.lit(_blanks(source))
    fields = fields.where(F.coalesce(F.btrim(F.col(_CORRUPT), blanks), F.lit("-")) != "")
    if shape.bytewise:
        fields = fields.withColumns({name: _decoded(name) for name in (*names, _CORRUPT)})
    quote = _quote(source)
    if shape.mark:
        bare = F.nullif(F.ltrim(names[0], F.lit(_MARK)), F.lit(""))
        fields = fields.withColumn(names[0], bare)
    options = {"sep": source.delimiter, "nullValue": "", "emptyValue": quote * 2}
    options |= {"quote": quote, "escape": quote}
    plain = [_plain(name).alias(name) for name in names]
    broken = F.when(F.col(_CORRUPT).isNotNull(), F.lit("unparsable: wrong number of fields"))
    raw = F.coalesce(F.col(_CORRUPT), F.to_csv(F.struct(*plain), options))
    if shape.bytewise:
        valid = [F.coalesce(F.is_valid_utf8(name), F.lit(True)) for name in (*names, _CORRUPT)]
        broken = F.when(~reduce(and_, valid), F.lit(fit.NOT_UTF8)).otherwise(broken)
        raw = F.make_valid_utf8(raw)
    path = F.col("_metadata.file_path")
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
            text = _plain(name) if is_text else F.nullif(F.col(name), F.lit(_EMPTY))
        texts.append(text.alias(fit.text_name(at)))
    taken = fields.select(
        *texts,
        path.alias(fit.PATH),
        raw.alias(fit.RAW),
        broken.alias(fit.BROKEN),
    )
    return fit.typed_rows(taken, source.columns, source.timestamp_format)


def _headers(
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


def _plain(name: str) -> Column:
    return F.when(F.col(name) == _EMPTY, F.lit("")).otherwise(F.col(name))


def _shape(file: PresentFile, source: Source) -> CsvShape | None:
    check_bzip2(source, file)
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
    judged = file.known or source.on_unreadable is Drift.SET_ASIDE  # then it was read before
    try:
        mark = bool(source.positions) and _begins_with_mark(source, file)
        if file.packed:
            if source.quoted and not judged:
                _refuse_swallowing(source, file)
            return CsvShape(header, quotes=True, bytewise=True, long=True, mark=mark, drift=drift)
        blanks = _blanks(source) if len(header) > 1 else ""
        quotes, text = _read_through(file, blanks, quoted=source.quoted)
        if quotes and source.quoted and not judged:
            _refuse_swallowing(source, file)
        long = file.size >= _FIELDS and _has_long_line(file)
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    bytewise = not (text and source.quoted)
    return CsvShape(header, quotes, bytewise=bytewise, long=long, mark=mark, drift=drift)


def _begins_with_mark(source: Source, file: PresentFile) -> bool:
    with file.open() as opened:
        first = opened.read(4)
    if source.quoted and first == codecs.BOM_UTF8 + b'"':
        raise run_errors.unreadable_file(
            path=file.path, why="there is a mark of its encoding before the first quote"
        )
    return first.startswith(codecs.BOM_UTF8)


def _blanks(source: Source) -> str:
    """The characters of a blank line: space and tab, unless one is the delimiter."""
    return " \t".replace(source.delimiter, "")


def _header(file: PresentFile, source: Source) -> tuple[str, ...]:
    """
    The names in the first line that is not blank; none when there is no such line.

    Without a header, those of the columns that its fields are.
    """
    records = _records(file, source)
    if not source.positions:
        return next(records, ())
    blanks = _blanks(source)
    first: tuple[str, ...] = next(
        (one for one in records if len(one) > 1 or one[0].strip(blanks)), ()
    )
    more = range(len(source.positions), len(first))
    return (*source.positions[: len(first)], *(f"number {at + 1}" for at in more))


def _has_rows(file: PresentFile, source: Source) -> bool:
    """Whether there is anything after the header."""
    records = _records(file, source)
    if not source.positions:
        next(records, None)
    return any(len(record) > 1 or record[0].strip(_blanks(source)) for record in records)


def _records(file: PresentFile, source: Source) -> Iterator[tuple[str, ...]]:
    """The lines that are not empty, as their fields."""
    csv.field_size_limit(_LONGEST)  # a longer field is text like any other
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if source.quoted else csv.QUOTE_NONE
    try:
        with (
            file.open() as opened,
            TextIOWrapper(opened, "utf-8-sig", errors="replace", newline="") as lines,
        ):
            for record in csv.reader(lines, delimiter=source.delimiter, quoting=quoting):
                if record:
                    yield tuple(record)
    except (*DAMAGED, csv.Error) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error


def _quote(source: Source) -> str:
    return '"' if source.quoted else _NO_QUOTE


def _read_through(file: PresentFile, blanks: str, *, quoted: bool) -> tuple[bool, bool]:
    """
    Whether a file needs the reader of whole files, and whether all of it is UTF-8.

    It needs that reader if it has a quote that is one, or a line that is not blank and that Java
    trims to nothing.
    """
    quotes, decoder, carried = False, codecs.getincrementaldecoder("utf-8")(), b""
    odd = bytes(code for code in range(0x21) if chr(code) not in f"{blanks}\r\n")
    trimmed = re.compile(
        rb"(?:\A|[\r\n])[\x00-\x09\x0b\x0c\x0e-\x20]*[" + re.escape(odd) + rb"]"
        rb"[\x00-\x09\x0b\x0c\x0e-\x20]*+(?=[\r\n]|\Z)"
    )
    try:
        with file.open() as opened:
            while chunk := opened.read(_CHUNK):
                quotes = quotes or (quoted and b'"' in chunk)
                if not quotes:
                    lines = carried + chunk
                    carried = lines[max(lines.rfind(b"\n"), lines.rfind(b"\r")) + 1 :]
                    whole = lines[: len(lines) - len(carried)]
                    quotes = _suspect(whole) and trimmed.search(whole) is not None
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return True, False  # the slower reader is right whether there are quotes or not
    return quotes or trimmed.search(carried) is not None, True


def _has_long_line(file: PresentFile) -> bool:
    """Whether a line is so long that it may have more fields than Spark makes room for."""
    with file.open() as opened:
        carried = b""
        while chunk := opened.read(_CHUNK):
            lines, at = carried + chunk, 0
            while len(lines) - at >= _FIELDS:
                end = max(lines.rfind(sign, at, at + _FIELDS) for sign in (b"\n", b"\r"))
                if end < 0:
                    return True
                at = end + 1
            carried = lines[at:]
    return False


_CONTROLS = bytes(code for code in range(0x20) if chr(code) not in "\t\r\n")
_STARTS = (b"\n ", b"\n\t", b"\r ", b"\r\t")


def _suspect(lines: bytes) -> bool:
    """Whether one of the lines may have only characters that Java trims; that is rare."""
    if lines[:1] in (b" ", b"\t") or any(start in lines for start in _STARTS):
        return True
    return len(lines.translate(None, delete=_CONTROLS)) != len(lines)
