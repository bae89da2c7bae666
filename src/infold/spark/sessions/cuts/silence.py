"""
A silence that is longer than the gap: what ends sessions first of all.

Each session keeps a silence that is at least as long as any within it. It is as long as the longest
where its events were read; late events may have made that shorter since, and buckets of time are a
little inexact. So a smaller gap splits no session with a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.sessions.aggregate_state import StateColumn
from infold.spark.sessions.cuts.base import PairwiseCut
from infold.spark.sessions.frames import OWNER, QUIET, SILENCE, TIME

FOREVER = 2**61
"""A gap that no silence is longer than, in microseconds."""


@dataclass(frozen=True, slots=True)
class SilenceCut(PairwiseCut):
    """
    Parts two events that are farther apart than the gap. Two exactly one gap apart are together.

    ``gap`` is None where only users who replace missing identifiers have one, ``fallback_gap``.
    """

    gap: int | None
    fallback_gap: int | None = None

    def parts(self, before: Column, after: Column) -> Column:
        """Whether the silence between two events is longer than the gap."""
        return after - before > self.longest()

    def longest(self) -> Column:
        """The longest silence within an island, in microseconds."""
        plain = F.lit(FOREVER if self.gap is None else self.gap).cast("bigint")
        if self.fallback_gap is None:
            return plain
        fallback = F.lit(self.fallback_gap).cast("bigint")
        return F.when(F.col(OWNER).startswith("u"), fallback).otherwise(plain)

    @property
    def never_parts_within(self) -> int | None:
        """The shorter of its gaps."""
        return min(gap for gap in (self.gap, self.fallback_gap) if gap is not None)


def silence_of(query: SessionsQuery) -> SilenceCut | None:
    """The silence that ends a query's sessions; None where none does."""
    if query.gap is None and query.fallback is None:
        return None
    return SilenceCut(query.gap, query.fallback.gap if query.fallback else None)


def silence_state(query: SessionsQuery) -> StateColumn | None:
    """What sessions that end with a silence keep of the silences within them."""
    if silence_of(query) is None:
        return None
    return StateColumn(SILENCE, f"max({QUIET})", f"greatest(max({SILENCE}), max({QUIET}))")


def silence_in_bucket(bucket: int) -> str:
    """
    SQL over the events of a bucket of so many microseconds, for a silence no shorter than any.

    Events are not in order there. So the bucket has 64 slots, and bits say which have events:
    between two of them, with ``n`` empty slots between theirs, there are less than ``n + 2`` slots.
    """
    slot = -(-bucket // _SLOTS)
    length = f"(max({TIME}) - min({TIME}))"
    used = f"bit_or(shiftleft(1L, cast(pmod({TIME}, {bucket}L) div {slot}L AS int)))"
    empty = f"array_max(transform(split(trim('0' FROM bin({used})), '1'), run -> length(run)))"
    return (
        f"CASE WHEN {length} <= {bucket // _SHORT}L THEN {length}"
        f" ELSE least({length}, ({empty} + 2) * {slot}L) END"
    )


_SLOTS = 64
_SHORT = 4
"""Up to this part of a bucket, the length of all its events is good enough as a silence."""


def longest_silence(query: SessionsQuery) -> int:
    """The longest silence that any session of the model may have, in microseconds."""
    if query.gap is None:
        return FOREVER
    return max(query.gap, query.fallback.gap) if query.fallback else query.gap
