"""
JSON, plain or packed: one object a line, or (``multiline``) whole files of objects and lists.

Of whole files each part (``lake/reading/json_values``) is a line: Spark's workers cut them apart.

A line goes through Spark's ``try_parse_json``, with its numbers marked so that they stay as they
are written, and in brackets, so that the object is all there is in the line. A value fits its
column when its text does, so the string ``"12"`` is a good bigint; an object or a list in a string
column is kept as JSON text. A key that is not there is NULL. A line that is not UTF-8 is
unparsable, as is one that contains half of a pair of surrogates.

A frame of *lines* has these columns; from it comes a frame of texts (``fit``):

| column    | type    | meaning                                                     |
|-----------|---------|-------------------------------------------------------------|
| `_line`   | string  | a line that is not blank                                    |
| `_path`   | string  | the file, as Spark reports it                               |
| `_parsed` | variant | a list of the object with marked numbers; NULL if broken    |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from infold.core.model import Column as Declared
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.project import Project
from infold.lake.reading.json_values import json_values
from infold.spark.reading import fit, json_keys, json_plain, json_text, lines_here
from infold.spark.reading.drift import (
    FileShape,
    PresentFile,
    check_bzip2,
    check_unpacks,
    declared_columns,
    refuse_unseen,
)
from infold.spark.reading.lines_here import LINE
from infold.spark.reading.paths import glob
from infold.spark.reading.small_files import worth_keeping

_PARSED = "_parsed"

IN_PROCESS = 4 * 1024 * 1024
"""Bytes, about, whose keys are read in this process; Spark reads those of more."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The lines of all files that are read together, in memory; how many each file has, by id."""

    lines: DataFrame
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LinesShape(FileShape):
    """
    How files of lines are to be read, with their lines where these are kept.

    ``plain`` are the numbers of lines of all plain files, of which this may be one (``read``).
    """

    kept: Kept | None = field(default=None, kw_only=True, compare=False)
    plain: Mapping[int, int] = field(default_factory=dict, kw_only=True, compare=False)


columns = declared_columns
check_readable = check_unpacks


def inspect(
    spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, FileShape]:
    """See ``FormatReader``; a known file is not looked into again."""
    for file in files:
        check_bzip2(source, file)
    fresh = [file for file in files if not file.known]
    on_disk = not any(is_url(file.path) for file in files)
    kept: Kept | None = None
    texts: Mapping[int, Sequence[bytes]] | None = None
    with suppress(lines_here.TooLongError):
        if on_disk and _are_few(files):
            texts = lines_here.lines_by_file(source, files)
            lines = lines_here.frame_of_lines(spark, files, texts)
            kept = Kept(lines, {id_: len(found) for id_, found in texts.items()})
        elif on_disk and worth_keeping([file.unpacked_size for file in files]):
            kept = Kept(*lines_here.read_lines(spark, source, files))
        elif _are_few(fresh):
            texts = lines_here.lines_by_file(source, fresh)
    if not fresh:
        keys = {}
    elif texts is not None:
        keys = _keys_here(spark, source, fresh, texts)
    else:
        lines = _lines(spark, source, fresh) if kept is None else kept.lines
        judge = kept is None and json_plain.may_be_plain(spark, source, fresh)
        keys = json_keys.keys_there(lines, source, fresh, judge=judge)
    drifted = json_keys.keys_drifted(source, fresh, keys)
    rows = {file.id: keys[file.id].lines if file.id in keys else 0 for file in fresh}
    if kept is not None:
        rows = {**kept.counts}
    plain = {id_: one.lines for id_, one in keys.items() if one.plain and id_ not in drifted}
    return {
        file.id: LinesShape(
            drift=drifted.get(file.id),
            rows=rows.get(file.id),
            read=file.id in plain,
            kept=kept,
            plain=plain,
        )
        for file in files
    }


def _keys_here(
    spark: SparkSession,
    source: Source,
    files: Sequence[PresentFile],
    texts: Mapping[int, Sequence[bytes]],
) -> dict[int, json_keys.FileKeys]:
    """The keys of files with few lines; Spark is asked for those of which it alone can say."""
    keys = {file.id: json_keys.keys_of(texts[file.id]) for file in files}
    found = {id_: one for id_, one in keys.items() if one is not None}
    others = [file for file in files if file.id not in found]
    if others:
        lines = lines_here.frame_of_lines(spark, others, texts)
        found |= json_keys.keys_there(lines, source, others, judge=False)
    return found


def _are_few(files: Iterable[PresentFile]) -> bool:
    """Whether this process reads them sooner than Spark has planned to."""
    return sum(file.unpacked_size for file in files) <= IN_PROCESS


def _lines_of(
    spark: SparkSession, source: Source, shape: LinesShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The lines of files of one shape, which may be some of those that are kept."""
    kept = shape.kept
    if kept is None:
        return _lines(spark, source, files)
    if len(files) == len(kept.counts):
        return kept.lines
    return kept.lines.where(F.col(fit.PATH).isin([file.spark_path for file in files]))


def _lines(spark: SparkSession, source: Source, files: Iterable[PresentFile]) -> DataFrame:
    paths = [glob(file.file.location) for file in files]
    lines = spark.read.text(paths, wholetext=source.multiline)
    found = lines.select(F.col("value").alias(LINE), F.col("_metadata.file_path").alias(fit.PATH))
    if source.multiline:
        # As bytes: Python has no text that is not UTF-8.
        whole = found.select(F.col(LINE).cast("binary").alias(LINE), fit.PATH)
        parts = whole.mapInArrow(_parts, whole.schema)
        return parts.select(F.col(LINE).cast("string").alias(LINE), fit.PATH)
    return found.where(F.col(LINE).rlike(r"\S"))


_TOGETHER = 10_000


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parts of whole files, with the paths of these; Spark hands over 64 MB or one file."""
    for batch in batches:
        for text, path in zip(*batch.to_pydict().values(), strict=True):
            found = json_values(text)
            while some := list(islice(found, _TOGETHER)):
                yield pa.RecordBatch.from_arrays(
                    [pa.array(some, pa.binary()), pa.array([path] * len(some), pa.string())],
                    names=batch.schema.names,
                )


def rows(
    spark: SparkSession, source: Source, shape: LinesShape, files: Sequence[PresentFile]
) -> DataFrame:
    """See ``FormatReader``."""
    if shape.read:
        found, there = json_plain.plain_rows(spark, source, files, shape.plain)
        rest = [file for file in files if file.id not in there]
        if not rest:
            return found
        others = rows(spark, source, LinesShape(), rest)
        refuse_unseen(source, others, rest)
        of_rest = F.col(fit.PATH).isin([file.spark_path for file in rest])
        return found.where(~of_rest).unionByName(others)
    lines = _lines_of(spark, source, shape, files)
    if shape.drift is not None:
        raw = F.make_valid_utf8(F.col(LINE))
        how = F.lit(f"drift: {shape.drift.how}")
        return fit.unusable_rows(lines, source.columns, F.col(fit.PATH), raw, how)
    line = F.col(LINE)
    parsed = lines.select(
        "*",
        F.try_parse_json(json_text.wrapped(json_text.marked(line))).alias(_PARSED),
    )
    # An object of its own: not a list, a number or nothing.
    good = line.rlike(r"^\s*\{") & json_text.alone(F.col(_PARSED))
    texts = parsed.select(
        *(_text(column).alias(fit.text_name(at)) for at, column in enumerate(source.columns)),
        fit.PATH,
        F.make_valid_utf8(line).alias(fit.RAW),
        F.when(~F.is_valid_utf8(line), F.lit(fit.NOT_UTF8))
        .when(~good, F.lit("unparsable: not one JSON object"))
        .when(json_text.half_pair(line), F.lit(fit.HALF_PAIR))
        .when(json_text.has_mark(line), F.lit("unparsable: it contains text that infold reserves"))
        .alias(fit.BROKEN),
    )
    return fit.typed_rows(texts, source.columns, source.timestamp_format)


def _text(column: Declared) -> Column:
    place = json_text.place(column.name)
    text = json_text.unmarked(F.try_variant_get(F.col(_PARSED), place, "string"))
    if column.default is None:
        return text
    # Only a key that is missing has the default; one whose value is null is NULL.
    absent = F.try_variant_get(F.col(_PARSED), place, "variant").isNull()
    return F.when(absent, F.lit(column.default)).otherwise(text)
