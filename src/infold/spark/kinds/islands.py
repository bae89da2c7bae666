"""
Events → islands: maximal runs of one user's events with no gap longer than the model's.

A frame of *prepared* events has the user ``__u``, the time ``__t`` in microseconds, the key columns
``__k0`` … and the aggregates' arguments. A frame of *islands* has ``__u``, its first and last time
``__s`` and ``__e``, the number of events ``__n`` and one column for each part of the aggregates'
states. Two events exactly one gap apart are in one island.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.project import SessionsQuery
from infold.spark.content import column, micros, technical
from infold.spark.kinds.aggregates import TIME, Measures, Part, Way, measures, orderable

USER, START, END, EVENTS = "__u", "__s", "__e", "__n"
_NUMBER = "__i"


def compiled(events: DataFrame, query: SessionsQuery) -> Measures:
    """The query's aggregates, compiled against its input."""
    keys = [f"__k{at}" for at, _ in enumerate(_order(events, query))]
    return measures(query.aggregates, query.outputs, events, keys)


def _order(events: DataFrame, query: SessionsQuery) -> Sequence[str]:
    """
    The columns that order events of equal time: the key, or all there are when there is none.

    Either way the order follows from what the events say.
    """
    if query.key:
        return query.key
    fields = [field for field in events.schema if not technical(field.name)]
    return [field.name for field in fields if orderable(field.dataType)]


def wanted(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The events that the query's WHERE keeps."""
    return events if query.where is None else events.where(F.expr(query.where))


def prepared(events: DataFrame, query: SessionsQuery, over: Measures) -> DataFrame:
    """The events that belong to sessions, with just the columns that islands are made from."""
    user, time = column(query.user), column(query.time_column)
    kept = wanted(events, query).where(user.isNotNull() & time.isNotNull())
    own = events.columns if over.raw else []
    return kept.select(
        user.alias(USER),
        micros(time).alias(TIME),
        *(column(name).alias(f"__k{at}") for at, name in enumerate(_order(events, query))),
        *(F.expr(sql).alias(name) for name, sql in over.arguments),
        *map(column, own),
    )


def islands(events: DataFrame, gap: int, over: Measures, by: Sequence[str] = (USER,)) -> DataFrame:
    """
    The islands of prepared events, exact for every aggregate.

    Events are sorted by user and time, so this suits what arrived or was read again; the first
    build of a large table has a quicker way for the common aggregates.
    """
    spec = Window.partitionBy(*map(F.col, by)).orderBy(TIME)
    before = F.lag(TIME).over(spec)
    begins = F.when(before.isNull() | (F.col(TIME) - before > F.lit(gap)), 1).otherwise(0)
    running = spec.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = events.withColumn("__b", begins).withColumn(_NUMBER, F.sum("__b").over(running))
    keys = [*by, _NUMBER]
    ordered = [part for part in over.parts if part.way is not Way.COLLECTED]
    collected = [part for part in over.parts if part.way is Way.COLLECTED]
    if any(part.way is Way.ORDERED for part in ordered):
        source = numbered.sortWithinPartitions(*keys, *over.order)
        found = _grouped(source, keys, over, ordered, _one_by_one())
    else:
        found = _grouped(numbered, keys, over, ordered)
    if not collected:
        return found.drop(_NUMBER, "__one_by_one")
    others = numbered.groupBy(*keys).agg(*_aggregated(over, collected))
    joined = found.join(others, keys)
    names = [*by, START, END, EVENTS, *(part.name for part in over.parts)]
    return joined.select(*dict.fromkeys(names))


def _grouped(
    events: DataFrame, keys: Sequence[str], over: Measures, parts: Sequence[Part], *more: Column
) -> DataFrame:
    return events.groupBy(*keys).agg(
        F.min(TIME).alias(START),
        F.max(TIME).alias(END),
        F.count(F.lit(1)).alias(EVENTS),
        *_aggregated(over, parts),
        *more,
    )


def _aggregated(over: Measures, parts: Sequence[Part]) -> list[Column]:
    return [F.expr(over.over(part)).alias(part.name) for part in parts]


def _one_by_one() -> Column:
    """
    Makes Spark aggregate sorted events one group after the other.

    A buffer of no fixed width rules out aggregation by hashing, which may merge partial results
    when memory is short; sums of doubles would then depend on the machine.
    """
    return F.max(F.lit("")).alias("__one_by_one")
