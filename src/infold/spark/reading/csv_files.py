"""
CSV with a header line, plain or gzip, as RFC 4180 has it.

Every file's header is read in this process, so the order of columns may differ from file to file;
files with the same header are read together. A field is quoted by ``"`` and a quote inside it is
doubled; a backslash means itself. An empty field is NULL, a quoted empty one is an empty string (in
a column that is no string both are NULL). Blank lines are nothing.

Quoted line breaks need Spark's whole-file reader, which cannot split a file over tasks; it is used
for files that hold a quote at all, and for gzip, which cannot be split anyway.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold import errors
from infold.model import Source
from infold.spark.reading import fit
from infold.spark.reading.drift import Present, differences, settle
from infold.spark.reading.paths import glob

_EMPTY = "\u0001infold: empty\u0001"  # what a quoted empty field is read as, to tell it from NULL
_CORRUPT = "_corrupt"
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how a CSV file is read: its header, and whether fields may hold line breaks."""

    header: tuple[str, ...]
    quotes: bool
    drift: str | None


def rows(spark: SparkSession, source: Source, files: Sequence[Present]) -> list[DataFrame]:
    """The rows of the files, one frame for each shape of file. May raise ``errors.drift``."""
    groups: dict[Shape, list[Present]] = defaultdict(list)
    drifted: dict[int, str] = {}
    for file in files:
        shape = _shape(file, source)
        if shape is None:
            continue  # an empty file has no columns and no rows
        groups[shape].append(file)
        if shape.drift is not None:
            drifted[file.id] = shape.drift
    settle(source, drifted, files)
    return [_read(spark, source, shape, group) for shape, group in groups.items()]


def _read(spark: SparkSession, source: Source, shape: Shape, files: list[Present]) -> DataFrame:
    names = [f"_field{at}" for at in range(len(shape.header))]
    schema = T.StructType([T.StructField(name, T.StringType()) for name in (*names, _CORRUPT)])
    fields = (
        spark.read.schema(schema)
        .options(
            header="true",
            sep=source.delimiter,
            escape='"',
            nullValue="",
            emptyValue=_EMPTY,
            multiLine=str(shape.quotes).lower(),
            columnNameOfCorruptRecord=_CORRUPT,
            columnPruning="false",  # else a record of the wrong length goes unnoticed
        )
        .csv([glob(file.at) for file in files])
    )
    # Spark's line reader passes over lines of blanks, its whole-file reader does not.
    fields = fields.where(F.coalesce(F.trim(F.col(_CORRUPT)), F.lit("-")) != "")
    options = {"sep": source.delimiter, "escape": '"', "nullValue": "", "emptyValue": '""'}
    plain = [_plain(name).alias(name) for name in names]
    broken = F.when(F.col(_CORRUPT).isNotNull(), F.lit("unparsable: wrong number of fields"))
    if shape.drift is not None:
        broken = F.lit(f"drift: {shape.drift}")
    texts = []
    for at, column in enumerate(source.columns):
        text = F.lit(None).cast("string")
        if shape.drift is None:
            name = names[shape.header.index(column.name)]
            is_text = isinstance(fit.datatype(column), T.StringType)
            text = _plain(name) if is_text else F.nullif(F.col(name), F.lit(_EMPTY))
        texts.append(text.alias(fit.text_name(at)))
    taken = fields.select(
        *texts,
        F.col("_metadata.file_path").alias(fit.PATH),
        F.coalesce(F.col(_CORRUPT), F.to_csv(F.struct(*plain), options)).alias(fit.RAW),
        broken.alias(fit.BROKEN),
    )
    return fit.typed(taken, source.columns, source.timestamp_format)


def _plain(name: str) -> Column:
    return F.when(F.col(name) == _EMPTY, F.lit("")).otherwise(F.col(name))


def _shape(file: Present, source: Source) -> Shape | None:
    header = _header(file, source.delimiter)
    if header is None:
        return None
    twice = sorted({name for name in header if header.count(name) > 1})
    drift = differences(
        [column.name for column in source.columns],
        header,
        [f"column {name} is there twice" for name in twice],
    )
    quotes = file.at.suffix == ".gz" or _holds_quote(file.at)
    return Shape(header, quotes, drift)


def _header(file: Present, delimiter: str) -> tuple[str, ...] | None:
    """The names in the first line that is not blank; None when there is none."""
    opener = gzip.open if file.at.suffix == ".gz" else open
    try:
        with opener(file.at, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            for record in csv.reader(lines, delimiter=delimiter):
                if record:
                    return tuple(record)
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise errors.unreadable_file(file.path, str(error)) from error
    return None


def _holds_quote(path: Path) -> bool:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if b'"' in chunk:
                return True
    return False
