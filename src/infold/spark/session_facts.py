"""What a session is: one of Spark Connect, without a JVM at hand, or not; and its tasks at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def make_active(session: SparkSession) -> None:
    """
    Let a remote session be that of this thread, which PySpark gives what checkpoints keep.

    Each thread of a run has a session of its own.
    """
    if is_remote(session):
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        RemoteSession._active_session.session = session  # noqa: SLF001 (no public way)


_of_server: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def parallelism(spark: SparkSession) -> int:
    """How many tasks of a session run at once, as its Spark has it at its start."""
    if not is_remote(spark):
        return spark.sparkContext.defaultParallelism
    if spark not in _of_server:
        plan = spark.range(_MANY)._explain_string()  # type: ignore[operator]  # noqa: SLF001 (`explain` prints it)
        splits = _SPLITS.search(plan)
        _of_server[spark] = int(splits[1]) if splits else 1
    return _of_server[spark]


_MANY = 1_000_000
"""Rows for each of many tasks; they are not made."""
_SPLITS = re.compile(r"splits=(\d+)")
