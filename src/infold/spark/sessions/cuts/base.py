"""
What each phase of building and folding sessions asks of a cut.

A *pairwise* cut parts two neighbouring events by their times alone. It bounds islands, and that is
all there is to it. An *inner* cut divides an island from its first event on. It is asked in the
order of :class:`InnerCut`'s methods: which columns of an event it needs, where it divides an
island, what a session keeps for it, and what it means for folding new events in. Both are asked
what it means for stored sessions that it is new, or gone, in another definition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from infold.core.queries import SessionsQuery
from infold.spark.sessions.aggregates import StateColumn
from infold.spark.sessions.frames import END, OWNER, QUIET, SILENCE, START, TIME


class PairwiseCut(ABC):
    """A cut between two neighbouring events that follows from their times."""

    @abstractmethod
    def parts(self, before: Column, after: Column) -> Column:
        """Whether it parts neighbouring events at two instants (microseconds) of one owner."""

    @property
    def never_parts_within(self) -> int | None:
        """
        How far apart, in microseconds, two events are surely not parted by it.

        None if there is no such length: then :meth:`bucket_columns` separate what it may part.
        """
        return None

    def bucket_columns(self) -> Sequence[Column]:
        """Over an event: what events of a short bucket of time share unless it parts them."""
        return ()

    # -- another definition

    def parts_more_than(self, other: Self | None) -> bool:
        """Whether it may part events that the cut of its sort in another definition does not."""
        return self != other

    def may_divide_stored(self, earlier: Self | None) -> Column | None:
        """Over a stored session: whether it may part events of it, which ``earlier`` did not."""
        return self.parts(F.col(START), F.col(END)) if self.parts_more_than(earlier) else None


class InnerCut(ABC):  # noqa: B024 (which of the phases mean something to a cut is its own affair)
    """A cut that depends on the events before; it divides islands."""

    # -- over prepared events

    def event_columns(self) -> Sequence[Column]:
        """Over an event of the input: the columns that it needs of a prepared event."""
        return ()

    # -- within an island

    def begins_session(
        self,
        rows: DataFrame,
        island: Sequence[str],  # noqa: ARG002
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Column | None]:
        """
        Numbered events with columns of its own, and whether a session begins at an event's instant.

        ``island`` are the columns that name an island, ``order`` those of the events' total order.
        """
        return rows, None

    def pieces(
        self,
        rows: DataFrame,
        session: Sequence[str],  # noqa: ARG002
        order: Sequence[str],  # noqa: ARG002
    ) -> tuple[DataFrame, Sequence[str]]:
        """
        Events with the number of their piece, and the column of it.

        For a cut that divides what all others leave whole, which ``session`` names. ``order`` is as
        above.
        """
        return rows, ()

    # -- what a session keeps

    def session_columns(self) -> Sequence[Column]:
        """Over the events of a session: what is kept with it."""
        return ()

    @property
    def state(self) -> Mapping[str, str]:
        """The columns of a session that are stored with it -> their names in ``_state``."""
        return {}

    def quarantine_columns(self) -> Mapping[str, Column]:
        """Over an event of a session: what its entry in quarantine keeps, equal for all events."""
        return {}

    @property
    def entry_fields(self) -> Mapping[str, str]:
        """Fields of ``QuarantinedSession`` -> the columns of a session that they are."""
        return {}

    # -- folding

    merges: bool = True
    """Whether new events can be merged into stored sessions without reading these' events."""

    def component_columns(self, known: str) -> Sequence[Column]:
        """
        Over what takes part in a component: what the cut has to know of it.

        ``known`` is SQL that is true of what was there before.
        """
        del known
        return ()

    def component_entry_columns(self) -> Sequence[Column]:
        """Over what takes part in a component: what the entry of a session in quarantine keeps."""
        return ()

    def may_divide(self) -> Column | None:
        """Over an island or a merged component: whether it may be more than one session."""
        return None

    def new_event_state(self) -> Sequence[StateColumn]:
        """What it has to know of new events that a session in quarantine gets."""
        return ()

    def leaves_whole(self) -> Column | None:
        """Over a component that is one session in quarantine: whether new events leave it one."""
        return None

    # -- another definition; of a cut that stored sessions tell (``DeclaredCut.told_when_new``)

    def may_divide_stored(self, earlier: Self | None) -> Column | None:
        """Over a stored session: whether it may divide it, as ``earlier`` did not."""
        del earlier
        return None

    def may_have_parted(self, later: Self | None, distance: Column) -> Column | None:
        """Over neighbours that begin so far apart: whether it parted what ``later`` may not."""
        del later, distance
        return None


def running_count(begins: Column, by_time: WindowSpec) -> Column:
    """How many instants so far begin something: alike for all events of an instant."""
    frame = by_time.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    return F.sum(F.when(begins, 1).otherwise(0)).over(frame)


PIECE = "__piece"
"""The number of an event's piece of its session."""

_PIECE_START = "__piece_start"


def by_session(session: Sequence[str]) -> list[Column]:
    """The columns that name a session, by which the instants of :func:`in_pieces` are found."""
    return [F.col(key).alias(name) for key, name in zip(session, _names(session), strict=True)]


def in_pieces(
    rows: DataFrame, session: Sequence[str], sessions: DataFrame, starts: Column
) -> tuple[DataFrame, Sequence[str]]:
    """
    Events with the number of their piece, and the column of it.

    ``starts`` are, over ``sessions`` grouped by :func:`by_session`, the instants at which a piece
    begins; a session that is not there stays whole.
    """
    names = _names(session)
    begun = sessions.select(*names, F.explode(starts).alias(_PIECE_START))
    same = F.col(TIME) == F.col(_PIECE_START)
    for key, name in zip(session, names, strict=True):
        same = same & (F.col(key) == F.col(name))
    marked = rows.join(begun, same, "left")
    by_time = Window.partitionBy(*session).orderBy(TIME)
    number = running_count(F.col(_PIECE_START).isNotNull(), by_time)
    return marked.withColumn(PIECE, number).drop(_PIECE_START, *names), [PIECE]


def _names(session: Sequence[str]) -> list[str]:
    return [f"__session_key{at}" for at in range(len(session))]


# Each session keeps a silence that is at least as long as any within it. It is as long as the
# longest where its events were read; late events may have made that shorter since, and buckets of
# time are a little inexact. So a smaller gap splits no session with a shorter one.

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
