"""
What a JVM remembers of the logs of tables, and when it has to forget it.

It takes for granted that a path is one table, with versions that only rise. infold gives tables
other names, drops them, and takes versions of scratch tables away.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from infold.lake.delta.log import Log

_seen: dict[str, tuple[str, int, str]] = {}
"""The table, its newest version and where that is, as this process last saw each folder."""


def forget_changed(spark: SparkSession, folder: str, log: Log | None) -> None:
    """Let the JVM forget a folder's log if it is not one that goes on from the one it knows."""
    before = _seen.get(folder)
    if log is None:
        _seen.pop(folder, None)
    else:
        now = (log.schema().table_id, log.newest, log.location)
        _seen[folder] = now
        if before is not None and before[0] == now[0] and (before[1] < now[1] or before == now):
            return
    jvm: Any = spark._jvm  # noqa: SLF001 (no public way)
    path = jvm.org.apache.hadoop.fs.Path(folder)
    session = spark._jsparkSession  # noqa: SLF001 (as above)
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(session, path)
