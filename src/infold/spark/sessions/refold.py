"""
Where sessions change because their definition ends them elsewhere.

The stored sessions follow the earlier definition, and both definitions read the same events. They
differ only in what follows from the stored sessions: gaps, midnights, the greatest length, start
events that no longer count, the limit of the quarantine. A *run* is a maximal sequence of stored
sessions of one owner (and entries of the quarantine) in which the earlier or the new definition
parts no two neighbours by their times. No event outside of a run can share an island with one of
it. A run is left alone if nothing new can end a session in it, and nothing that has ended one is
gone; all others are *spans that change*, which a fold merges or reads again.

Often nothing can connect two sessions, as with a gap that is only smaller. Then each run that
changes is one stored session, and is found with all that a fold needs of it by one look at the
table (:func:`divided_sessions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import FIRST, LAST, STATE
from infold.core.plan import Step
from infold.core.queries import SessionsQuery
from infold.core.record import QuarantinedSession
from infold.spark.content import column, micros
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.feed import Feed
from infold.spark.sessions import quarantine
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.base import silence_of
from infold.spark.sessions.fold_changes import KEY_TYPE, OLD, REMOVED
from infold.spark.sessions.frames import AGAIN, END, EVENTS, OWNER, QUIET, SILENCE, START
from infold.spark.sessions.islands import are_parted, quiet_before
from infold.spark.sessions.stored import stored_owner
from infold.spark.step_context import Work

_ENTRY = "__entry"
"""Whether something is an entry of the quarantine: of its events only the span is known."""
_BEGINS, _RUN = "__begins_run", "__run"
"""Of a session: 1 if it begins a run, and the run's number for its owner."""
_PREVIOUS_START, _PREVIOUS_END = "__began", "__reached"
"""Start (µs) of the owner's session before, and the latest end (µs) of any earlier one."""
_END_SO_FAR, _NEXT_START = "__reaches", "__next"
"""The latest end (µs) of the owner's sessions up to this one, and the start of the next one."""
_OWNER_HASH = "__owner_hash"
"""64 bits of an owner: rows are sorted by them first, as ids often begin alike. Or 0."""
_MAY_SPLIT, _MAY_CONNECT, _PARTED_NOW = "__splits", "__connected", "__ended"
"""
Of a session, by the redefinition: it may be divided; it may join the one before it; its times part
it from that one.
"""
_MAY_CHANGE = "__changes"
"""Whether a session, or a run, may change."""

STORED_SPANS = FrameSchema(
    "a stored session, or an entry of the quarantine",
    (
        FrameColumn(OWNER, ANY, "the user or identifier"),
        FrameColumn(START, "bigint", "its first instant"),
        FrameColumn(END, "bigint", "its last instant"),
        FrameColumn(SILENCE, "bigint", "as long as any silence in it; NULL: not known"),
        FrameColumn(_ENTRY, "boolean", "whether it is an entry"),
    ),
)

SPANS_THAT_CHANGE = FrameSchema(
    "a run that may change",
    (
        FrameColumn(OWNER, ANY, "the user or identifier"),
        FrameColumn(START, "bigint", "its first instant"),
        FrameColumn(END, "bigint", "its last instant"),
        FrameColumn(REMOVED, "boolean", "whether its events have to be read again"),
        FrameColumn(SILENCE, "bigint", "the longest between its sessions, where there are several"),
    ),
)

DIVIDED_SESSIONS = FrameSchema(
    "a session that may be divided: a component by itself",
    (
        FrameColumn(OWNER, ANY, "the user or identifier"),
        FrameColumn(START, "bigint", "its first instant"),
        FrameColumn(END, "bigint", "its last instant"),
        FrameColumn(EVENTS, "bigint", "0: none of its events is new"),
        FrameColumn(OLD, f"array<{KEY_TYPE}", "its key"),
        FrameColumn(AGAIN, "boolean", "true: its events have to be read again"),
    ),
)


def events_as_folded(work: Work, step: Step) -> DataFrame | None:
    """The events that the stored sessions were made from; None if they are no longer there."""
    node = work.project[step.model]
    if node.query is None or not work.tables.exists(step.model):
        return None
    if any(work.snapshot(name, upto) is None for name, (_, upto) in step.inputs.items()):
        return None
    try:
        return Feed(work, node, step, node.query.input).current
    except PySparkException:
        return None


def each_by_itself(before: SessionsQuery, redefinition: SessionsQuery) -> bool:
    """
    Whether all that can change are sessions that are divided, each into its own.

    Any two sessions of an owner are parted by their times then, by both definitions.
    """
    always = F.lit(True)
    return not (
        before.cuts_within_islands
        or redefinition.cuts_within_islands
        or before.may_quarantine
        or redefinition.may_quarantine
        or list(_connections(before, redefinition, (always, always), F.lit(0)))
    )


@returns(DIVIDED_SESSIONS)
def divided_sessions(
    table: DataFrame, before: SessionsQuery, redefinition: SessionsQuery, owner_type: T.DataType
) -> DataFrame:
    """
    The stored sessions that may be other ones by the definition ``redefinition``.

    ``table`` has their keys as ``OLD``; each of them changes :func:`each_by_itself`.
    """
    stored_sessions = table.select(
        *_span_columns(before, owner_type),
        F.lit(0).cast("bigint").alias(EVENTS),
        F.array(OLD).alias(OLD),
        F.lit(True).alias(AGAIN),
    )
    return stored_sessions.where(_any_of(_divisions(before, redefinition))).drop(SILENCE)


@returns(SPANS_THAT_CHANGE)
def spans_that_change(
    table: DataFrame,
    entries: Sequence[QuarantinedSession],
    before: SessionsQuery,
    redefinition: SessionsQuery,
    owner_type: T.DataType,
) -> DataFrame:
    """
    The runs of stored sessions that may be other ones by the definition ``redefinition``.

    Events are read again where a session may be divided; the sessions of other runs are joined.
    """
    rows = _stored_spans(table, entries, before, owner_type)
    rows = rows.withColumns(
        {
            _MAY_SPLIT: _any_of(_divisions(before, redefinition)),
            _OWNER_HASH: _owner_hash(owner_type),
        }
    )
    by_start = Window.partitionBy(_OWNER_HASH, OWNER).orderBy(START)
    so_far = by_start.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # Columns of their own: Spark computes an expression with a window again wherever it is.
    rows = rows.withColumns(
        {
            _PREVIOUS_END: F.max(END).over(by_start.rowsBetween(Window.unboundedPreceding, -1)),
            _END_SO_FAR: F.max(END).over(so_far),
            _PREVIOUS_START: F.lag(START).over(by_start),
            _NEXT_START: F.lead(START).over(by_start),
        }
    )
    parted = _parted(before, redefinition, F.col(_PREVIOUS_END), F.col(START))
    connections = _connections(before, redefinition, parted, F.col(START) - F.col(_PREVIOUS_START))
    begins = F.when(F.col(_PREVIOUS_END).isNull() | (parted[0] & parted[1]), 1).otherwise(0)
    rows = rows.withColumns(
        {_BEGINS: begins, _MAY_CONNECT: _any_of(connections), _PARTED_NOW: parted[1]}
    )
    # Most sessions are a run by themselves that does not change, and are left out here.
    next_parted = _parted(before, redefinition, F.col(_END_SO_FAR), F.col(_NEXT_START))
    ends = F.col(_NEXT_START).isNull() | (next_parted[0] & next_parted[1])
    rows = rows.where(F.col(_MAY_SPLIT) | (F.col(_BEGINS) == 0) | ~ends)
    numbered = (
        rows.withColumn(QUIET, quiet_before(F.col(_BEGINS), F.col(_PREVIOUS_END), F.col(START)))
        .withColumn(_RUN, F.sum(_BEGINS).over(so_far))
        .withColumn(_MAY_CHANGE, F.col(_MAY_SPLIT) | ((F.col(_BEGINS) == 0) & F.col(_MAY_CONNECT)))
    )
    divided = F.col(_MAY_SPLIT) | ((F.col(_BEGINS) == 0) & F.coalesce(_PARTED_NOW, F.lit(False)))
    reads_all = redefinition.cuts_within_islands or redefinition.may_quarantine
    read = F.bool_or(divided) | F.lit(reads_all)
    runs = numbered.groupBy(_OWNER_HASH, OWNER, _RUN).agg(
        F.min(START).alias(START),
        F.max(END).alias(END),
        F.bool_or(_MAY_CHANGE).alias(_MAY_CHANGE),
        read.alias(REMOVED),
        F.max(QUIET).alias(SILENCE),
    )
    return runs.where(_MAY_CHANGE).select(OWNER, START, END, REMOVED, SILENCE)


def _owner_hash(owner_type: T.DataType) -> Column:
    """What rows are sorted by first: the same for equal owners."""
    if owner_type.simpleString() != "string":  # others sort fast; by a collation hashes differ
        return F.lit(0).cast("bigint")
    return F.xxhash64(OWNER)


def _parted(
    before: SessionsQuery, redefinition: SessionsQuery, reached: Column, start: Column
) -> tuple[Column, Column]:
    """Whether the times part a session from what reaches up to it, by both definitions."""
    apart = reached < start  # an entry reaches over what it has left in the table
    was = apart & are_parted(before, reached, start)
    return was, apart & are_parted(redefinition, reached, start)


@returns(STORED_SPANS)
def _stored_spans(
    table: DataFrame,
    entries: Sequence[QuarantinedSession],
    query: SessionsQuery,
    owner_type: T.DataType,
) -> DataFrame:
    """All stored sessions and entries; both where a session has left its head in the table."""
    stored = table.select(*_span_columns(query, owner_type), F.lit(False).alias(_ENTRY))
    if not entries:
        return stored
    spans = quarantine.entry_spans(table, entries, owner_type)
    entry_spans = spans.withColumns({SILENCE: F.lit(None).cast("bigint"), _ENTRY: F.lit(True)})
    return stored.unionByName(entry_spans)


def _span_columns(query: SessionsQuery, owner_type: T.DataType) -> list[Column]:
    """Of a stored session: its owner, ends, and silence."""
    silence = F.col(f"{STATE}.{SILENCE}") if silence_of(query) else F.lit(None).cast("bigint")
    return [
        stored_owner(query).cast(owner_type).alias(OWNER),
        micros(column(FIRST)).alias(START),
        micros(column(LAST)).alias(END),
        silence.alias(SILENCE),
    ]


def _divisions(before: SessionsQuery, redefinition: SessionsQuery) -> Iterator[Column]:
    """Over a stored session: what may divide or judge it otherwise by ``redefinition`` alone."""
    earlier, later = cuts_of(before), cuts_of(redefinition)
    divisions = [cut.may_divide_stored(earlier.like(cut)) for cut in later.pairwise]
    divisions += [cut.may_divide_stored(earlier.like(cut)) for cut in later.inner]
    yield from (division for division in divisions if division is not None)
    if (before.quarantine_after, before.keep) != (redefinition.quarantine_after, redefinition.keep):
        yield F.col(_ENTRY)
        if redefinition.quarantine_after is not None:
            yield F.col(END) - F.col(START) > redefinition.quarantine_after


def _connections(
    before: SessionsQuery, redefinition: SessionsQuery, parted: Sequence[Column], distance: Column
) -> Iterator[Column]:
    """
    Over neighbours in a run: what may connect them by ``redefinition``, or end an island there.

    ``parted`` says for both definitions whether the times of the two part them; ``distance`` is
    between their starts.
    """
    was, parted_now = parted
    earlier, later = cuts_of(before), cuts_of(redefinition)
    if any(cut.parts_more_than(later.like(cut)) for cut in earlier.pairwise):
        yield was & ~parted_now
    within = before.cuts_within_islands or redefinition.cuts_within_islands
    if within and any(cut.parts_more_than(earlier.like(cut)) for cut in later.pairwise):
        yield (parted_now & ~was)  # what cuts within an island count from is another event then
    lost_cuts = (cut.may_have_parted(later.like(cut), distance) for cut in earlier.inner)
    yield from (lost_cut for lost_cut in lost_cuts if lost_cut is not None)


def _any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of some conditions is true."""
    return F.coalesce(reduce(Column.__or__, conditions, F.lit(False)), F.lit(False))
