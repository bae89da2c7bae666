"""
Which stored table is damaged when Spark cannot read: one with missing or corrupt files.

Spark reports the message of its file reader, mostly without the table and often without the file.
So after such a message the tables that were read are checked, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from infold.core.model import table_name
from infold.core.ports import Lake
from infold.messages import mismatches
from infold.messages.errors import InfoldError
from infold.spark.tables.port import Tables
from infold.system.failures import is_store_failure

_WORDS = re.compile(
    "FileNotFound|NotFoundException|NoSuchFile|does not exist|open input stream|parquet|corrupt"
    "|decompress|zstd|checksum|magic|EOFException|end of file|puffin|avro",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?:file:)?((?:(?:s3a?|gs|abfss):/|hdfs://[^\s/]+)?/[^\s:;,()'\"]+\.(?:parquet|avro|puffin|orc|csv|json|gz))\b"
)
_LONGEST = 300


def damaged_table(
    lake: Lake, tables: Tables, names: Iterable[str], error: BaseException
) -> tuple[str, InfoldError] | None:
    """The first of these tables that is damaged, and how; None if the error has another cause."""
    if not _WORDS.search(str(error)):
        return None
    names = list(names)
    for name in names:
        lost_files = lake.lost_files(table_name(name))
        if lost_files:
            return name, mismatches.damaged_table(name, lost_files[0], len(lost_files))
    if is_store_failure(str(error)):  # the same files may be read by the next run
        return None
    files = _FILE.findall(str(error))
    if files:  # the file is of one of these tables, or of a source
        return next(
            (
                (name, mismatches.damaged_table(name, _last_cause(error)))
                for name in names
                if any(lake.has_file(table_name(name), file) for file in files)
            ),
            None,
        )
    for name in names:
        try:
            tables.read(name).write.format("noop").mode("overwrite").save()
        except Exception as read_error:  # noqa: BLE001 (whatever keeps a table from being read)
            if is_store_failure(str(read_error)):
                return None
            return name, mismatches.damaged_table(name, _last_cause(read_error))
    return None


def _last_cause(error: BaseException) -> str:
    """The most useful line of a long message: the last cause, or else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    line = causes[-1].removeprefix("Caused by: ") if causes else next(iter(lines), "")
    return (line or type(error).__name__)[:_LONGEST]
