"""
Sessions that end inside of activity: islands cut by what their own events say.

A change of campaign, an event that begins a session and the greatest length decide inside of an
island, from its first event on. Events of one instant are never parted: an instant begins a
session if any of its events does, and its campaign is that of its last event that has one. The
greatest length is counted from the first event after any other cut, and the next session begins
with the first event that lies farther away than that.

A session past the limit of the quarantine is found here too: what is aggregated of it are its
events up to the limit, while its end and its number of events are those of all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from infold.core.project import SessionsQuery
from infold.spark.sessions.aggregate_state import TIME
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.islands import BEGINS, CAMPAIGN, NUMBER, USER, grouped, numbered
from infold.spark.sessions.manual_entries import RULED, ruled

CARRIED = "__carried"
"""The campaign in force when a session began, before its first event; NULL for none."""
IN_FORCE = "__in_force"
"""The campaign in force from a session's first instant to its end: another one would end it."""
UNTIL, ALL = "__until", "__all"
"""The last instant and the number of events of a session, those past the limit too."""
WHOLE_USER, WHOLE_USER_AT = "__user", "__user_at"
"""A session's user by all of its events, and when one names it."""
COUNT, NAMED, NAMED_AT = "_events_n", "_user_v", "_user_at"
"""The parts of a session's number of events, and of its user and when an event names it."""

_STRETCH, _PIECE, _OWN = "__stretch", "__piece", "__own"


def sessions_of(
    events: DataFrame, query: SessionsQuery, over: CompiledAggregates, by: Sequence[str] = (USER,)
) -> DataFrame:
    """
    The sessions of prepared events: islands, or pieces of them where sessions end inside.

    Where ``events`` begin inside of an island, they say in ``__carried`` which campaign was in
    force before. With a limit for the quarantine, sessions have ``__until`` and ``__all``,
    and where campaigns end them ``__in_force``.
    """
    rows, keys = numbered(events, query, by), [*by, NUMBER]
    more = []
    if query.cuts.campaign or query.cuts.start:
        rows = _stretches(rows, query, over, keys)
        keys.append(_STRETCH)
    if query.max_length is not None:
        rows = _no_longer(rows, query.max_length, keys)
        keys.append(_PIECE)
    if query.cuts.campaign:
        more.append(F.min_by(CARRIED, TIME).alias(CARRIED))
    if query.may_quarantine:
        rows, whole = _within(rows, query, over, keys)
        more += [F.max(name).alias(name) for name in whole]
    return grouped(rows, keys, over, *more).drop(NUMBER, _STRETCH, _PIECE)


def _stretches(
    rows: DataFrame, query: SessionsQuery, over: CompiledAggregates, keys: Sequence[str]
) -> DataFrame:
    """Events with the number of their stretch between campaigns and events that begin one."""
    by_time = Window.partitionBy(*keys).orderBy(TIME)
    begins = F.col(BEGINS) if query.cuts.start else F.lit(False)
    if query.cuts.campaign:
        # The order makes the choice among the events of an instant one of content.
        order = F.when(F.col(CAMPAIGN).isNotNull(), F.struct(*over.order))
        own = F.max_by(CAMPAIGN, order).over(Window.partitionBy(*keys, TIME))
        before = F.max_by(CAMPAIGN, order).over(by_time.rangeBetween(Window.unboundedPreceding, -1))
        if CARRIED in rows.columns:
            before = F.coalesce(before, F.when(F.col(NUMBER) == 1, F.col(CARRIED)))
        rows = rows.withColumn(CARRIED, before).withColumn(_OWN, own)
        other = F.col(_OWN).isNotNull() & ~F.col(_OWN).eqNullSafe(F.col(CARRIED))
        begins = begins | other
    return rows.withColumn(_STRETCH, _running(begins, by_time))


def _no_longer(rows: DataFrame, most: int, keys: Sequence[str]) -> DataFrame:
    """Events with the number of their piece, where no piece is longer than ``most``."""
    stretch = Window.partitionBy(*keys)
    spans = rows.select(
        *keys, TIME, (F.max(TIME).over(stretch) - F.min(TIME).over(stretch)).alias("__span")
    )
    starts = (
        spans.where(F.col("__span") > most)
        .groupBy(*(F.col(key).alias(f"__of{at}") for at, key in enumerate(keys)))
        .agg(F.expr(f"array_sort(collect_set({TIME}))").alias("__times"))
        .select(
            *(f"__of{at}" for at in range(len(keys))),
            F.explode(F.expr(_GREEDY.format(most=most))).alias("__at"),
        )
    )
    same = F.col(TIME) == F.col("__at")
    for at, key in enumerate(keys):
        same = same & (F.col(key) == F.col(f"__of{at}"))
    marked = rows.join(starts, same, "left")
    by_time = Window.partitionBy(*keys).orderBy(TIME)
    numbered_ = marked.withColumn(_PIECE, _running(F.col("__at").isNotNull(), by_time))
    return numbered_.drop("__at", *(f"__of{at}" for at in range(len(keys))))


_GREEDY = """aggregate(
    __times,
    named_struct('at', __times[0], 'starts', array(__times[0])),
    (a, t) -> if(
        t - a.at > {most}L, named_struct('at', t, 'starts', array_append(a.starts, t)), a
    )
).starts"""


def _within(
    rows: DataFrame, query: SessionsQuery, over: CompiledAggregates, keys: Sequence[str]
) -> tuple[DataFrame, tuple[str, ...]]:
    """Events up to the limit, and the names of what they say of all events of their session."""
    session = Window.partitionBy(*keys)
    whole = {UNTIL: F.max(TIME).over(session), ALL: F.count(F.lit(1)).over(session)}
    if query.cuts.campaign:
        whole[IN_FORCE] = F.coalesce(_OWN, CARRIED)  # the same at every instant of a session
    for pick in over.picks:
        if pick.value == NAMED:
            known = F.col(pick.argument).isNotNull()
            order = F.when(known, F.struct(*over.order))
            user = (F.max_by if pick.last else F.min_by)(pick.argument, order)
            when = (F.max if pick.last else F.min)(F.when(known, F.col(TIME)))
            whole |= {WHOLE_USER: user.over(session), WHOLE_USER_AT: when.over(session)}
    counted = rows.withColumns({"__from": F.min(TIME).over(session), **whole})
    if query.quarantine_after is None:
        return counted, tuple(whole)
    judged = ruled(counted, query, F.col("__from"), F.col(UNTIL))
    near = F.col(TIME) - F.col("__from") <= query.quarantine_after
    return judged.where(near | ~F.coalesce(RULED, F.lit(True))).drop(RULED), tuple(whole)


def _running(begins: Column, by_time: WindowSpec) -> Column:
    """How many instants so far begin something: alike for all events of an instant."""
    frame = by_time.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    return F.sum(F.when(begins, 1).otherwise(0)).over(frame)
