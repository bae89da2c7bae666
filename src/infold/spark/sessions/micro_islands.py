"""
The first build of a large table: micro-islands, and strings as numbers while they are aggregated.

Events of one owner in one *bucket* of time no longer than the gap always lie in one island. So a
plain hash aggregation by owner and bucket does most of the work, and only its result is sorted to
find the islands. That is quick as long as the aggregates' buffers have a fixed width: one string
among them makes Spark sort everything. A long history comes in slices of time, each aggregated and
sorted by a task of its own (see ``time_slices``).

First and last values are therefore looked for as numbers (see ``packed_values``). Where the order
of keys decides between events of one instant, the island is *tied*: its events are read again,
which is rare.

Everything here is exact whatever the data are; what is measured beforehand decides about speed
alone (see ``bench/sessions_kernel.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.frame_schema import FrameColumn, returns
from infold.spark.jvm.step_settings import settings_for_union
from infold.spark.observed import kept_and_observed
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.silence import silence_between_slots, slots_with_events
from infold.spark.sessions.frames import END, EVENTS, ISLANDS, OWNER, QUIET, SILENCE, START, TIME
from infold.spark.sessions.islands import (
    are_parted,
    events_within,
    islands_of,
    quiet_before,
    spans_of,
)
from infold.spark.sessions.packed_values import (
    BUCKET,
    LONGEST_BUCKET,
    ColumnValues,
    offset_in_bucket,
    words_of,
)
from infold.spark.sessions.time_slices import TimeSlices

_OWNER_HASH = "__owner_hash"
"""Of a micro-island: 64 bits of its owner. Rows are sorted by them first."""
_BEGINS, _NUMBER = "__begins_island", "__island"
"""Of a micro-island: 1 if it begins an island, and the island's number for its owner."""

MICRO_ISLANDS = ISLANDS.plus(
    "a part of an island: the events of a bucket, or those of a slice of time",
    FrameColumn(_OWNER_HASH, "bigint", "64 bits of its owner"),
)

_COUNT_ALL = "count(1)"
"""A state column that counts an island's events."""

TIES = 200_000
"""The most tied islands that are read again; with more of them, words do not pay."""


@returns(ISLANDS)
def quick_islands(
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    values: ColumnValues,
    slices: TimeSlices,
) -> DataFrame:
    """
    The islands of prepared events, for mergeable aggregates.

    ``slices`` are the same events by time, or none of them.
    """
    in_buckets = _in_buckets(compiled, query)
    words = words_of(events, in_buckets, values)
    if words is None:
        return _islands_of_plain_values(events, query, in_buckets, slices)
    plan = _Aggregation(query, words.compiled, words.columns(_bucket_length(query)))
    if slices.borders:
        found, ties = _islands_across_slices(plan, slices, words.is_tied())
    else:
        found, ties = _stored_islands(
            plan.all_columns(plan.merged_islands(plan.micro_islands(events))), words.is_tied()
        )
    if ties == 0:
        return words.with_values(found)
    if ties > TIES:
        return _islands_of_plain_values(events, query, in_buckets, slices)
    plain = words.with_values(found.where(~words.is_tied()))
    tied = found.where(words.is_tied())
    # At most ``TIES`` rows.
    read_again = events_within(events, F.broadcast(spans_of(tied)))
    return plain.unionByName(islands_of(read_again, query, compiled))


def _in_buckets(compiled: CompiledAggregates, query: SessionsQuery) -> CompiledAggregates:
    """The aggregates of events in buckets: for the silence, which slots of a bucket have some."""
    sql = slots_with_events(_bucket_length(query))
    parts = (replace(part, events=sql) if part.name == SILENCE else part for part in compiled.parts)
    return replace(compiled, parts=tuple(parts))


@returns(ISLANDS)
def _islands_of_plain_values(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates, slices: TimeSlices
) -> DataFrame:
    """Islands, their first and last values aggregated as they are."""
    plan = _Aggregation(query, compiled)
    if slices.borders:
        return _islands_across_slices(plan, slices, F.lit(False))[0].drop(_OWNER_HASH)
    return plan.all_columns(plan.merged_islands(plan.micro_islands(events))).drop(_OWNER_HASH)


def _islands_across_slices(
    plan: _Aggregation, slices: TimeSlices, tied: Column
) -> tuple[DataFrame, int]:
    """Islands of each slice by itself, those near a border merged; and how many are tied."""
    near = slices.near_border(plan.query)
    own = [plan.merged_islands(plan.micro_islands(events)) for events in slices.frames]
    with settings_for_union(own[0].sparkSession):
        found, ties = _stored_islands(
            plan.all_columns(reduce(DataFrame.unionAll, own)), tied & ~near
        )
    joined, more = _stored_islands(plan.all_columns(plan.merged_islands(found.where(near))), tied)
    return found.where(~near).unionByName(joined), ties + more


def _stored_islands(found: DataFrame, tied: Column) -> tuple[DataFrame, int]:
    """Islands on disk, which are smaller than events; and how many of them are tied."""
    ties = F.count_if(tied).alias("ties")
    kept, seen = kept_and_observed(found, ties, level=StorageLevel.DISK_ONLY)
    return kept, seen.get("ties") or 0


class _Aggregation:
    """From prepared events to islands: columns made once, for all slices of the events."""

    def __init__(
        self, query: SessionsQuery, compiled: CompiledAggregates, words: Sequence[Column] = ()
    ) -> None:
        self.query = query
        pairwise = cuts_of(query).pairwise
        self._event_columns = [
            *words,
            (F.col(TIME) - offset_in_bucket(_bucket_length(query))).alias(BUCKET),
        ]
        self._keys = [OWNER, BUCKET]
        for one in (one for cut in pairwise for one in cut.bucket_columns()):
            name = f"__bucket_key{len(self._keys)}"
            self._event_columns.append(one.alias(name))
            self._keys.append(name)
        # A count of all events is an island's own, and need not travel beside it.
        parts = [part for part in compiled.parts if part.events != _COUNT_ALL]
        self._of_events = [
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.count(F.lit(1)).alias(EVENTS),
            *(F.expr(compiled.events_sql(part)).alias(part.name) for part in parts),
            # Most comparisons of a sort end at its first eight bytes; ids often begin alike.
            F.xxhash64(OWNER).alias(_OWNER_HASH),
        ]
        self._of_parts = [
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            *(F.expr(str(part.merge)).alias(part.name) for part in parts),
        ]
        self._columns = [
            *map(F.col, (OWNER, _OWNER_HASH, START, END, EVENTS)),
            *(
                F.col(part.name if part.events != _COUNT_ALL else EVENTS).alias(part.name)
                for part in compiled.parts
            ),
        ]
        by_time = Window.partitionBy(_OWNER_HASH, OWNER).orderBy(START)
        before = F.lag(END).over(by_time)
        parted = are_parted(query, before, F.col(START))
        self._begins = F.when(before.isNull() | parted, 1).otherwise(0)
        self._quiet = quiet_before(F.col(_BEGINS), before, F.col(START))
        self._number = F.sum(_BEGINS).over(by_time.rowsBetween(Window.unboundedPreceding, 0))
        self._any_ends = bool(pairwise)

    @returns(MICRO_ISLANDS)
    def micro_islands(self, events: DataFrame) -> DataFrame:
        """Micro-islands: islands of the events of a bucket."""
        bucketed = events.select("*", *self._event_columns)
        found = bucketed.groupBy(*self._keys).agg(*self._of_events).drop(*self._keys[1:])
        if SILENCE not in found.columns:
            return found
        # The bits of slots become a silence.
        silence = silence_between_slots(SILENCE, _bucket_length(self.query))
        others = [name for name in found.columns if name != SILENCE]
        return found.select(*others, *map(F.expr, silence)).select(*others, SILENCE)

    @returns(MICRO_ISLANDS)
    def merged_islands(self, found: DataFrame) -> DataFrame:
        """
        Islands, from such as may go on in the next one of their owner.

        None of these overlap, so the one before is enough to look at.
        """
        keys = [_OWNER_HASH, OWNER]
        if self._any_ends:
            found = found.withColumn(_BEGINS, self._begins)
            found = found.withColumns({QUIET: self._quiet, _NUMBER: self._number})
            keys.append(_NUMBER)
        return found.groupBy(*keys).agg(*self._of_parts).drop(_NUMBER)

    @returns(MICRO_ISLANDS)
    def all_columns(self, found: DataFrame) -> DataFrame:
        """Islands with all of their columns."""
        return found.select(*self._columns)


def _bucket_length(query: SessionsQuery) -> int:
    """How long buckets are: no longer than any silence that ends a session."""
    lengths = [cut.never_parts_within for cut in cuts_of(query).pairwise]
    short = (one for one in lengths if one is not None and one < LONGEST_BUCKET)
    return max(1, min(short, default=LONGEST_BUCKET))
