"""
The islands of the events that were added to a sessions model's input, and of those removed.

A fold merges the islands of added events into stored sessions, if aggregates and cuts allow it
(:func:`can_merge`). Those of removed events only show which sessions have to be read again.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.frame_schema import FrameColumn, returns
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.frames import EVENT_COUNT, ISLANDS, USER_AT, USER_VALUE
from infold.spark.sessions.islands import islands_of, prepared_events

REMOVED = "__removed"
"""Whether an island is of events that are no longer there."""

INPUT_CHANGES = ISLANDS.plus(
    "an island of new events, or of removed ones",
    FrameColumn(REMOVED, "boolean", "whether its events are no longer there"),
)


def can_merge(query: SessionsQuery, compiled: CompiledAggregates) -> bool:
    """Whether new events can be merged into stored sessions without reading these' events."""
    return compiled.mergeable and cuts_of(query).merge


class InputChanges:
    """The changes of a sessions model's input, as the query sees them."""

    def __init__(self, query: SessionsQuery, compiled: CompiledAggregates, feed: Feed) -> None:
        self.query, self.feed = query, feed
        self.compiled = compiled
        if not can_merge(query, compiled):
            bare = _without_aggregates(compiled)
            self.compiled = _for_quarantine(compiled, query) if query.may_quarantine else bare

    @returns(INPUT_CHANGES)
    def islands(self) -> DataFrame:
        """The islands of what was added, and of what was removed."""
        query = self.query
        added = islands_of(
            prepared_events(self.feed.added(), query, self.compiled), query, self.compiled
        )
        found = added.withColumn(REMOVED, F.lit(False))
        gone = self.feed.gone()
        if gone is None:
            return found
        bare = _without_aggregates(self.compiled)
        removed = islands_of(prepared_events(gone, query, bare), query, bare)
        removed = removed.withColumn(REMOVED, F.lit(True))
        return found.unionByName(removed, allowMissingColumns=True)


def _without_aggregates(compiled: CompiledAggregates) -> CompiledAggregates:
    """No aggregates: islands with their first and last instants alone."""
    return replace(compiled, arguments=(), parts=(), picks=(), raw=False)


def _for_quarantine(compiled: CompiledAggregates, query: SessionsQuery) -> CompiledAggregates:
    """Of the aggregates what an entry of the quarantine keeps, and what cuts ask of new events."""
    parts = [part for part in compiled.parts if part.name in (EVENT_COUNT, USER_VALUE, USER_AT)]
    parts += [part for cut in cuts_of(query).inner for part in cut.new_event_state()]
    picks = tuple(pick for pick in compiled.picks if pick.value == USER_VALUE)
    return replace(compiled, parts=tuple(parts), picks=picks, raw=False)
