"""How many tasks run at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from infold.spark.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
