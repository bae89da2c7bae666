"""
Events → islands: maximal runs of one owner's events that no pairwise cut parts.

``prepared_events`` are the events of the input with the columns that the rest needs. An island ends
where a silence is longer than the gap, or at a midnight that cuts: both follow from two
neighbouring events alone. Where sessions end within an island is for ``divide``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.content import column, is_technical, micros
from infold.spark.frame_schema import returns
from infold.spark.sessions.aggregates import (
    CompiledAggregates,
    EvaluationMode,
    StateColumn,
    compile_aggregates,
    orderable,
)
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.base import silence_of, silence_state
from infold.spark.sessions.frames import (
    END,
    EVENTS,
    ISLAND,
    ISLANDS,
    NUMBERED_EVENTS,
    OWNER,
    PREPARED_EVENTS,
    QUIET,
    SPAN_END,
    SPAN_OWNER,
    SPAN_START,
    SPANS,
    START,
    TIME,
    key_column,
)


def compiled_aggregates(events: DataFrame, query: SessionsQuery) -> CompiledAggregates:
    """The query's aggregates, compiled against its input."""
    keys = [key_column(at) for at, _ in enumerate(_order_columns(events, query))]
    outputs = (query.chosen_user, *query.outputs) if query.chosen_user else query.outputs
    compiled = compile_aggregates(query.aggregates, outputs, events, keys)
    silence = silence_state(query)
    return compiled if silence is None else replace(compiled, parts=(*compiled.parts, silence))


def owner_of_event(query: SessionsQuery) -> Column:
    """
    The user or identifier that an event's session belongs to; NULL for an event in no session.

    Where users replace missing identifiers, a letter before the value distinguishes the two.
    """
    identifier = F.expr(query.owner_sql) if query.owner_sql else column(query.user)
    if query.fallback is None:
        return identifier
    user = F.expr(query.fallback.user).cast("string")
    return F.coalesce(F.concat(F.lit("i"), identifier.cast("string")), F.concat(F.lit("u"), user))


def shown_owner(query: SessionsQuery) -> Column:
    """The owner of a session as the table's own column shows it."""
    if query.fallback is None:
        return F.col(OWNER)
    return F.when(F.col(OWNER).startswith("i"), F.expr(f"substring({OWNER}, 2)"))


def are_parted(query: SessionsQuery, before: Column, after: Column) -> Column:
    """Whether neighbouring events of an owner, at two instants, are in two islands."""
    parts = [cut.parts(before, after) for cut in cuts_of(query).pairwise]
    return reduce(Column.__or__, parts) if parts else F.lit(False)


def _order_columns(events: DataFrame, query: SessionsQuery) -> Sequence[str]:
    """
    The columns that order events of equal time: the key, and all there are when it is not enough.

    Either way the order follows from the content of the events.
    """
    if query.key and query.unique:
        return query.key
    fields = [field for field in events.schema if not is_technical(field.name)]
    others = [field.name for field in fields if orderable(field.dataType)]
    return [*query.key, *(name for name in others if name not in query.key)]


def events_of_query(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The events that the query's WHERE keeps."""
    return events if query.where is None else events.where(F.expr(query.where))


@returns(PREPARED_EVENTS)
def prepared_events(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates
) -> DataFrame:
    """The events that belong to sessions, with just the columns that sessions are made from."""
    owner, time = owner_of_event(query), column(query.time_column)
    events_with_owner = events_of_query(events, query).where(owner.isNotNull() & time.isNotNull())
    own_columns = events.columns if compiled.raw else []
    return events_with_owner.select(
        owner.alias(OWNER),
        micros(time).alias(TIME),
        *(cut_column for cut in cuts_of(query).inner for cut_column in cut.event_columns()),
        *(
            column(name).alias(key_column(at))
            for at, name in enumerate(_order_columns(events, query))
        ),
        *(F.expr(sql).alias(name) for name, sql in compiled.arguments),
        *map(column, own_columns),
    )


@returns(ISLANDS)
def islands_of(
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    by: Sequence[str] = (OWNER,),
) -> DataFrame:
    """
    The islands of prepared events, exact for every aggregate.

    Events are sorted by owner and time, so this suits new events and those that are read again.
    The first build of a large table has a quicker way for the common aggregates.
    """
    numbered = with_island_numbers(events, query, by)
    return aggregated_by(numbered, (*by, ISLAND), compiled).drop(ISLAND)


_BEGINS_ISLAND = "__begins_island"
"""Of an event: 1 if it begins an island, else 0."""


@returns(NUMBERED_EVENTS)
def with_island_numbers(
    events: DataFrame, query: SessionsQuery, by: Sequence[str] = (OWNER,)
) -> DataFrame:
    """Prepared events with the number of their island among those of ``by``."""
    if not cuts_of(query).pairwise:
        return events.withColumn(ISLAND, F.lit(1))
    by_time = Window.partitionBy(*map(F.col, by)).orderBy(TIME)
    before = F.lag(TIME).over(by_time)
    begins = F.when(before.isNull() | are_parted(query, before, F.col(TIME)), 1).otherwise(0)
    so_far = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marked = events.withColumn(_BEGINS_ISLAND, begins)
    added = {ISLAND: F.sum(_BEGINS_ISLAND).over(so_far)}
    if silence_of(query) is not None:
        added[QUIET] = quiet_before(F.col(_BEGINS_ISLAND), before, F.col(TIME))
    return marked.withColumns(added).drop(_BEGINS_ISLAND)


def quiet_before(begins: Column, before: Column, after: Column) -> Column:
    """The silence between two instants; 0 at what ``begins`` (1) an island."""
    return F.when(begins == 1, F.lit(0)).otherwise(F.greatest(after - before, F.lit(0)))


def aggregated_by(
    events: DataFrame, keys: Sequence[str], compiled: CompiledAggregates, *more: Column
) -> DataFrame:
    """One row for each value of ``keys``: times, number of events, parts, and ``more``."""
    ordered = [part for part in compiled.parts if part.mode is not EvaluationMode.COLLECTED]
    collected = [part for part in compiled.parts if part.mode is EvaluationMode.COLLECTED]
    if any(part.mode is EvaluationMode.ORDERED for part in ordered):
        source = events.sortWithinPartitions(*keys, *compiled.order)
        aggregated = _aggregated_with_ends(source, keys, compiled, ordered, *more, _one_by_one())
        aggregated = aggregated.drop("__one_by_one")
    else:
        aggregated = _aggregated_with_ends(events, keys, compiled, ordered, *more)
    if not collected:
        return aggregated
    collected_values = events.groupBy(*keys).agg(*_aggregated(compiled, collected))
    return aggregated.join(collected_values, list(keys))


@returns(SPANS)
def spans_of(islands: DataFrame, *more: Column | str) -> DataFrame:
    """Where the events of islands lie, to be read again, and columns for them to bring along."""
    return islands.select(
        F.col(OWNER).alias(SPAN_OWNER),
        F.col(START).alias(SPAN_START),
        F.col(END).alias(SPAN_END),
        *more,
    )


@returns(PREPARED_EVENTS)
def events_within(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The prepared events that lie in one of the spans of their owner."""
    return events.join(
        spans,
        (F.col(OWNER) == F.col(SPAN_OWNER))
        & (F.col(TIME) >= F.col(SPAN_START))
        & (F.col(TIME) <= F.col(SPAN_END)),
    ).drop(SPAN_OWNER, SPAN_START, SPAN_END)


def _aggregated_with_ends(
    events: DataFrame,
    keys: Sequence[str],
    compiled: CompiledAggregates,
    parts: Sequence[StateColumn],
    *more: Column,
) -> DataFrame:
    return events.groupBy(*keys).agg(
        F.min(TIME).alias(START),
        F.max(TIME).alias(END),
        F.count(F.lit(1)).alias(EVENTS),
        *_aggregated(compiled, parts),
        *more,
    )


def _aggregated(compiled: CompiledAggregates, parts: Sequence[StateColumn]) -> list[Column]:
    return [F.expr(compiled.events_sql(part)).alias(part.name) for part in parts]


def _one_by_one() -> Column:
    """
    Makes Spark aggregate sorted events one group after the other.

    A buffer of no fixed width rules out aggregation by hashing, which may merge partial results
    when memory is short; sums of doubles would then depend on the machine.
    """
    return F.max(F.lit("")).alias("__one_by_one")
