"""
Events → islands: maximal runs of one user's or identifier's events with no longer gap than allowed.

A frame of *prepared* events has ``__u``, what its sessions are of, the time ``__t`` in
microseconds, the key columns ``__k0`` … and the aggregates' arguments. A frame of *islands* has
``__u``, its first and last time ``__s`` and ``__e``, the number of events ``__n`` and one column
for each part of the aggregates' states. Two events exactly one gap apart are in one island.
Midnight in a time zone ends an island too: whether it lies between two events follows from the two
alone. Where sessions end inside of an island is for ``cuts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.project import SessionsQuery
from infold.core.session_rules import Nulls
from infold.spark.content import column, is_technical, micros
from infold.spark.sessions.aggregate_state import TIME, EvaluationMode, StateColumn, orderable
from infold.spark.sessions.aggregates import CompiledAggregates, measures

USER, START, END, EVENTS = "__u", "__s", "__e", "__n"
NUMBER = "__i"
CAMPAIGN, BEGINS = "__campaign", "__begins"
"""Of prepared events: the campaign (NULL: none) and whether the event begins a session."""


FOREVER = 2**61
"""A gap that no silence is longer than, in microseconds."""


def compiled(events: DataFrame, query: SessionsQuery) -> CompiledAggregates:
    """The query's aggregates, compiled against its input."""
    keys = [f"__k{at}" for at, _ in enumerate(_order(events, query))]
    outputs = (query.chosen_user, *query.outputs) if query.chosen_user else query.outputs
    return measures(query.aggregates, outputs, events, keys)


def who(query: SessionsQuery) -> Column:
    """
    What an event's session is of: a user or an identifier; NULL for an event in no session.

    Where users stand in for missing identifiers, a letter before the value tells the two apart.
    """
    own = F.expr(query.owner_sql) if query.owner_sql else column(query.user)
    if query.fallback is None:
        return own
    user = F.expr(query.fallback.user).cast("string")
    return F.coalesce(F.concat(F.lit("i"), own.cast("string")), F.concat(F.lit("u"), user))


def shown(query: SessionsQuery) -> Column:
    """What ``__u`` says, as the table's own column shows it."""
    if query.fallback is None:
        return F.col(USER)
    return F.when(F.col(USER).startswith("i"), F.expr(f"substring({USER}, 2)"))


def gap_of(query: SessionsQuery) -> Column:
    """The longest silence inside of an island of ``__u``, in microseconds."""
    plain = F.lit(FOREVER if query.gap is None else query.gap).cast("bigint")
    if query.fallback is None:
        return plain
    fallback = F.lit(query.fallback.gap).cast("bigint")
    return F.when(F.col(USER).startswith("u"), fallback).otherwise(plain)


def reach(query: SessionsQuery) -> int:
    """The longest silence that any session of the model may have, in microseconds."""
    if query.gap is None:
        return FOREVER
    return max(query.gap, query.fallback.gap) if query.fallback else query.gap


def apart(query: SessionsQuery, before: Column, after: Column) -> Column:
    """Whether neighbouring events at two instants (microseconds) are in two islands."""
    far = after - before > gap_of(query)
    zone = query.cuts.midnight
    return far if zone is None else far | (local_day(before, zone) != local_day(after, zone))


def local_day(at: Column, zone: str) -> Column:
    """
    The day of an instant in a time zone, such that later instants have no earlier days.

    A clock set back over midnight shows the day before once more. That hour is of the new day
    here: a day begins once, when it first begins.
    """
    when, name = F.timestamp_micros(at), F.lit(zone)
    day = F.to_date(F.from_utc_timestamp(when, name))
    following = F.date_add(day, 1)
    begins = F.to_utc_timestamp(following.cast("timestamp"), name)
    return F.when(begins <= when, following).otherwise(day)


def _order(events: DataFrame, query: SessionsQuery) -> Sequence[str]:
    """
    The columns that order events of equal time: the key, and all there are when it is not enough.

    Either way the order follows from what the events say.
    """
    if query.key and query.unique:
        return query.key
    fields = [field for field in events.schema if not is_technical(field.name)]
    others = [field.name for field in fields if orderable(field.dataType)]
    return [*query.key, *(name for name in others if name not in query.key)]


def wanted(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The events that the query's WHERE keeps."""
    return events if query.where is None else events.where(F.expr(query.where))


def prepared(events: DataFrame, query: SessionsQuery, over: CompiledAggregates) -> DataFrame:
    """The events that belong to sessions, with just the columns that islands are made from."""
    of, time = who(query), column(query.time_column)
    kept = wanted(events, query).where(of.isNotNull() & time.isNotNull())
    own = events.columns if over.raw else []
    return kept.select(
        of.alias(USER),
        micros(time).alias(TIME),
        *_cutting(query),
        *(column(name).alias(f"__k{at}") for at, name in enumerate(_order(events, query))),
        *(F.expr(sql).alias(name) for name, sql in over.arguments),
        *map(column, own),
    )


def _cutting(query: SessionsQuery) -> Iterator[Column]:
    """What of an event may end a session inside of an island."""
    campaign, start = query.cuts.campaign, query.cuts.start
    if campaign is not None:
        values = [F.expr(sql).cast("string") for sql in campaign.columns]
        for word in campaign.direct:
            values = [F.when(value != F.lit(word), value) for value in values]
        whole = F.to_json(F.struct(*(value.alias(f"c{at}") for at, value in enumerate(values))))
        if campaign.nulls is Nulls.IGNORE:
            whole = F.when(F.coalesce(*values).isNotNull(), whole)
        yield whole.alias(CAMPAIGN)
    if start is not None:
        yield F.coalesce(F.expr(start), F.lit(False)).alias(BEGINS)


def islands(
    events: DataFrame, query: SessionsQuery, over: CompiledAggregates, by: Sequence[str] = (USER,)
) -> DataFrame:
    """
    The islands of prepared events, exact for every aggregate.

    Events are sorted by user and time, so this suits what arrived or was read again; the first
    build of a large table has a quicker way for the common aggregates.
    """
    return grouped(numbered(events, query, by), (*by, NUMBER), over).drop(NUMBER)


def numbered(events: DataFrame, query: SessionsQuery, by: Sequence[str] = (USER,)) -> DataFrame:
    """Prepared events with the number of their island among those of ``by``."""
    if query.gap is None and query.fallback is None and query.cuts.midnight is None:
        return events.withColumn(NUMBER, F.lit(1))
    spec = Window.partitionBy(*map(F.col, by)).orderBy(TIME)
    before = F.lag(TIME).over(spec)
    begins = F.when(before.isNull() | apart(query, before, F.col(TIME)), 1).otherwise(0)
    running = spec.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return events.withColumn("__b", begins).withColumn(NUMBER, F.sum("__b").over(running))


def grouped(
    events: DataFrame, keys: Sequence[str], over: CompiledAggregates, *more: Column
) -> DataFrame:
    """One row for each value of ``keys``: times, number of events, parts, and ``more``."""
    ordered = [part for part in over.parts if part.way is not EvaluationMode.COLLECTED]
    collected = [part for part in over.parts if part.way is EvaluationMode.COLLECTED]
    if any(part.way is EvaluationMode.ORDERED for part in ordered):
        source = events.sortWithinPartitions(*keys, *over.order)
        found = _grouped(source, keys, over, ordered, *more, _one_by_one())
        found = found.drop("__one_by_one")
    else:
        found = _grouped(events, keys, over, ordered, *more)
    if not collected:
        return found
    others = events.groupBy(*keys).agg(*_aggregated(over, collected))
    return found.join(others, list(keys))


def spans(found: DataFrame, *more: Column | str) -> DataFrame:
    """From where to where events of islands are to be read again, and columns to bring along."""
    return found.select(
        F.col(USER).alias("__of"), F.col(START).alias("__lo"), F.col(END).alias("__hi"), *more
    )


def within_spans(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The prepared events that lie in one of the spans of their user or identifier."""
    return events.join(
        spans,
        (F.col(USER) == F.col("__of"))
        & (F.col(TIME) >= F.col("__lo"))
        & (F.col(TIME) <= F.col("__hi")),
    ).drop("__of", "__lo", "__hi")


def _grouped(
    events: DataFrame,
    keys: Sequence[str],
    over: CompiledAggregates,
    parts: Sequence[StateColumn],
    *more: Column,
) -> DataFrame:
    return events.groupBy(*keys).agg(
        F.min(TIME).alias(START),
        F.max(TIME).alias(END),
        F.count(F.lit(1)).alias(EVENTS),
        *_aggregated(over, parts),
        *more,
    )


def _aggregated(over: CompiledAggregates, parts: Sequence[StateColumn]) -> list[Column]:
    return [F.expr(over.over(part)).alias(part.name) for part in parts]


def _one_by_one() -> Column:
    """
    Makes Spark aggregate sorted events one group after the other.

    A buffer of no fixed width rules out aggregation by hashing, which may merge partial results
    when memory is short; sums of doubles would then depend on the machine.
    """
    return F.max(F.lit("")).alias("__one_by_one")
