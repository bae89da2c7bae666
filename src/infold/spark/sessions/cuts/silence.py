"""
A silence that is longer than the gap: what ends sessions first of all.

Each session keeps a silence that is at least as long as any within it. It is as long as the longest
where its events were read; late events may have made that shorter since, and buckets of time are a
little inexact. So a smaller gap splits no session with a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.sessions.aggregates import StateColumn
from infold.spark.sessions.cuts.base import PairwiseCut
from infold.spark.sessions.frames import END, OWNER, QUIET, SILENCE, START, TIME

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

    def parts_more_than(self, other: Self | None) -> bool:
        """Whether one of its gaps is smaller; without a cut of its sort, silences are no limit."""
        pairs = [(self.gap, other.gap if other else None)]
        if other is not None and None not in (self.fallback_gap, other.fallback_gap):
            pairs.append((self.fallback_gap, other.fallback_gap))
        return any(
            (FOREVER if own is None else own) < (FOREVER if gap is None else gap)
            for own, gap in pairs
        )

    def may_divide_stored(self, earlier: Self | None) -> Column | None:
        """A session with a longer silence in it, as it keeps; one that keeps none may have any."""
        longer = F.coalesce(F.col(SILENCE) > self.longest(), F.lit(True))
        return longer if self.parts_more_than(earlier) else None

    @property
    def never_parts_within(self) -> int | None:
        """The shorter gap: a bucket must not hide a silence that ends anybody's session."""
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


def slots_with_events(bucket: int) -> str:
    """
    SQL over the events of a bucket of so many microseconds: which of its slots have one, as bits.

    Events are not in order there, so this stands for the silences between them.
    """
    slot = f"pmod({TIME}, {bucket}L) div {_slot_length(bucket)}L"
    return f"bit_or(shiftleft(1L, cast({slot} AS int)))"


def silence_between_slots(used: str, bucket: int) -> list[str]:
    """
    SQL of columns that follow from each other, the last for a silence no shorter than any.

    ``used`` is the column with the bits of :func:`slots_with_events`. Between two events, with
    ``n`` empty slots between theirs, there are less than ``n + 2`` slots. The greatest ``n`` is
    found by halves: of ``RUN_k``, those bits are set at which ``k`` empty slots begin. Spark
    compiles this, and it does not compile any loop over an array or a text.
    """
    slot, length = _slot_length(bucket), f"({END} - {START})"
    first, last = (f"cast(pmod({end}, {bucket}L) div {slot}L AS int)" for end in (START, END))
    # The bits from the first slot's to the one before the last one's, that are not set.
    runs = [f"(shiftleft(1L, {last}) - shiftleft(1L, {first})) & ~{used} AS {_RUN}1"]
    sizes = [2**power for power in range(_POWERS)]
    runs += [f"{_RUN}{n} & shiftright({_RUN}{n}, {n}) AS {_RUN}{2 * n}" for n in sizes[:-1]]
    empty, at = "0", "-1L"  # so many slots are empty from each of these bits on
    for size in reversed(sizes):
        more = f"({at} & shiftright({_RUN}{size}, {empty}))"
        runs.append(f"CASE WHEN {more} != 0 THEN {more} ELSE {at} END AS {_AT}{size}")
        runs.append(
            f"CASE WHEN {more} != 0 THEN {empty} + {size} ELSE {empty} END AS {_EMPTY}{size}"
        )
        empty, at = f"{_EMPTY}{size}", f"{_AT}{size}"
    short = f"CASE WHEN {length} <= {bucket // _SHORT}L THEN {length}"
    return [*runs, f"{short} ELSE least({length}, ({empty} + 2) * {slot}L) END AS {SILENCE}"]


def _slot_length(bucket: int) -> int:
    return -(-bucket // _SLOTS)


_RUN, _AT, _EMPTY = "__run_", "__at_", "__empty_"
"""Of :func:`silence_between_slots`: where runs begin, where the found one does, and its length."""
_SLOTS, _POWERS = 62, 6
"""Slots of a bucket: their bits are a positive number. 2 to the power of ``_POWERS`` is more."""
_SHORT = 4
"""Up to this part of a bucket, the length of all its events is good enough as a silence."""


def longest_silence(query: SessionsQuery) -> int:
    """The longest silence that any session of the model may have, in microseconds."""
    if query.gap is None:
        return FOREVER
    return max(query.gap, query.fallback.gap) if query.fallback else query.gap
