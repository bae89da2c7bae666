"""Many queries are evaluated by Spark in few actions: their rows are texts, each tagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOGETHER = 40
"""Queries in an action: plans that are much larger take Spark more than their share."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
"""Few rows take less time than code for them."""


def interpreted(spark: SparkSession) -> SparkSession:
    """Another session, with views of its own, that makes no code."""
    session = spark.newSession()
    for key, value in INTERPRETED.items():
        session.conf.set(key, value)
    return session


def rows_of(session: SparkSession, queries: Sequence[str]) -> list[Counter[str] | None]:
    """The rows of each query, as JSON; None for one that Spark does not take."""
    return [
        rows
        for at in range(0, len(queries), TOGETHER)
        for rows in _together(session, queries[at : at + TOGETHER])
    ]


def _together(session: SparkSession, queries: Sequence[str]) -> list[Counter[str] | None]:
    """In one action; where it fails, each half by itself."""
    from pyspark.errors import PySparkException

    parts = [
        f"SELECT {at} AS at, to_json(struct(*), map('ignoreNullFields', 'false')) AS row "
        f"FROM ({query})"
        for at, query in enumerate(queries)
    ]
    try:
        read = session.sql(" UNION ALL ".join(parts)).toArrow().to_pylist()
    except PySparkException:
        if len(queries) == 1:
            return [None]
        half = len(queries) // 2
        return [*_together(session, queries[:half]), *_together(session, queries[half:])]
    found: list[Counter[str] | None] = [Counter() for _ in queries]
    for row in read:
        rows = found[row["at"]]
        assert rows is not None
        rows[row["row"]] += 1
    return found
