"""
Files of lines that Spark's own JSON reader reads as ``json_lines`` does, at half the cost.

Spark's reader gives strings, and what else a value may be as it is written: but of a list and an
object too, of keys that are there twice it takes the last one, and what follows an object it
ignores. So a *plain* file is one whose lines are each one object, UTF-8, without keys of one name,
without half of a pair of surrogates, and without a list or an object in a declared column. That is
found in the same look at the lines that finds their keys.

The rows of plain files come without their texts, and are kept on disk: a first load looks at them
more than once. Where a line turns out to be no JSON, all of its file is read in the other way.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Column as Declared
from infold.core.model import Source
from infold.spark.content import column
from infold.spark.reading import fit, json_text
from infold.spark.reading.drift import DAMAGED, PresentFile, refuse_unseen
from infold.spark.reading.paths import glob

MOST = 64 * 1024**3
"""Bytes of lines whose rows are kept on disk at most."""
LONGEST = 1024 * 1024
"""Bytes of a line. What is longer may be too long for one reader and not for the other."""

_SAMPLE = 64 * 1024
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
        and not any(_SIGNS & {*one.name} for one in source.columns)
        and len(names) == len(source.columns) + 2
        and all(one.default is None for one in source.columns)
        and not any(file.texts for file in files)
        and _fit(spark, sum(file.unpacked_size for file in files))
        and not _begins_nested(source, files[0])
    )


def _fit(spark: SparkSession, size: int) -> bool:
    """Whether rows of so many bytes of lines fit on the disk, where other things are too."""
    folder = Path((spark.conf.get("spark.local.dir", "") or "").split(",")[0])
    if size > MOST:
        return False
    # Of a cluster's disks nothing is known here.
    return not folder.is_dir() or 4 * size <= shutil.disk_usage(folder).free


def _begins_nested(source: Source, file: PresentFile) -> bool:
    try:
        with file.open() as opened:
            lines = opened.read(_SAMPLE).splitlines()
    except DAMAGED:
        return True
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found = (value.get(column.name) for column in source.columns)
            if any(isinstance(one, dict | list) for one in found):
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
    names = F.array(*(F.lit(one.name) for one in columns))
    # Through a list of one: what is parsed is named twice, and parsed once.
    parsed = F.array(F.try_parse_json(json_text.wrapped(line)))
    others = (
        line.startswith("{")
        & ~json_text.half_pair(line)
        & ~json_text.has_mark(line)
        & ~line.rlike(_ESCAPED_KEY)
        & ~F.arrays_overlap(with_nested, names)
        & F.transform(parsed, json_text.alone)[0]
    )
    found = (
        F.is_valid_utf8(line)
        & (F.octet_length(line) <= LONGEST)
        # Not by OR: of that Spark evaluates both sides where these have something in common.
        & F.when(line.rlike(_FLAT), F.lit(True)).otherwise(others)
    )
    return F.coalesce(found, F.lit(False))


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
    right = {row[fit.PATH]: row["rows"] for row in counts.collect() if not row["broken"]}
    there = frozenset(file.id for file in files if right.get(file.spark_path) == lines[file.id])
    return kept, there


def _texts(spark: SparkSession, source: Source, files: Iterable[PresentFile]) -> DataFrame:
    fields = [T.StructField(one.name, T.StringType()) for one in source.columns]
    broken = T.StructField(_BROKEN_TEXT, T.StringType())
    found = (
        spark.read.schema(T.StructType([*fields, broken]))
        .option("columnNameOfCorruptRecord", _BROKEN_TEXT)
        .option("allowSingleQuotes", False)
        .option("allowNonNumericNumbers", False)
        .json([glob(file.file.location) for file in files])
    )
    return found.select(
        *(column(one.name).alias(fit.text_name(at)) for at, one in enumerate(source.columns)),
        F.col(f"{_METADATA}.file_path").alias(fit.PATH),
        F.lit(None).cast("string").alias(fit.RAW),
        F.when(F.col(_BROKEN_TEXT).isNotNull(), F.lit(_BROKEN)).alias(fit.BROKEN),
    )
