"""
Events → sessions: islands, divided where cuts end sessions within them.

First the cuts that say at which instants a session begins (campaigns, start events) divide islands
together, then those that divide what is left whole (a rule, the greatest length). Events of one
instant are never parted.

What is aggregated of a session longer than the limit of the quarantine are its events up to the
limit, while its end and its number of events are those of all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.frame_schema import returns
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import Cuts, cuts_of
from infold.spark.sessions.cuts.base import running_count
from infold.spark.sessions.frames import (
    ISLAND,
    OWNER,
    SESSIONS,
    TIME,
    USER_VALUE,
    WHOLE_END,
    WHOLE_EVENTS,
    WHOLE_USER,
    WHOLE_USER_AT,
)
from infold.spark.sessions.islands import aggregated_by, with_island_numbers
from infold.spark.sessions.quarantine import HELD_BY_HAND, with_manual_entries

_PART = "__part"
"""Of an event: the number of the part of its island between the instants that begin a session."""
_FIRST = "__first"
"""Of an event: the first instant of its session."""


@returns(SESSIONS)
def sessions_of(
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    by: Sequence[str] = (OWNER,),
) -> DataFrame:
    """
    The sessions of prepared events.

    Events that begin within an island bring what cuts store with a session (``InnerCut.state``).
    """
    cuts = cuts_of(query)
    rows, keys = _with_session_keys(
        with_island_numbers(events, query, by), cuts, compiled, [*by, ISLAND]
    )
    session_columns = [column for cut in cuts.inner for column in cut.session_columns()]
    if query.may_quarantine:
        rows, whole = _up_to_limit(rows, query, compiled, keys)
        session_columns += [F.max(name).alias(name) for name in whole]
    sessions = aggregated_by(rows, keys, compiled, *session_columns)
    return sessions.drop(*(key for key in keys if key not in by))


def _with_session_keys(
    rows: DataFrame, cuts: Cuts, compiled: CompiledAggregates, island: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """Numbered events, and the columns that name an event's session."""
    begins: list[Column] = []
    for cut in cuts.inner:
        rows, begins_here = cut.begins_session(rows, island, compiled.order)
        begins += [] if begins_here is None else [begins_here]
    session = [*island]
    if begins:
        by_time = Window.partitionBy(*island).orderBy(TIME)
        rows = rows.withColumn(_PART, running_count(reduce(Column.__or__, begins), by_time))
        session.append(_PART)
    for cut in cuts.inner:
        rows, names = cut.pieces(rows, session, compiled.order)
        session += names
    return rows, session


def _up_to_limit(
    rows: DataFrame, query: SessionsQuery, compiled: CompiledAggregates, keys: Sequence[str]
) -> tuple[DataFrame, tuple[str, ...]]:
    """
    Events up to the limit of the quarantine, and what describes all events of their session.

    The latter are names of columns, alike for all events of a session.
    """
    session = Window.partitionBy(*keys)
    whole = {WHOLE_END: F.max(TIME).over(session), WHOLE_EVENTS: F.count(F.lit(1)).over(session)}
    for cut in cuts_of(query).inner:
        whole |= cut.quarantine_columns()
    for pick in compiled.picks:
        if pick.value == USER_VALUE:
            known = F.col(pick.argument).isNotNull()
            order = F.when(known, F.struct(*compiled.order))
            user = (F.max_by if pick.last else F.min_by)(pick.argument, order)
            when = (F.max if pick.last else F.min)(F.when(known, F.col(TIME)))
            whole |= {WHOLE_USER: user.over(session), WHOLE_USER_AT: when.over(session)}
    described = rows.withColumns({_FIRST: F.min(TIME).over(session), **whole})
    if query.quarantine_after is None:
        return described, tuple(whole)
    judged = with_manual_entries(described, query, F.col(_FIRST), F.col(WHOLE_END))
    within_limit = F.col(TIME) - F.col(_FIRST) <= query.quarantine_after
    events_to_aggregate = judged.where(within_limit | ~F.coalesce(HELD_BY_HAND, F.lit(True)))
    return events_to_aggregate.drop(HELD_BY_HAND), tuple(whole)
