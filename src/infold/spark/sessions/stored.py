"""Sessions as their table stores them: islands → rows, and rows → islands again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.project import SessionsQuery
from infold.core.session_columns import FIRST, ID, LAST, STATE, VERSION
from infold.core.session_rules import NUMBERS
from infold.spark.content import column, micros, quoted
from infold.spark.sessions.aggregate_state import StateColumn
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import CARRIED
from infold.spark.sessions.islands import END, START, USER, shown


def session_id(user: Column, start: Column) -> Column:
    """
    A session's id: MD5, in lower-case hex, of the text ``user|start``.

    The user (or identifier) is cast to a string, the start is in microseconds. A start holds no
    bar, so different pairs are different texts.
    """
    return F.md5(F.concat_ws("|", user.cast("string"), start.cast("string")))


def rows(
    islands: DataFrame,
    query: SessionsQuery,
    over: CompiledAggregates,
    time: T.DataType,
    version: int,
    keep: Sequence[str] = (),
) -> DataFrame:
    """
    Islands as rows of the table.

    ``time`` is the type of the input's time column; columns to ``keep`` come along at the end.
    """
    named = islands.select(
        session_id(F.col(USER), F.col(START)).alias(ID),
        shown(query).alias(query.user),
        F.timestamp_micros(START).cast(time).alias(FIRST),
        F.timestamp_micros(END).cast(time).alias(LAST),
        *(F.expr(sql).alias(name) for name, sql in over.values),
        _state(query, over).alias(STATE),
        *keep,
    )
    if query.numbered:  # which number a session has is found out last
        number, first = NUMBERS
        named = named.withColumns(
            {number: F.lit(None).cast("bigint"), first: F.lit(None).cast("boolean")}
        )
    if query.chosen_user:
        named = named.withColumn(query.chosen_user.name, F.expr(query.chosen_user.sql))
    return named.select(
        *map(column, query.fixed_columns),
        *(F.expr(output.sql).alias(output.name) for output in query.outputs),
        STATE,
        F.lit(version).cast("bigint").alias(VERSION),
        *keep,
    )


def _state(query: SessionsQuery, over: CompiledAggregates) -> Column:
    """What the other columns do not show of a session and of its aggregates' states."""
    parts = [F.col(part.name) for part in over.stored]
    if query.fallback:
        parts.append(F.col(USER).alias(_OF))
    if query.cuts.campaign:
        parts.append(F.col(CARRIED).alias(_CARRIED))
    return F.struct(*parts) if parts else F.struct(F.lit(None).cast("boolean").alias("none"))


_OF, _CARRIED = "of", "carried"


def of(query: SessionsQuery) -> Column:
    """What a stored session is of."""
    return F.col(f"{STATE}.{_OF}") if query.fallback else column(query.user)


def restored(query: SessionsQuery, over: CompiledAggregates, types: T.StructType) -> list[Column]:
    """The columns of an island, found in a stored row; ``types`` is the schema of islands."""
    return [
        of(query).cast(types[USER].dataType).alias(USER),
        micros(column(FIRST)).alias(START),
        micros(column(LAST)).alias(END),
        *([F.col(f"{STATE}.{_CARRIED}").alias(CARRIED)] if query.cuts.campaign else []),
        *(
            stored_part(part).cast(types[part.name].dataType).alias(part.name)
            for part in over.parts
            if part.merge is not None
        ),
    ]


def stored_part(part: StateColumn) -> Column:
    """Where a stored row has a part of an aggregate's state."""
    return F.expr(part.restore or f"{STATE}.{quoted(part.name)}")
