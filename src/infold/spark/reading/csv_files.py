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
text, and stay as they are. No reader of Spark's does all of that, so a file's bytes decide what
takes it apart (``Way``):

- Spark's reader of lines takes all ends, and none in quotes. It passes over lines of nothing but
  control characters, such as NUL bytes, as if they were blank.
- Its reader of whole files, which cannot split a file over tasks, takes ends in quotes too. It is
  told what a record ends at: by itself it would go by the first end in the file, and in quotes turn
  each that is like it into LF. It takes a line of blanks for a header, and where records end at CR
  and LF, it keeps the CR of one with more behind a closing quote.
- All else is cut into its records by Spark's workers in Python, each of which has a file in memory.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import dropwhile, islice

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Source
from infold.core.project import Project
from infold.spark.reading import csv_shape, fit
from infold.spark.reading.csv_shape import (
    CRLF,
    FIELDS,
    LF,
    CsvShape,
    Way,
    blanks_of,
    has_rows,
    records,
    shape_of,
)
from infold.spark.reading.drift import PresentFile, declared_columns
from infold.spark.reading.paths import glob

_EMPTY = "\u0001infold: empty\u0001"  # what a quoted empty field is read as, to tell it from NULL
_CORRUPT = "_corrupt"
_RECORD = "_record"
_BYTEWISE = "ISO-8859-1"
_MARK = "\ufeff"
_NO_QUOTE = "\u0100"
"""A quote for files that have none: read byte by byte, no file has this letter."""
_MANY = 1_000_000
"""How many fields a record may have in a file with a line that long."""
_TOGETHER = 10_000

columns = declared_columns
check_readable = csv_shape.check_readable


def inspect(
    _spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, CsvShape]:
    """See ``FormatReader``; an empty file has no columns and no rows."""
    found = {file.id: shape_of(file, source) for file in files}
    return {id_: shape for id_, shape in found.items() if shape is not None}


def rows(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    found = _read(spark, source, shape, files)
    bare = [file for file in files if shape.drift and not has_rows(file, source)]
    return found.unionByName(_headers(spark, source, bare, shape)) if bare else found


def _read(
    spark: SparkSession, source: Source, shape: CsvShape, files: Sequence[PresentFile]
) -> DataFrame:
    # Of a file that drifted two columns will do: all records that have more are kept as they are.
    wide = len(shape.header) if shape.drift is None else min(len(shape.header), 2)
    names = [f"_field{at}" for at in range(wide)]
    fields = _fields(spark, source, shape, files, (*names, _CORRUPT))
    # Spark's line reader passes over lines of blanks, its whole-file reader does not.
    blanks = F.lit(blanks_of(source))
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
        invalid = (~F.is_valid_utf8(name) for name in (*names, _CORRUPT))
        broken = F.coalesce(*(F.when(one, F.lit(fit.NOT_UTF8)) for one in invalid), broken)
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
            text = _plain(name) if is_text else F.nullif(F.col(name), F.lit(_EMPTY))
        texts.append(text.alias(fit.text_name(at)))
    taken = fields.select(
        *texts,
        fit.PATH,
        raw.alias(fit.RAW),
        broken.alias(fit.BROKEN),
    )
    return fit.typed_rows(taken, source.columns, source.timestamp_format)


def _fields(
    spark: SparkSession,
    source: Source,
    shape: CsvShape,
    files: Sequence[PresentFile],
    names: Sequence[str],
) -> DataFrame:
    """The fields of all records but headers, and ``_path``."""
    paths = [glob(file.file.location) for file in files]
    encoding = _BYTEWISE if shape.bytewise else "UTF-8"
    quote = _quote(source)
    options = {
        "sep": source.delimiter.encode().decode(encoding),
        "quote": quote,
        "escape": quote,
        "charToEscapeQuoteEscaping": quote,  # it is NUL by default, which quoted fields would lose
        "nullValue": "",
        "emptyValue": _EMPTY,
        "columnNameOfCorruptRecord": _CORRUPT,
        "maxColumns": str(_MANY if shape.long else FIELDS),
        "columnPruning": "false",  # else a record of the wrong length goes unnoticed
    }
    if shape.way is Way.RECORDS:
        blanks = None if source.positions else blanks_of(source).encode()
        cut = partial(_cut_apart, delimiter=source.delimiter, quoted=source.quoted, blanks=blanks)
        path = F.col("_metadata.file_path").alias(fit.PATH)
        whole = spark.read.text(paths, wholetext=True)
        whole = whole.select(F.col("value").cast("binary").alias(_RECORD), path)
        cut_up = whole.mapInArrow(cut, whole.schema)
        text = F.decode(_RECORD, _BYTEWISE)
        fields = F.from_csv(text, ", ".join(f"{name} string" for name in names), options)
        return cut_up.select(fields.alias(_RECORD), fit.PATH).select(f"{_RECORD}.*", fit.PATH)
    options |= {"header": str(not source.positions).lower(), "encoding": encoding}
    if shape.way is not Way.LINES:
        options["multiLine"] = "true"
        options["lineSep"] = LF if shape.way is Way.WHOLE_LF else CRLF
    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    found = spark.read.schema(schema).options(**options).csv(paths)
    return found.select(*names, F.col("_metadata.file_path").alias(fit.PATH))


def _cut_apart(
    batches: Iterable[pa.RecordBatch], *, delimiter: str, quoted: bool, blanks: bytes | None
) -> Iterator[pa.RecordBatch]:
    """
    The records of whole files but those of no bytes, with the paths of the files.

    With ``blanks`` without a header, which is the first line that has anything else.
    """
    for batch in batches:
        for text, path in zip(*batch.to_pydict().values(), strict=True):
            all_ = records(text.removeprefix(codecs.BOM_UTF8), delimiter, quoted=quoted)
            found: Iterator[bytes] = filter(None, all_)
            if blanks is not None:
                found = islice(dropwhile(lambda one: not one.strip(blanks), found), 1, None)
            while some := list(islice(found, _TOGETHER)):
                yield pa.RecordBatch.from_arrays(
                    [pa.array(some, pa.binary()), pa.array([path] * len(some), pa.string())],
                    names=batch.schema.names,
                )


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


def _quote(source: Source) -> str:
    return '"' if source.quoted else _NO_QUOTE
