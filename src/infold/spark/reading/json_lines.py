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

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from infold.messages import run_errors
from infold.spark.parallelism import parallelism
from infold.spark.reading import fit, json_text
from infold.spark.reading.drift import (
    DAMAGED,
    Drifted,
    FileShape,
    PresentFile,
    check_bzip2,
    check_unpacks,
    declared_columns,
    differences,
)
from infold.spark.reading.paths import glob
from infold.spark.reading.small_files import worth_keeping

_LINE, _PARSED = "_line", "_parsed"

IN_PROCESS = 4 * 1024 * 1024
"""Bytes, about, whose keys are read in this process; Spark reads those of more."""

_PACKED = 10


@dataclass(frozen=True, slots=True)
class Kept:
    """The lines of so many files, all that are read together: read once, and kept."""

    lines: DataFrame
    files: int


@dataclass(frozen=True, slots=True)
class LinesShape(FileShape):
    """How files of lines are to be read, with their lines where these are kept."""

    kept: Kept | None = field(default=None, kw_only=True, compare=False)


@dataclass(slots=True)
class FileKeys:
    """The keys of a file's objects, and whether it has any object."""

    found: set[str] = field(default_factory=set)
    objects: int = 0


columns = declared_columns
check_readable = check_unpacks


def inspect(
    spark: SparkSession, _project: Project, source: Source, files: Sequence[PresentFile]
) -> Mapping[int, FileShape]:
    """See ``FormatReader``; a file that was ingested before is not looked into again."""
    for file in files:
        check_bzip2(source, file)
    fresh = [file for file in files if not file.known]
    kept: Kept | None = None
    lines: DataFrame | None = None
    if sum(map(_cost, fresh)) > IN_PROCESS:
        kept = _kept(spark, source, files) if fresh == files else None
        lines = _lines(spark, source, fresh) if kept is None else kept.lines
    drifted = _drifted(source, fresh, lines)
    return {file.id: LinesShape(drift=drifted.get(file.id), kept=kept) for file in files}


def _cost(file: PresentFile) -> int:
    """About how many bytes a file has, unpacked."""
    return file.size * (_PACKED if file.packed else 1)


def _kept(spark: SparkSession, source: Source, files: Sequence[PresentFile]) -> Kept | None:
    """
    Their lines, read by few tasks, if the files are small.

    None in a store: whether it shows all of them is asked of a scan.
    """
    if any(is_url(file.path) for file in files) or not worth_keeping([*map(_cost, files)]):
        return None
    lines = _lines(spark, source, files).coalesce(2 * parallelism(spark))
    return Kept(lines.localCheckpoint(eager=False), len(files))


def _lines_of(
    spark: SparkSession, source: Source, shape: LinesShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The lines of files of one shape, which may be some of those that are kept."""
    kept = shape.kept
    if kept is None:
        return _lines(spark, source, files)
    if len(files) == kept.files:
        return kept.lines
    return kept.lines.where(F.col(fit.PATH).isin([file.spark_path for file in files]))


def _lines(spark: SparkSession, source: Source, files: Iterable[PresentFile]) -> DataFrame:
    paths = [glob(file.file.location) for file in files]
    lines = spark.read.text(paths, wholetext=source.multiline)
    found = lines.select(F.col("value").alias(_LINE), F.col("_metadata.file_path").alias(fit.PATH))
    if source.multiline:
        # As bytes: Python has no text that is not UTF-8.
        whole = found.select(F.col(_LINE).cast("binary").alias(_LINE), fit.PATH)
        parts = whole.mapInArrow(_parts, whole.schema)
        return parts.select(F.col(_LINE).cast("string").alias(_LINE), fit.PATH)
    return found.where(F.col(_LINE).rlike(r"\S"))


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
    lines = _lines_of(spark, source, shape, files)
    if shape.drift is not None:
        raw = F.make_valid_utf8(F.col(_LINE))
        how = F.lit(f"drift: {shape.drift.how}")
        return fit.unusable_rows(lines, source.columns, F.col(fit.PATH), raw, how)
    line = F.col(_LINE)
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
    quote = '"' if "'" in column.name else "'"
    place = f"$[0][{quote}{column.name}{quote}]"
    text = json_text.unmarked(F.try_variant_get(F.col(_PARSED), place, "string"))
    if column.default is None:
        return text
    # Only a key that is missing has the default; one whose value is null is NULL.
    absent = F.try_variant_get(F.col(_PARSED), place, "variant").isNull()
    return F.when(absent, F.lit(column.default)).otherwise(text)


# -- drift: the keys of all objects of a file


def _drifted(
    source: Source, files: Sequence[PresentFile], lines: DataFrame | None
) -> dict[int, Drifted]:
    """How files drift, by their ``lines``; without those, by a look into them from here."""
    declared = [*(column.name for column in source.columns), *source.unread_columns]
    by_id = {file.id: file for file in files}
    keys = (
        {file.id: _keys_here(source, file) for file in files}
        if lines is None
        else _keys_there(lines, files, declared)
    )
    found = {}
    for id_, entry in keys.items():
        names = [*(name for name in declared if name in entry.found), *sorted(entry.found)]
        drift = differences(source, by_id[id_], list(dict.fromkeys(names)))
        if not entry.objects:
            continue
        if drift is not None:
            found[id_] = drift
    return found


def _keys_here(source: Source, file: PresentFile) -> FileKeys:
    keys = FileKeys()
    try:
        with file.open() as opened:
            for line in json_values(opened.read()) if source.multiline else opened:
                text = line.decode("utf-8-sig", errors="replace")
                try:
                    value = json.loads(text)
                except ValueError:
                    continue  # its rows will be unparsable
                except RecursionError:
                    value = _outermost(text)
                if isinstance(value, dict):
                    keys.found.update(value)
                    keys.objects += 1
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    return keys


_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:]')


def _outermost(line: str) -> dict[str, None]:
    """The keys of an object that is nested too deeply for Python's reader."""
    found: dict[str, None] = {}
    depth, text = 0, None
    for word in _TOKEN.findall(line):
        if word == ":" and depth == 1 and text is not None:
            found[json.loads(text)] = None
        depth += (word in "{[") - (word in "}]")
        text = word if word[0] == '"' else None
    return found


def _keys_there(
    lines: DataFrame, files: Sequence[PresentFile], declared: Sequence[str]
) -> dict[int, FileKeys]:
    """The same by one Spark action: which declared keys occur, and all others."""
    by_path = {file.spark_path: file.id for file in files}
    known = F.array(*map(F.lit, declared))
    objects = (
        lines.where(F.col(_LINE).rlike(r"^\s*\{"))
        .select(fit.PATH, F.json_object_keys(_LINE).alias("keys"))
        .where(F.col("keys").isNotNull())
    )
    seen = objects.groupBy(fit.PATH).agg(
        F.count(F.lit(1)).alias("objects"),
        F.array_distinct(F.flatten(F.collect_set(F.array_except("keys", known)))).alias("others"),
        *(
            F.bool_or(F.array_contains("keys", name)).alias(f"has{at}")
            for at, name in enumerate(declared)
        ),
    )
    found: dict[int, FileKeys] = {}
    # At most a row for each file of the step, with the names of its keys.
    for row in seen.collect():
        names = {name for at, name in enumerate(declared) if row[f"has{at}"]}
        found[by_path[row[fit.PATH]]] = FileKeys(names | set(row["others"]), row["objects"])
    return found
