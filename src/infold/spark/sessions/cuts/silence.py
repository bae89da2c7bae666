"""A silence that is longer than the gap: what ends sessions first of all."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from infold.core.queries import SessionsQuery
from infold.spark.sessions.cuts.base import PairwiseCut
from infold.spark.sessions.frames import OWNER

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
        return after - before > self._longest()

    def _longest(self) -> Column:
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


def longest_silence(query: SessionsQuery) -> int:
    """The longest silence that any session of the model may have, in microseconds."""
    if query.gap is None:
        return FOREVER
    return max(query.gap, query.fallback.gap) if query.fallback else query.gap
