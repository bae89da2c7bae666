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
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, islice
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Column as Declared
from infold.core.model import Source
from infold.core.object_store import is_url
from infold.core.project import Project
from infold.lake.reading.json_lines import json_values
from infold.messages import run_errors
from infold.spark.content import column
from infold.spark.reading import fit
from infold.spark.reading.drift import (
    DAMAGED,
    Drifted,
    FileShape,
    PresentFile,
    check_bzip2,
    check_unpacks,
    declared_columns,
    differences,
    refuse_unseen,
)
from infold.spark.reading.paths import glob, worth_keeping

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
    """The shapes of files, by their ids; a known file is not looked into again."""
    for file in files:
        check_bzip2(source, file)
    new_files = [file for file in files if not file.known]
    on_disk = not any(is_url(file.path) for file in files)
    kept: Kept | None = None
    texts: Mapping[int, Sequence[bytes]] | None = None
    with suppress(TooLongError):
        if on_disk and _are_few(files):
            texts = lines_by_file(source, files)
            lines = frame_of_lines(spark, files, texts)
            kept = Kept(lines, {id_: len(lines_of_file) for id_, lines_of_file in texts.items()})
        elif on_disk and worth_keeping([file.unpacked_size for file in files]):
            kept = Kept(*read_lines(spark, source, files))
        elif _are_few(new_files):
            texts = lines_by_file(source, new_files)
    if not new_files:
        keys = {}
    elif texts is not None:
        keys = _keys_read_here(spark, source, new_files, texts)
    else:
        lines = _lines_by_spark(spark, source, new_files) if kept is None else kept.lines
        judge = kept is None and may_be_plain(spark, source, new_files)
        keys = keys_read_by_spark(lines, source, new_files, judge=judge)
    drifted = keys_drifted(source, new_files, keys)
    rows = {file.id: keys[file.id].lines if file.id in keys else 0 for file in new_files}
    if kept is not None:
        rows = {**kept.counts}
    plain = {id_: entry.lines for id_, entry in keys.items() if entry.plain and id_ not in drifted}
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


def _keys_read_here(
    spark: SparkSession,
    source: Source,
    files: Sequence[PresentFile],
    texts: Mapping[int, Sequence[bytes]],
) -> dict[int, FileKeys]:
    """The keys of files with few lines; Spark is asked for those of which it alone can say."""
    keys = {file.id: keys_of(texts[file.id]) for file in files}
    known_keys = {id_: file_keys for id_, file_keys in keys.items() if file_keys is not None}
    others = [file for file in files if file.id not in known_keys]
    if others:
        lines = frame_of_lines(spark, others, texts)
        known_keys |= keys_read_by_spark(lines, source, others, judge=False)
    return known_keys


def _are_few(files: Iterable[PresentFile]) -> bool:
    """Whether this process reads them sooner than Spark has planned to."""
    return sum(file.unpacked_size for file in files) <= IN_PROCESS


def _lines_of(
    spark: SparkSession, source: Source, shape: LinesShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The lines of files of one shape, which may be some of those that are kept."""
    kept = shape.kept
    if kept is None:
        return _lines_by_spark(spark, source, files)
    if len(files) == len(kept.counts):
        return kept.lines
    return kept.lines.where(F.col(fit.PATH).isin([file.spark_path for file in files]))


def _lines_by_spark(spark: SparkSession, source: Source, files: Iterable[PresentFile]) -> DataFrame:
    paths = [glob(file.file.location) for file in files]
    lines = spark.read.text(paths, wholetext=source.multiline)
    texts = lines.select(F.col("value").alias(LINE), F.col("_metadata.file_path").alias(fit.PATH))
    if source.multiline:
        # As bytes: Python has no text that is not UTF-8.
        whole = texts.select(F.col(LINE).cast("binary").alias(LINE), fit.PATH)
        parts = whole.mapInArrow(_parts_of_whole_files, whole.schema)
        return parts.select(F.col(LINE).cast("string").alias(LINE), fit.PATH)
    return texts.where(F.col(LINE).rlike(r"\S"))


_TOGETHER = 10_000


def _parts_of_whole_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parts of whole files, with the paths of these; Spark hands over 64 MB or one file."""
    for batch in batches:
        for text, path in zip(*batch.to_pydict().values(), strict=True):
            values = json_values(text)
            while portion := list(islice(values, _TOGETHER)):
                yield pa.RecordBatch.from_arrays(
                    [pa.array(portion, pa.binary()), pa.array([path] * len(portion), pa.string())],
                    names=batch.schema.names,
                )


def rows(
    spark: SparkSession, source: Source, shape: LinesShape, files: Sequence[PresentFile]
) -> DataFrame:
    """The rows of files of one shape; of plain ones by Spark's own reader of JSON."""
    if shape.read:
        plain, plain_ids = plain_rows(spark, source, files, shape.plain)
        rest = [file for file in files if file.id not in plain_ids]
        if not rest:
            return plain
        other_rows = rows(spark, source, LinesShape(), rest)
        refuse_unseen(source, other_rows, rest)
        of_rest = F.col(fit.PATH).isin([file.spark_path for file in rest])
        return plain.where(~of_rest).unionByName(other_rows)
    lines = _lines_of(spark, source, shape, files)
    if shape.drift is not None:
        raw = F.make_valid_utf8(F.col(LINE))
        how = F.lit(f"drift: {shape.drift.how}")
        return fit.unusable_rows(lines, source.columns, F.col(fit.PATH), raw, how)
    line = F.col(LINE)
    parsed = lines.select(
        "*",
        F.try_parse_json(fit.wrapped(fit.marked(line))).alias(_PARSED),
    )
    # An object of its own: not a list, a number or nothing.
    good = line.rlike(r"^\s*\{") & fit.alone(F.col(_PARSED))
    texts = parsed.select(
        *(_text_of(column).alias(fit.text_name(at)) for at, column in enumerate(source.columns)),
        fit.PATH,
        F.make_valid_utf8(line).alias(fit.RAW),
        fit.broken(
            F.when(~F.is_valid_utf8(line), F.lit(fit.NOT_UTF8))
            .when(~good, F.lit("unparsable: not one JSON object"))
            .when(fit.half_pair(line), F.lit(fit.HALF_PAIR))
            .when(fit.has_mark(line), F.lit("unparsable: it contains text that infold reserves"))
        ),
    )
    return fit.typed_rows(texts, source.columns, source.timestamp_format)


def _text_of(column: Declared) -> Column:
    place = fit.place(column.name)
    text = fit.unmarked(F.try_variant_get(F.col(_PARSED), place, "string"))
    if column.default is None:
        return text
    # Only a key that is missing has the default; one whose value is null is NULL.
    absent = F.try_variant_get(F.col(_PARSED), place, "variant").isNull()
    return F.when(absent, F.lit(column.default)).otherwise(text)


# What the keys of a line are is what Spark's `json_object_keys` finds. Files with few lines are
# looked into in this process, if that is sure to find the same; all others by one action of
# Spark's.


@dataclass(slots=True)
class FileKeys:
    """
    The keys of a file's objects, how many these are, and how many lines it has.

    ``plain`` if it is known to be a plain file.
    """

    found: set[str] = field(default_factory=set)
    objects: int = 0
    lines: int = 0
    plain: bool = False


def keys_drifted(
    source: Source, files: Sequence[PresentFile], keys: Mapping[int, FileKeys]
) -> dict[int, Drifted]:
    """How files drift, by their ids; one without an object does not."""
    declared = _declared_names(source)
    drifted = {}
    for file in files:
        entry = keys.get(file.id)
        if entry is None or not entry.objects:
            continue
        names = [*(name for name in declared if name in entry.found), *sorted(entry.found)]
        drift = differences(source, file, list(dict.fromkeys(names)))
        if drift is not None:
            drifted[file.id] = drift
    return drifted


def _declared_names(source: Source) -> list[str]:
    return [*(column.name for column in source.columns), *source.unread_columns]


def keys_of(lines: Sequence[bytes]) -> FileKeys | None:
    """
    The keys of the objects among lines; None where only Spark can say what it finds in one.

    No two readers of JSON find the same in a line that is broken, and how a file is judged must not
    depend on the size of the step. So this knows the lines that are JSON to every reader.
    """
    keys = FileKeys(lines=len(lines))
    for line in lines:
        if not line.lstrip(BLANK).startswith(b"{"):
            continue  # no object to any reader
        names = _keys_of(line)
        if names is None:
            return None
        keys.found.update(names)
        keys.objects += 1
    return keys


_PARSER_LIMIT = 1_000
"""What Spark's reader takes at most: so many digits of a number, so many brackets in brackets."""
_LONGEST_NAME = 50_000
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % _PARSER_LIMIT)


def _keys_of(line: bytes) -> Collection[str] | None:
    """The keys of an object; None where it is none to this reader, or may be none to Spark's."""
    if len(line) > _PARSER_LIMIT and (
        len(line) > _LONGEST_NAME
        or line.count(b"{") + line.count(b"[") > _PARSER_LIMIT
        or _LONG_NUMBER.search(line)
    ):
        return None
    try:
        parsed: dict[str, object] = _STRICT_DECODER.decode(line.decode())
        "".join(parsed).encode()  # Spark has no text with half of a pair of surrogates
    except (ValueError, RecursionError):
        return None
    return parsed


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_STRICT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def keys_read_by_spark(
    lines: DataFrame, source: Source, files: Iterable[PresentFile], *, judge: bool
) -> dict[int, FileKeys]:
    """
    The same by one Spark action, of files of which ``lines`` are; those without lines are left out.

    Which files are plain is found if it is to be judged.
    """
    by_path = {file.spark_path: file.id for file in files}  # others were judged before
    declared = _declared_names(source)
    known = F.array(*map(F.lit, declared))
    line = F.col(LINE)
    plain = is_plain(line, source.columns) if judge else F.lit(False)
    keys = F.when(line.rlike(r"^\s*\{"), F.json_object_keys(line))
    # Most objects of a file have the same keys, in the same order.
    alike = (
        lines.select(fit.PATH, keys.alias("keys"), plain.alias("plain"))
        .groupBy(fit.PATH, "keys")
        .agg(F.count(F.lit(1)).alias("lines"), F.bool_and("plain").alias("plain"))
    )
    is_object, once = F.col("keys").isNotNull(), F.size(F.array_distinct("keys")) == F.size("keys")
    by_file = alike.groupBy(fit.PATH).agg(
        F.sum("lines").alias("lines"),
        F.sum(F.when(is_object, F.col("lines")).otherwise(F.lit(0))).alias("objects"),
        F.bool_and(F.col("plain") & is_object & once).alias("plain"),
        F.array_distinct(F.flatten(F.collect_set(F.array_except("keys", known)))).alias("others"),
        *(
            F.bool_or(F.array_contains("keys", name)).alias(f"has{at}")
            for at, name in enumerate(declared)
        ),
    )
    keys_by_file: dict[int, FileKeys] = {}
    # At most a row for each file of the step, with the names of its keys.
    for path, rows, objects, all_plain, others, *has in by_file.collect():
        if (id_ := by_path.get(path)) is not None:
            names = {*compress(declared, has), *others}
            keys_by_file[id_] = FileKeys(names, objects, rows, all_plain)
    return keys_by_file


# Spark's reader gives strings, and what else a value may be as it is written: but of a list and an
# object too, of keys that are there twice it takes the last one, and what follows an object it
# ignores. So a *plain* file is one whose lines are each one object, UTF-8, without keys of one
# name, without half of a pair of surrogates, and without a list or an object in a declared column.
# That is found in the same look at the lines that finds their keys.
#
# The rows of plain files come without their texts, and are kept on disk: a first load looks at them
# more than once. Where a line turns out to be no JSON, all of its file is read in the other way.

MOST_BYTES_ON_DISK = 64 * 1024**3
"""Bytes of lines whose rows are kept on disk at most."""
LONGEST_LINE = 1024 * 1024
"""Bytes of a line. What is longer may be too long for one reader and not for the other."""

_SAMPLE_BYTES = 64 * 1024
"""Bytes of the first file."""

_NESTED = r'"([^"\\]*)"\s*:\s*[\[{]'
"""A key whose value is a list or an object. In a text quotes have backslashes, so none is there."""
_ESCAPED_KEY = r'(?<!\\)"[^"\\]*+\\[^"]*+"\s*:'
"""A key with an escape, or what looks like one."""
_FLAT = r"^\{[^{}\[\\]*+\}\z"
_BROKEN, _BROKEN_TEXT = "unparsable", "_infold_broken_text"
_SIGNS = frozenset('"\\:{[')
"""What a name may not have, so that :data:`_NESTED` finds it."""
_METADATA = "_metadata"
"""Spark's own column of files."""


def may_be_plain(spark: SparkSession, source: Source, files: Sequence[PresentFile]) -> bool:
    """
    Whether it is worth the while to find out which files of a source are plain.

    The rows of those come without their texts. Spark's reader tells a key that is missing, which
    has the column's default, from one that is null no more than names that differ in their case
    alone. Where the first file begins with a list or an object in a declared column, others have
    them too.
    """
    names = {name.name.lower() for name in source.columns} | {_BROKEN_TEXT, _METADATA}
    return (
        not source.multiline
        and bool(source.columns)
        and not any(_SIGNS & {*declared.name} for declared in source.columns)
        and len(names) == len(source.columns) + 2
        and all(declared.default is None for declared in source.columns)
        and not any(file.texts for file in files)
        and _fits_on_disk(spark, sum(file.unpacked_size for file in files))
        and not _begins_nested(source, files[0])
    )


def _fits_on_disk(spark: SparkSession, size: int) -> bool:
    """Whether rows of so many bytes of lines fit on the disk, where other things are too."""
    folder = Path((spark.conf.get("spark.local.dir", "") or "").split(",")[0])
    if size > MOST_BYTES_ON_DISK:
        return False
    # Of a cluster's disks nothing is known here.
    return not folder.is_dir() or 4 * size <= shutil.disk_usage(folder).free


def _begins_nested(source: Source, file: PresentFile) -> bool:
    try:
        with file.open() as opened:
            lines = opened.read(_SAMPLE_BYTES).splitlines()
    except DAMAGED:
        return True
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            values = (value.get(column.name) for column in source.columns)
            if any(isinstance(nested_value, dict | list) for nested_value in values):
                return True
    return False


def is_plain(line: Column, columns: Sequence[Declared]) -> Column:
    """
    Whether a line may be one of a plain file; never NULL.

    Most lines have no escapes, and no brackets but their own two: they cannot have more than one
    object, nor a list or an object in that. Whether it is one, :func:`rows` finds out, and whether
    two of its keys have one name, who knows them.
    """
    with_nested = F.regexp_extract_all(line, F.lit(_NESTED), F.lit(1))
    names = F.array(*(F.lit(declared.name) for declared in columns))
    # Through a list of one: what is parsed is named twice, and parsed once.
    parsed = F.array(F.try_parse_json(fit.wrapped(line)))
    others = (
        line.startswith("{")
        & ~fit.half_pair(line)
        & ~fit.has_mark(line)
        & ~line.rlike(_ESCAPED_KEY)
        & ~F.arrays_overlap(with_nested, names)
        & F.transform(parsed, fit.alone)[0]
    )
    plain = (
        F.is_valid_utf8(line)
        & (F.octet_length(line) <= LONGEST_LINE)
        # Not by OR: of that Spark evaluates both sides where these have something in common.
        & F.when(line.rlike(_FLAT), F.lit(True)).otherwise(others)
    )
    return F.coalesce(plain, F.lit(False))


def plain_rows(
    spark: SparkSession, source: Source, files: Sequence[PresentFile], lines: Mapping[int, int]
) -> tuple[DataFrame, frozenset[int]]:
    """
    The rows of plain files, kept on disk, and the ids of the files that have their rows there.

    Those are left out that have a line that is no JSON, or not as many rows as ``lines`` by the
    ids of files. Raises ``run_errors.source_changed`` where a store does not show a file.
    """
    texts = _texts(spark, source, files)
    refuse_unseen(source, texts, files)
    typed = fit.typed_rows(texts, source.columns, source.timestamp_format)
    kept = typed.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    broken = F.count_if(F.col(fit.PROBLEM) == _BROKEN)
    counts = kept.groupBy(fit.PATH).agg(F.count(F.lit(1)).alias("rows"), broken.alias("broken"))
    # At most a row for each file of the step.
    sound = {row[fit.PATH]: row["rows"] for row in counts.collect() if not row["broken"]}
    complete = frozenset(file.id for file in files if sound.get(file.spark_path) == lines[file.id])
    return kept, complete


def _texts(spark: SparkSession, source: Source, files: Iterable[PresentFile]) -> DataFrame:
    fields = [T.StructField(each.name, T.StringType()) for each in source.columns]
    broken = T.StructField(_BROKEN_TEXT, T.StringType())
    texts = (
        spark.read.schema(T.StructType([*fields, broken]))
        .option("columnNameOfCorruptRecord", _BROKEN_TEXT)
        .option("allowSingleQuotes", False)
        .option("allowNonNumericNumbers", False)
        .json([glob(file.file.location) for file in files])
    )
    return texts.select(
        *(column(each.name).alias(fit.text_name(at)) for at, each in enumerate(source.columns)),
        F.col(f"{_METADATA}.file_path").alias(fit.PATH),
        F.lit(None).cast("string").alias(fit.RAW),
        fit.broken(F.when(F.col(_BROKEN_TEXT).isNotNull(), F.lit(_BROKEN))),
    )


# For Spark each file is a question to its file system while it plans, and an open file in a task;
# of twenty thousand files with ten rows each that takes far longer than their rows do.
#
# Lines end as in Hadoop's reader: at LF, CR, or both; a byte order mark before the first is no part
# of it. Lines of blanks are no rows.

LINE = "_line"
_SCHEMA = T.StructType(
    [T.StructField(LINE, T.BinaryType()), T.StructField(fit.PATH, T.StringType())]
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANK = b" \t\n\v\f\r"

_MOST_BYTES_READ_HERE = 64 * 1024 * 1024
"""Bytes that are read here at once at most."""
_MOST_BYTES_IN_PLAN = 512 * 1024
"""Bytes of lines that may be part of a plan. The optimiser evaluates what is asked of those."""
_BYTES_AT_ONCE = 32 * 1024 * 1024
"""Bytes of lines that go to Spark at once; more are kept in its storage, which spills."""


class TooLongError(Exception):
    """Files have more in them than is read here, whatever they take when they are packed."""


def lines_by_file(source: Source, files: Iterable[PresentFile]) -> dict[int, Sequence[bytes]]:
    """
    The lines of files that are not blank, by their ids, and the parts of those of whole values.

    Raises ``run_errors.unreadable_file``, and TooLongError.
    """
    lines: dict[int, Sequence[bytes]] = {}
    size = 0
    for file in files:
        lines[file.id] = _lines_read_here(source, file)
        size += sum(map(len, lines[file.id]))
        if size > _MOST_BYTES_READ_HERE:
            raise TooLongError(file.path)
    return lines


def _lines_read_here(source: Source, file: PresentFile) -> list[bytes]:
    try:
        with file.open() as opened:
            # Room is made for as much as is asked for: first as much as it is said to have.
            text = opened.read(min(file.size + 1, _MOST_BYTES_READ_HERE))
            if len(text) > file.size:
                text += opened.read(_MOST_BYTES_READ_HERE - len(text))
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    if len(text) == _MOST_BYTES_READ_HERE:
        raise TooLongError(file.path)
    if source.multiline:
        return list(json_values(text))
    return [line for line in text.removeprefix(_BYTE_ORDER_MARK).splitlines() if line.strip(BLANK)]


def frame_of_lines(
    spark: SparkSession, files: Sequence[PresentFile], lines: Mapping[int, Sequence[bytes]]
) -> DataFrame:
    """The lines of some files, by their ids, as ``json_lines`` has them; without ``_parsed``."""
    return _frame_of(spark, [(file.spark_path, lines[file.id]) for file in files])


def read_lines(
    spark: SparkSession, source: Source, files: Iterable[PresentFile]
) -> tuple[DataFrame, dict[int, int]]:
    """
    The same of files that are read now, and how many lines each has.

    Raises as :func:`lines_by_file`.
    """
    counts: dict[int, int] = {}
    frames = [_frame_of(spark, portion) for portion in _portions(source, files, counts)]
    lines = frames[0]
    for frame in frames[1:]:
        lines = lines.unionByName(frame)
    return lines, counts


def _portions(
    source: Source, files: Iterable[PresentFile], counts: dict[int, int]
) -> Iterator[list[tuple[str, Sequence[bytes]]]]:
    """The lines of files, in portions; at least one."""
    portion: list[tuple[str, Sequence[bytes]]] = []
    size = 0
    for file in files:
        lines = _lines_read_here(source, file)
        counts[file.id] = len(lines)
        portion.append((file.spark_path, lines))
        size += sum(map(len, lines))
        if size > _BYTES_AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion or not counts:
        yield portion


def _frame_of(spark: SparkSession, lines: Sequence[tuple[str, Sequence[bytes]]]) -> DataFrame:
    table = pa.table(
        {
            LINE: pa.array([line for _, own in lines for line in own], pa.binary()),
            fit.PATH: pa.array([path for path, own in lines for _ in own], pa.string()),
        }
    )
    # By Spark Connect an empty table has no schema.
    rows = spark.createDataFrame(table if table.num_rows else [], _SCHEMA)
    texts = rows.select(F.col(LINE).cast("string").alias(LINE), fit.PATH)
    return texts if table.nbytes <= _MOST_BYTES_IN_PLAN else texts.localCheckpoint()
