"""Many queries are evaluated by Spark in few actions: their rows are texts, each tagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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


def view(session: SparkSession, name: str, rows: Sequence[tuple[Any, ...]], schema: str) -> None:
    """Rows as a view; they come from Python once, and not for each query."""
    frame = session.createDataFrame(rows, schema).coalesce(1)
    frame.localCheckpoint().createOrReplaceTempView(name)


def rows_of(session: SparkSession, queries: Sequence[str]) -> list[Counter[str] | None]:
    """The rows of each query, as JSON; None for one that Spark does not take."""
    return [
        rows
        for at in range(0, len(queries), TOGETHER)
        for rows in _together(session, queries[at : at + TOGETHER])
    ]


def _together(session: SparkSession, queries: Sequence[str]) -> list[Counter[str] | None]:
    """In one action. Where it fails, without those that cannot be analysed; else by halves."""
    from pyspark.errors import PySparkException

    try:
        return list(_read(session, queries))
    except PySparkException:
        right = [query for query in queries if _analysed(session, query)]
    if len(right) < len(queries):
        found = iter(_together(session, right) if right else ())
        return [next(found) if query in right else None for query in queries]
    if len(queries) == 1:
        return [None]
    half = len(queries) // 2
    return [*_together(session, queries[:half]), *_together(session, queries[half:])]


def _read(session: SparkSession, queries: Sequence[str]) -> list[Counter[str]]:
    parts = [
        f"SELECT {at} AS at, to_json(struct(*), map('ignoreNullFields', 'false')) AS row "
        f"FROM ({query})"
        for at, query in enumerate(queries)
    ]
    found: list[Counter[str]] = [Counter() for _ in queries]
    for row in session.sql(" UNION ALL ".join(parts)).toArrow().to_pylist():
        found[row["at"]][row["row"]] += 1
    return found


def _analysed(session: SparkSession, query: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        session.sql(f"SELECT to_json(struct(*)) FROM ({query})")
    except PySparkException:
        return False
    return True
