"""What changed in a sessions model's input between two versions, as islands of its own."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.project import SessionsQuery
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.aggregate_state import StateColumn
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import COUNT, NAMED, NAMED_AT
from infold.spark.sessions.islands import BEGINS, CAMPAIGN, islands, prepared

GONE = "__gone"
"""Whether an island of the delta is of events that are no longer there."""


def bare(over: CompiledAggregates) -> CompiledAggregates:
    """Nothing of the aggregates: islands with their first and last times alone."""
    return replace(over, arguments=(), parts=(), picks=(), raw=False)


LEAST_CAMPAIGN, MOST_CAMPAIGN, ANY_BEGINS = "__least", "__most", "__any_begins"
"""The parts that say whether new events may end a session in quarantine that they lie in."""


def counted(over: CompiledAggregates, query: SessionsQuery) -> CompiledAggregates:
    """Of the aggregates only those that say what is known of a session in quarantine."""
    parts = [part for part in over.parts if part.name in (COUNT, NAMED, NAMED_AT)]
    if query.cuts.campaign:
        parts.append(_of_new(LEAST_CAMPAIGN, "min", CAMPAIGN))
        parts.append(_of_new(MOST_CAMPAIGN, "max", CAMPAIGN))
    if query.cuts.start:
        parts.append(_of_new(ANY_BEGINS, "bool_or", BEGINS))
    picks = tuple(pick for pick in over.picks if pick.value == NAMED)
    return replace(over, parts=tuple(parts), picks=picks, raw=False)


def _of_new(name: str, how: str, column: str) -> StateColumn:
    """A part that nothing stored has."""
    return StateColumn(name, f"{how}({column})", f"{how}({name})", restore="NULL")


def merges(query: SessionsQuery, over: CompiledAggregates) -> bool:
    """Whether what arrived can be merged into stored sessions without reading their events."""
    return over.mergeable and not (query.cuts.campaign or query.cuts.start)


class InputDelta:
    """The changes of a sessions model's input, as the query sees them."""

    def __init__(self, query: SessionsQuery, over: CompiledAggregates, feed: Feed) -> None:
        self.query, self.feed = query, feed
        self.over = over if merges(query, over) else bare(over)
        if query.may_quarantine and not merges(query, over):
            self.over = counted(over, query)

    def islands(self) -> DataFrame:
        """The islands of what was added and of what is gone, marked by ``__gone``."""
        query = self.query
        added = islands(prepared(self.feed.added(), query, self.over), query, self.over)
        found = added.withColumn(GONE, F.lit(False))
        gone = self.feed.gone()
        if gone is None:
            return found
        nothing = bare(self.over)
        lost = islands(prepared(gone, query, nothing), query, nothing)
        return found.unionByName(lost.withColumn(GONE, F.lit(True)), allowMissingColumns=True)
