"""
The lines of small files, read in this process.

For Spark each file is a question to its file system while it plans, and an open file in a task; of
twenty thousand files with ten rows each that takes far longer than their rows do.

Lines end as in Hadoop's reader: at LF, CR, or both; a byte order mark before the first is no part
of it. Lines of blanks are no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.model import Source
from infold.lake.reading.json_values import json_values
from infold.messages import run_errors
from infold.spark.reading import fit
from infold.spark.reading.drift import DAMAGED, PresentFile

LINE = "_line"
_SCHEMA = T.StructType(
    [T.StructField(LINE, T.BinaryType()), T.StructField(fit.PATH, T.StringType())]
)

_MARK = b"\xef\xbb\xbf"
BLANK = b" \t\n\v\f\r"

_LONGEST = 64 * 1024 * 1024
"""Bytes that are read here at once at most."""
_IN_PLAN = 512 * 1024
"""Bytes of lines that may be part of a plan. The optimiser evaluates what is asked of those."""
_AT_ONCE = 32 * 1024 * 1024
"""Bytes of lines that go to Spark at once; more are kept in its storage, which spills."""


class TooLongError(Exception):
    """Files have more in them than is read here, whatever they take when they are packed."""


def lines_by_file(source: Source, files: Iterable[PresentFile]) -> dict[int, Sequence[bytes]]:
    """
    The lines of files that are not blank, by their ids, and the parts of those of whole values.

    Raises ``run_errors.unreadable_file``, and TooLongError.
    """
    found: dict[int, Sequence[bytes]] = {}
    size = 0
    for file in files:
        found[file.id] = _lines_here_of(source, file)
        size += sum(map(len, found[file.id]))
        if size > _LONGEST:
            raise TooLongError(file.path)
    return found


def _lines_here_of(source: Source, file: PresentFile) -> list[bytes]:
    try:
        with file.open() as opened:
            # Room is made for as much as is asked for: first as much as it is said to have.
            text = opened.read(min(file.size + 1, _LONGEST))
            if len(text) > file.size:
                text += opened.read(_LONGEST - len(text))
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
    if len(text) == _LONGEST:
        raise TooLongError(file.path)
    if source.multiline:
        return list(json_values(text))
    return [line for line in text.removeprefix(_MARK).splitlines() if line.strip(BLANK)]


def frame_of_lines(
    spark: SparkSession, files: Sequence[PresentFile], lines: Mapping[int, Sequence[bytes]]
) -> DataFrame:
    """The lines of some files, by their ids, as ``json_lines`` has them; without ``_parsed``."""
    return _together(spark, [(file.spark_path, lines[file.id]) for file in files])


def read_lines(
    spark: SparkSession, source: Source, files: Iterable[PresentFile]
) -> tuple[DataFrame, dict[int, int]]:
    """
    The same of files that are read now, and how many lines each has.

    Raises as :func:`lines_by_file`.
    """
    counts: dict[int, int] = {}
    frames = [_together(spark, some) for some in _portions(source, files, counts)]
    found = frames[0]
    for one in frames[1:]:
        found = found.unionByName(one)
    return found, counts


def _portions(
    source: Source, files: Iterable[PresentFile], counts: dict[int, int]
) -> Iterator[list[tuple[str, Sequence[bytes]]]]:
    """The lines of files, in portions; at least one."""
    some: list[tuple[str, Sequence[bytes]]] = []
    size = 0
    for file in files:
        lines = _lines_here_of(source, file)
        counts[file.id] = len(lines)
        some.append((file.spark_path, lines))
        size += sum(map(len, lines))
        if size > _AT_ONCE:
            yield some
            some, size = [], 0
    if some or not counts:
        yield some


def _together(spark: SparkSession, lines: Sequence[tuple[str, Sequence[bytes]]]) -> DataFrame:
    table = pa.table(
        {
            LINE: pa.array([line for _, some in lines for line in some], pa.binary()),
            fit.PATH: pa.array([path for path, some in lines for _ in some], pa.string()),
        }
    )
    # By Spark Connect an empty table has no schema.
    rows = spark.createDataFrame(table if table.num_rows else [], _SCHEMA)
    found = rows.select(F.col(LINE).cast("string").alias(LINE), fit.PATH)
    return found if table.nbytes <= _IN_PLAN else found.localCheckpoint()
