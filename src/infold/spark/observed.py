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

from infold.spark.session_facts import is_remote


class Aggregates(Protocol):
    """Aggregates by their names; asking for them waits until the rows have been computed."""

    @property
    def get(self) -> Mapping[str, Any]:
        """The aggregates; Spark forgets those of a plan that turned out to be empty."""


@dataclass(frozen=True, slots=True)
class KnownAggregates:
    """Aggregates that are known before the rows have been computed."""

    get: Mapping[str, Any]


def observed(rows: DataFrame, *aggregates: Column) -> tuple[DataFrame, Aggregates]:
    """The same rows, and aggregates that are known once these have been computed."""
    if is_remote(rows.sparkSession):
        computed = rows.localCheckpoint()
        return computed, _aggregates_over(computed, aggregates)
    observation = Observation()
    return rows.observe(observation, *aggregates), observation


def kept_and_observed(
    rows: DataFrame,
    *aggregates: Column,
    without: Sequence[str] = (),
    level: StorageLevel | None = None,
) -> tuple[DataFrame, Mapping[str, Any]]:
    """The rows, computed once and kept ``without`` some columns, and aggregates over them."""
    if is_remote(rows.sparkSession):
        computed = rows.localCheckpoint(storageLevel=level)
        return computed.drop(*without), _aggregates_over(computed, aggregates).get
    observed_rows, observation = observed(rows, *aggregates)
    return observed_rows.drop(*without).localCheckpoint(storageLevel=level), observation.get


def _aggregates_over(rows: DataFrame, aggregates: tuple[Column, ...]) -> KnownAggregates:
    # One row.
    [row] = rows.agg(*aggregates).collect()
    return KnownAggregates(row.asDict())
