"""
Aggregates over rows that are computed for something else as well.

Spark finds them in the query that computes the rows. A server of Spark Connect says what a command
found only if it has heard of that within a tenth of a second, and nothing otherwise. So there the
rows are kept first, and the aggregates are a query over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation

from infold.spark.remote import is_remote


class Seen(Protocol):
    """Aggregates by their names; asking for them waits until the rows have been computed."""

    @property
    def get(self) -> Mapping[str, Any]:
        """The aggregates; Spark forgets those of a plan that turned out to be empty."""


@dataclass(frozen=True, slots=True)
class Found:
    """Aggregates that are known before the rows have been computed."""

    get: Mapping[str, Any]


def observed(rows: DataFrame, *aggregates: Column) -> tuple[DataFrame, Seen]:
    """The same rows, and aggregates that are known once these have been computed."""
    if is_remote(rows.sparkSession):
        kept = rows.localCheckpoint()
        return kept, _over(kept, aggregates)
    seen = Observation()
    return rows.observe(seen, *aggregates), seen


def kept_and_observed(
    rows: DataFrame,
    *aggregates: Column,
    without: Sequence[str] = (),
    level: StorageLevel | None = None,
) -> tuple[DataFrame, Mapping[str, Any]]:
    """The rows, computed once and kept ``without`` some columns, and aggregates over them."""
    if is_remote(rows.sparkSession):
        kept = rows.localCheckpoint(storageLevel=level)
        return kept.drop(*without), _over(kept, aggregates).get
    watched, seen = observed(rows, *aggregates)
    return watched.drop(*without).localCheckpoint(storageLevel=level), seen.get


def _over(kept: DataFrame, aggregates: tuple[Column, ...]) -> Found:
    # One row.
    [row] = kept.agg(*aggregates).collect()
    return Found(row.asDict())
