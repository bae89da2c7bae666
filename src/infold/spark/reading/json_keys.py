"""
The keys of JSON lines, by which a file drifts, and which files are plain (``json_plain``).

What the keys of a line are is what Spark's ``json_object_keys`` finds. Files with few lines are
looked into in this process, if that is sure to find the same; all others by one action of Spark's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NoReturn

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.model import Source
from infold.spark.reading import fit, json_plain
from infold.spark.reading.drift import Drifted, PresentFile, differences
from infold.spark.reading.lines_here import BLANK, LINE


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
    declared = _declared(source)
    found = {}
    for file in files:
        entry = keys.get(file.id)
        if entry is None or not entry.objects:
            continue
        names = [*(name for name in declared if name in entry.found), *sorted(entry.found)]
        drift = differences(source, file, list(dict.fromkeys(names)))
        if drift is not None:
            found[file.id] = drift
    return found


def _declared(source: Source) -> list[str]:
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
        found = _keys_of(line)
        if found is None:
            return None
        keys.found.update(found)
        keys.objects += 1
    return keys


_MOST = 1_000
"""What Spark's reader takes at most: so many digits of a number, so many brackets in brackets."""
_LONGEST_NAME = 50_000
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % _MOST)


def _keys_of(line: bytes) -> Collection[str] | None:
    """The keys of an object; None where it is none to this reader, or may be none to Spark's."""
    if len(line) > _MOST and (
        len(line) > _LONGEST_NAME
        or line.count(b"{") + line.count(b"[") > _MOST
        or _LONG_NUMBER.search(line)
    ):
        return None
    try:
        found: dict[str, object] = _STRICT.decode(line.decode())
        "".join(found).encode()  # Spark has no text with half of a pair of surrogates
    except (ValueError, RecursionError):
        return None
    return found


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_STRICT = json.JSONDecoder(parse_constant=_refused)


def keys_there(
    lines: DataFrame, source: Source, files: Iterable[PresentFile], *, judge: bool
) -> dict[int, FileKeys]:
    """
    The same by one Spark action, of files of which ``lines`` are; those without lines are left out.

    Which files are plain is found if it is to be judged.
    """
    by_path = {file.spark_path: file.id for file in files}  # others were judged before
    declared = _declared(source)
    known = F.array(*map(F.lit, declared))
    line = F.col(LINE)
    plain = json_plain.is_plain(line, source.columns) if judge else F.lit(False)
    keys = F.when(line.rlike(r"^\s*\{"), F.json_object_keys(line))
    # Most objects of a file have the same keys, in the same order.
    alike = (
        lines.select(fit.PATH, keys.alias("keys"), plain.alias("plain"))
        .groupBy(fit.PATH, "keys")
        .agg(F.count(F.lit(1)).alias("lines"), F.bool_and("plain").alias("plain"))
    )
    there, once = F.col("keys").isNotNull(), F.size(F.array_distinct("keys")) == F.size("keys")
    seen = alike.groupBy(fit.PATH).agg(
        F.sum("lines").alias("lines"),
        F.sum(F.when(there, F.col("lines")).otherwise(F.lit(0))).alias("objects"),
        F.bool_and(F.col("plain") & there & once).alias("plain"),
        F.array_distinct(F.flatten(F.collect_set(F.array_except("keys", known)))).alias("others"),
        *(
            F.bool_or(F.array_contains("keys", name)).alias(f"has{at}")
            for at, name in enumerate(declared)
        ),
    )
    found: dict[int, FileKeys] = {}
    # At most a row for each file of the step, with the names of its keys.
    for path, rows, objects, all_plain, others, *has in seen.collect():
        if (id_ := by_path.get(path)) is not None:
            names = {*compress(declared, has), *others}
            found[id_] = FileKeys(names, objects, rows, all_plain)
    return found
