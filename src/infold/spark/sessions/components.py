"""
Components: what a change of events can alter, and nothing more.

A component is everything of one owner that no pairwise cut parts: islands of new events, the stored
sessions that they touch, the spans of removed events. No event outside of it can belong to one of
its sessions. Where cuts end sessions within islands, a component begins with the last stored
session that began before the first change, and goes on to the island's end: a change may move all
later ends.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, reduce
from itertools import chain

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from infold.core.interval import EVER, MAX, Interval, Ranges
from infold.core.own_columns import FIRST, LAST
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery
from infold.core.sessions import Keep
from infold.spark.content import column, micros, time_predicate, type_of
from infold.spark.frame_schema import FrameColumn, returns
from infold.spark.inputs.changed_keys import MOST_BROADCAST_KEYS
from infold.spark.inputs.feed import Feed
from infold.spark.observed import kept_and_observed
from infold.spark.sessions import quarantine, refold
from infold.spark.sessions.aggregates import differ_in_a_tie
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.base import longest_silence
from infold.spark.sessions.fold_changes import (
    INPUT_CHANGES,
    KEY_TYPE,
    OLD,
    REMOVED,
    InputChanges,
    can_merge,
    key_of,
)
from infold.spark.sessions.frames import (
    AGAIN,
    CAMPAIGN_BEFORE,
    CAMPAIGN_IN_FORCE,
    END,
    EVENT_COUNT,
    EVENTS,
    ISLANDS,
    OWNER,
    QUIET,
    SPAN_OWNER,
    START,
    USER_VALUE,
    VANISHES,
)
from infold.spark.sessions.islands import (
    are_parted,
    compiled_aggregates,
    owner_of_event,
    quiet_before,
)
from infold.spark.sessions.part import Part
from infold.spark.sessions.stored import cells_reaching, restored_columns, stored_owner
from infold.spark.step_context import Work

BY_MANUAL_ENTRY = "__by_hand"
"""Whether something takes part in a fold because of a new manual entry."""

CHANGE_SPANS = INPUT_CHANGES.plus(
    "an island of changed events, or the span of a session that a new manual entry is about",
    FrameColumn(
        BY_MANUAL_ENTRY, "boolean", "whether it is of a manual entry", "new manual entries"
    ),
)

PARTICIPANTS = CHANGE_SPANS.plus(
    "what takes part in a fold: an island of changed events, a stored session, or an entry",
    FrameColumn(OLD, KEY_TYPE, "the key of a stored session; NULL for anything else"),
    FrameColumn(CAMPAIGN_BEFORE, "string", "of stored ones: the campaign before", "campaign"),
    FrameColumn(CAMPAIGN_IN_FORCE, "string", "of entries: the one kept", "campaign, quarantine"),
    FrameColumn(quarantine.OLD_ENTRY, "bigint", "an entry's start; NULL: none", "quarantine"),
)

COMPONENTS = ISLANDS.plus(
    "a component; EVENTS are its new ones, the states are merged",
    FrameColumn(OLD, f"array<{KEY_TYPE}", "the keys of its stored sessions"),
    FrameColumn(AGAIN, "boolean", "whether its events have to be read again"),
    FrameColumn(VANISHES, "boolean", "whether no event of it is left", "can be told by states"),
    FrameColumn(CAMPAIGN_BEFORE, "string", "the campaign before it", "campaign"),
    FrameColumn(quarantine.OLD_ENTRIES, "array<bigint>", "where its entries began", "quarantine"),
    FrameColumn(quarantine.NEW_ENTRIES, "array<struct<…", "its entries now", "quarantine"),
    FrameColumn(quarantine.LEAVES_TABLE, "boolean", "whether nothing of it stays", "quarantine"),
    FrameColumn(quarantine.HEAD_END, "bigint", "where reading again ends before END", "quarantine"),
)

_BEGINS, _NUMBER = "__begins_component", "__component"
"""Of what takes part: 1 if it begins a component, and the component's number for its owner."""
_PREVIOUS_END = "__reached"
"""The latest end (µs) of any earlier participant of the same owner."""
_FIRST_CHANGE, _FIRST_START = "__changed", "__from"
"""Of a component: the start (µs) of what is new in it, and of the stored session before that."""
_TIED = "__tied"
"""Of a component: whether a stored and a new event of one instant name different users."""
_REACHES_BACK = "__reaches_back"
"""Of a change: the earliest instant at which a session can end that it touches."""


class Components:
    """The components of one step, and what was read to find them."""

    def __init__(self, work: Work, node: Node, step: Step, part: Part | None = None) -> None:
        self.work, self.node, self.step, self.part = work, node, step, part
        self.query = query = query_of(work, step) if part is None else part.query
        self.cuts = cuts_of(query)
        self.feed = feed = Feed(work, node, step, query.input)
        self.time = type_of(feed.current, query.time_column)
        self.compiled = compiled_aggregates(feed.current, query)
        self.input_changes = InputChanges(query, self.compiled, feed)
        self._number = 0  # of changes, where they are found in the table
        self.merges = can_merge(query, self.compiled)
        self.may_quarantine = query.may_quarantine
        applied = step.previous_trace.applied_entry if step.previous_trace else 0
        self.new_manual = [entry for entry in query.entries if entry.number > applied]
        times = self._times_that_may_change()
        entries = work.ledger.quarantined(step.model) if self.may_quarantine else ()
        if part is not None:
            entries = [entry for entry in entries if entry.start in part.ranges]
        self.entries = [
            entry for entry in entries if times.overlaps(Interval(entry.start, entry.end + 1))
        ]
        # What stays of a session in quarantine may lie far from where that goes on.
        heads = Ranges.of(Interval(entry.start, entry.start + 1) for entry in self.entries)
        cells = work.cells(step.model, None if part is None else part.ranges)
        self.candidates = cells_reaching(cells, times | heads)
        self.rows_looked_at = sum(state.rows for state in self.candidates)
        self.scanned = feed.rows_to_scan + self.rows_looked_at

    def _times_that_may_change(self) -> Ranges:
        """The times at which a session lies that the step may change."""
        if self.step.stored_by is not None:
            return Ranges.ever()
        gap = longest_silence(self.query)
        times = self.feed.times.widen(gap, gap) | Ranges.of(
            EVER
            if entry.start is None or entry.end is None
            else Interval(entry.start, entry.end + 1)
            for entry in self.new_manual
        )
        if self.part is not None and self.part.has_new_end:
            times |= Ranges((Interval(self.part.times.end, self.part.times.end + 1),))
        if self.query.cuts_within_islands and times.span:  # all later sessions may end elsewhere
            return Ranges((Interval(times.span.start, MAX),))
        return times

    @returns(COMPONENTS)
    def find(self) -> DataFrame:
        """
        One row for each component: its span, merged states, stored keys, and ``AGAIN``.

        Without states where :attr:`reads_all_again`.
        """
        if self.reads_all_again:
            components, self._number = computed_once(self._divided_sessions())
            return components
        changes = self._changed_spans()
        if self._stored_sessions_change:
            changes, self._number = computed_once(changes)
        with self.work.planned_once(few=self.small):
            # Few of them are computed where they are first read, not by a job of their own.
            if not self._stored_sessions_change:
                changes = changes.localCheckpoint(eager=not self.small)
            return self._merged_components(changes).localCheckpoint(eager=not self.small)

    @cached_property
    def reads_all_again(self) -> bool:
        """Whether the components are stored sessions whose events all have to be read again."""
        before, inputs = self.step.stored_by, self.step.inputs.values()
        alone = self.part is None and not self.new_manual and all(a == b for a, b in inputs)
        return before is not None and alone and refold.each_by_itself(before, self.query)

    @property
    def small(self) -> bool:
        """Whether the changes are few enough to be sent to every task."""
        changes = self._number if self._stored_sessions_change else self.feed.rows
        return changes <= MOST_BROADCAST_KEYS

    @property
    def _stored_sessions_change(self) -> bool:
        """Whether stored sessions change without any event of theirs."""
        return self.step.stored_by is not None or (self.part is not None and self.part.has_new_end)

    def _divided_sessions(self) -> DataFrame:
        """Stored sessions that the changed definition may divide."""
        before, table = self.step.stored_by, self._with_keys(self._candidate_sessions())
        assert before is not None, "only then all are read again"
        owner = self.feed.current.select(owner_of_event(self.query)).schema[0].dataType
        return refold.divided_sessions(table, before, self.query, owner)

    @returns(CHANGE_SPANS)
    def _changed_spans(self) -> DataFrame:
        """What a change of the input, of manual entries, or of the definition is about."""
        changes = self._changed_and_manual_spans()
        if self.part is not None and self.part.has_new_end:
            return changes.unionByName(
                self._spans_over_border(changes.schema[OWNER].dataType), allowMissingColumns=True
            )
        if self.step.stored_by is None:
            return changes
        table, owner = self.work.tables.read(self.step.model), changes.schema[OWNER].dataType
        spans = refold.spans_that_change(
            table, self.entries, self.step.stored_by, self.query, owner
        )
        rows = spans.withColumn(EVENTS, F.lit(0).cast("bigint"))
        return changes.unionByName(rows, allowMissingColumns=True)

    def _spans_over_border(self, owner_type: DataType) -> DataFrame:
        """Stored sessions, and entries, that reach over the new end of their part."""
        assert self.part is not None, "only a part has an end"
        border = self.part.times.end
        table = self._candidate_sessions()
        spans = table.where(micros(column(LAST)) >= border).select(
            stored_owner(self.query).cast(owner_type).alias(OWNER),
            micros(column(FIRST)).alias(START),
            micros(column(LAST)).alias(END),
        )
        entries = [entry for entry in self.entries if entry.end >= border]
        if entries:
            spans = spans.unionByName(quarantine.entry_spans(table, entries, owner_type))
        return spans.withColumns({EVENTS: F.lit(0).cast("bigint"), REMOVED: F.lit(True)})

    @returns(CHANGE_SPANS)
    def _changed_and_manual_spans(self) -> DataFrame:
        """Islands of changed events, and spans of sessions that new manual entries are about."""
        changes = self.input_changes.islands()
        if not self.new_manual:
            return changes
        spans = quarantine.manual_entry_spans(
            self._candidate_sessions(),
            self.query,
            self.new_manual,
            self.entries,
            changes.schema[OWNER].dataType,
        )
        by_hand = spans.withColumns(
            {EVENTS: F.lit(0).cast("bigint"), REMOVED: F.lit(True), BY_MANUAL_ENTRY: F.lit(True)}
        )
        return changes.unionByName(by_hand, allowMissingColumns=True)

    @returns(PARTICIPANTS)
    def _participants(self, changes: DataFrame) -> DataFrame:
        """What takes part in the fold: the changes, the sessions that they touch, and entries."""
        stored = self._with_keys(self._touched_sessions(changes))
        touched_sessions = stored.select(
            *restored_columns(self.query, self.input_changes.compiled, changes.schema),
            F.lit(0).cast("bigint").alias(EVENTS),
            F.lit(False).alias(REMOVED),
            OLD,
        )
        participants = changes.unionByName(touched_sessions, allowMissingColumns=True)
        if self.may_quarantine:
            participants = quarantine.with_entries(participants, self.query, self.entries)
        return participants

    def _merged_components(self, changes: DataFrame) -> DataFrame:
        """One row for each component, with its merged states and the keys of its sessions."""
        query, inner = self.query, self.cuts.inner
        by_start = Window.partitionBy(OWNER).orderBy(START)
        latest_end_before = F.max(END).over(by_start.rowsBetween(Window.unboundedPreceding, -1))
        reached = F.col(_PREVIOUS_END)
        parted = (reached < F.col(START)) & are_parted(query, reached, F.col(START))
        begins = F.when(reached.isNull() | parted, 1)
        quiet = quiet_before(F.col(_BEGINS), reached, F.col(START))
        number = F.sum(_BEGINS).over(by_start.rowsBetween(Window.unboundedPreceding, 0))
        numbered = (
            self._participants(changes)
            # A column of its own, or Spark computes it at each place.
            .withColumn(_PREVIOUS_END, latest_end_before)
            .withColumn(_BEGINS, begins.otherwise(0))
            .withColumns({QUIET: quiet, _NUMBER: number})
        )
        if query.cuts_within_islands or self.may_quarantine:
            numbered = self._cut_off_before_change(numbered)
        components = numbered.groupBy(OWNER, _NUMBER).agg(
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            F.collect_list(OLD).alias(OLD),
            self._needs_reading().alias(AGAIN),
            *([self._has_lost_all_events()] if self.knows_vanished else []),
            *chain(*(cut.component_columns(self._was_there_sql) for cut in inner)),
            *(self._entry_columns() if self.may_quarantine else []),
            *(
                F.expr(str(part.merge)).alias(part.name)
                for part in self.input_changes.compiled.parts
            ),
        )
        for cut in inner:
            if (divides := cut.may_divide()) is not None:
                components = components.withColumn(AGAIN, F.col(AGAIN) | divides)
        if self.knows_vanished:
            components = components.withColumn(AGAIN, F.col(AGAIN) & ~F.col(VANISHES))
        if self.part is not None and self.part.border is not None:
            components = components.withColumn(END, F.least(END, F.lit(self.part.border - 1)))
        if self.may_quarantine:
            components = quarantine.with_judgement(
                components,
                query,
                is_single=~F.col(REMOVED) & quarantine.stays_whole(query),
                tied=F.col(_TIED),
                changed=F.col(_FIRST_CHANGE),
            ).drop(_FIRST_CHANGE, _TIED, REMOVED, *quarantine.entry_columns(query))
        return components.drop(_NUMBER)

    def _entry_columns(self) -> list[Column]:
        """What a component gathers of the entries in it, and of what may be one."""
        ties = [
            differ_in_a_tie(pick, self._was_there_sql)
            for pick in self.input_changes.compiled.picks
            if pick.value == USER_VALUE
        ]
        return [
            *chain(*(cut.component_entry_columns() for cut in self.cuts.inner)),
            F.collect_list(quarantine.OLD_ENTRY).alias(quarantine.OLD_ENTRIES),
            F.min(_FIRST_CHANGE).alias(_FIRST_CHANGE),
            F.bool_or(self._lost_events).alias(REMOVED),
            (ties[0] if ties else F.lit(False)).alias(_TIED),
        ]

    @property
    def _lost_events(self) -> Column:
        """Whether something is of events that are no longer there."""
        if not self.new_manual:
            return F.col(REMOVED)
        return F.col(REMOVED) & ~F.coalesce(BY_MANUAL_ENTRY, F.lit(False))

    @property
    def _was_there_sql(self) -> str:
        """SQL: whether something that takes part was there before."""
        entry = f" OR {quarantine.OLD_ENTRY} IS NOT NULL" if self.may_quarantine else ""
        return f"({OLD} IS NOT NULL{entry})"

    def _cut_off_before_change(self, numbered: DataFrame) -> DataFrame:
        """
        Components with something new in them, from the first change on.

        What lies before a change cannot depend on it. So where cuts end sessions within an island,
        it is looked at from the last of its sessions that began before the first change.
        """
        component = Window.partitionBy(OWNER, _NUMBER)
        known = F.expr(self._was_there_sql)
        first_change = F.min(F.when(~known, F.col(START))).over(component)
        changed = numbered.withColumn(_FIRST_CHANGE, first_change)
        changed = changed.where(F.col(_FIRST_CHANGE).isNotNull())
        if not self.query.cuts_within_islands:
            return changed
        earlier = F.when(known & (F.col(START) < F.col(_FIRST_CHANGE)), F.col(START))
        return changed.withColumn(_FIRST_START, F.max(earlier).over(component)).where(
            F.col(START) >= F.coalesce(_FIRST_START, START)
        )

    def _needs_reading(self) -> Column:
        """Whether a component's session does not follow from its merged states alone."""
        if not self.merges:
            return F.lit(True)
        ties = [differ_in_a_tie(pick, self._was_there_sql) for pick in self.compiled.picks]
        return reduce(Column.__or__, ties, F.bool_or(REMOVED))

    @property
    def knows_vanished(self) -> bool:
        """Whether components are whole sessions, of which states count the events."""
        cut_off = self.query.cuts_within_islands or self.may_quarantine or self.part is not None
        return self.merges and not cut_off

    def _has_lost_all_events(self) -> Column:
        """Whether as many events were removed as its sessions had, those that are new included."""
        lost = f"sum({EVENTS}) FILTER (WHERE {REMOVED}) = sum({EVENT_COUNT})"
        return F.expr(f"coalesce({lost}, false)").alias(VANISHES)

    def _touched_sessions(self, changes: DataFrame) -> DataFrame:
        """
        The stored sessions within a gap of a change.

        Where cuts end sessions within islands, all later ones of the same owner too.
        """
        query = self.query
        gap = longest_silence(query)
        if query.keep is Keep.HEAD:
            changes = quarantine.changed_or_entered(changes, self.entries)
        owner = F.col(OWNER).alias(SPAN_OWNER)
        touched = micros(column(LAST)) >= F.col(_REACHES_BACK)
        if query.cuts_within_islands:
            spans = changes.groupBy(owner).agg((F.min(START) - gap).alias(_REACHES_BACK))
        else:
            spans = changes.select(owner, (F.col(START) - gap).alias(_REACHES_BACK), END)
            touched = touched & (micros(column(FIRST)) <= F.col(END) + gap)
        return self._candidate_sessions().join(
            self.broadcast_if_small(spans),
            (stored_owner(query) == F.col(SPAN_OWNER)) & touched,
            "left_semi",
        )

    def _candidate_sessions(self) -> DataFrame:
        """The stored rows among which those are that the step may change."""
        candidate_cells = Ranges.of(state.cell for state in self.candidates)
        table = (
            self.work.tables.read(self.step.model, column=FIRST, ranges=candidate_cells)
            if self.part is None
            else self.part.stored()
        )
        return table.where(time_predicate(table, FIRST, candidate_cells))

    def _with_keys(self, stored: DataFrame) -> DataFrame:
        """Stored rows, each with its key, with the states of the query."""
        if self.part is not None:
            return self.part.keyed(stored)
        return stored.withColumn(OLD, key_of(stored, self.node.model.granularity))

    def broadcast_if_small(self, frame: DataFrame) -> DataFrame:
        """A frame as large as the changes: sent to every task, if they are few."""
        # Of at most ``MOST_BROADCAST_KEYS`` changed rows.
        return F.broadcast(frame) if self.small else frame


def query_of(work: Work, step: Step) -> SessionsQuery:
    """The compiled query of a step's model, with the manual entries that the step applies."""
    query = work.project[step.model].query
    assert query is not None, "a sessions model has a compiled query"
    newest_entry = step.trace.applied_entry if step.trace else 0
    if not newest_entry:
        return query
    applied = (entry for entry in work.ledger.entries(step.model) if entry.number <= newest_entry)
    return replace(query, entries=tuple(applied))


def computed_once(frame: DataFrame) -> tuple[DataFrame, int]:
    """A frame's rows, kept, and how many there are: in one action."""
    rows, counts = kept_and_observed(frame, F.count(F.lit(1)).alias("rows"))
    return rows, counts.get("rows") or 0
