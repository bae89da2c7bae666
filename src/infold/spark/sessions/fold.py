"""
Folding changed events into stored sessions.

What changed touches *components* (see ``components``), and nothing outside of them can differ. If
no event was removed from a component and every aggregate can be merged, its session is its islands
merged. Else exactly the events between its first and last instant are read again: it may then
split, shrink or vanish. One commit removes the stored sessions of the components and adds the new
ones; a session that comes out as it was is left alone.

A fold is a handful of Spark actions: the input's changes, the components, their totals, the commit;
two more when events are read again.

After a change of the definition the same is done with the sessions that it changes (``refold``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from infold.core.interval import Granularity, Ranges
from infold.core.own_columns import FIRST, ID
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery
from infold.core.record import Outcome, Receipt
from infold.spark import key_filter
from infold.spark.content import LITERAL_RANGES, column, time_predicate
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.sessions import quarantine, unassigned
from infold.spark.sessions.components import Components
from infold.spark.sessions.divide import sessions_of
from infold.spark.sessions.fold_changes import (
    CHANGED_COMPONENTS,
    KEY,
    KEY_TYPE,
    NEW,
    OLD,
    ROW,
    Totals,
    collect_totals,
    key_of,
    keys_to_delete,
    rows_to_insert,
)
from infold.spark.sessions.frames import AGAIN, EVENTS, OWNER, START, VANISHES
from infold.spark.sessions.islands import events_within, prepared_events, spans_of
from infold.spark.sessions.part import Part
from infold.spark.sessions.stored import renumbered_sessions, table_rows
from infold.spark.step_commit import ROWS_PER_TASK, Computed, RowChanges, commit_step
from infold.spark.step_context import Work

_COMPONENT_START = "__component_start"
"""Of an event that is read again, and of its session: the start of its component."""
_READ_OWNER, _READ_EVENTS, _READ_ENTRIES = "__read_owner", "__read_events", "__read_entries"
"""Of a component that was read again: its owner, its events, and the entries in it."""

KEYED_SESSIONS = FrameSchema(
    "a session, as its table would store it",
    (
        FrameColumn(KEY, KEY_TYPE, "its id and start, and hashes of all of it"),
        FrameColumn(ROW, "struct<…", "the row of the table"),
        FrameColumn(EVENTS, "bigint", "how many of its events were looked at"),
    ),
    "columns that a caller keeps beside them",
)

READ_COMPONENTS = FrameSchema(
    "the sessions of a component that has events",
    (
        FrameColumn(_READ_OWNER, ANY, "its owner"),
        FrameColumn(_COMPONENT_START, "bigint", "its start"),
        FrameColumn(NEW, f"array<struct<{KEY}:{KEY_TYPE}", "its sessions"),
        FrameColumn(_READ_EVENTS, "bigint", "how many events were read"),
        FrameColumn(_READ_ENTRIES, "array<struct<…", "the entries in it", "quarantine"),
    ),
)


class SessionsFold:
    """One fold, of a table or of a part of it: its components, and the way to its commit."""

    def __init__(self, work: Work, node: Node, step: Step, part: Part | None = None) -> None:
        self.work, self.node, self.step, self.part = work, node, step, part
        self.components = components = Components(work, node, step, part)
        self.query, self.feed, self.time, self.compiled = (
            components.query,
            components.feed,
            components.time,
            components.compiled,
        )
        self.merges, self.may_quarantine, self.scanned = (
            components.merges,
            components.may_quarantine,
            components.scanned,
        )

    def carry_out(self) -> Outcome:
        """Carry the input's changes since the step's trace into the table."""
        changed, totals, (new_entries, old_entries) = self.changes()
        entered = {entry.key for entry in new_entries} - {*old_entries}
        work, step, query, counts = self.work, self.step, self.query, totals.counts
        computed = Computed(
            receipt=fold_receipt(query, totals, len(entered), self.scanned),
            left_out=unassigned.count_after_fold(work, step, self.feed, query, counts),
            quarantined=new_entries,
            released=old_entries,
        )
        granularity = self.node.model.granularity
        return commit_changes(work, step, query, granularity, changed, totals, computed)

    def changes(self) -> tuple[DataFrame | None, Totals, quarantine.MovedEntries]:
        """The changed components, what they add up to, and entries; without numbers."""
        components = self.components.find()
        with self.work.planned_once(few=self.components.small):
            return self._changes_in(components)

    def _changes_in(
        self, components: DataFrame
    ) -> tuple[DataFrame | None, Totals, quarantine.MovedEntries]:
        to_read, mergeable = components.where(AGAIN), components.where(~F.col(AGAIN))
        reads_all = self.components.reads_all_again
        changed = None if reads_all else self._changed_without_reading(mergeable)
        if changed is not None and self.components.small:
            # They are few, and looked at four times. Their expressions are long: Spark is to plan
            # them once, and not each time.
            changed = changed.localCheckpoint(eager=False)
        others = unassigned.names_of_others(self.work, self.step)
        unassigned_lines = unassigned.changed_count_lines(self.feed, self.query, others)
        ids = key_filter.pays(0, self.components.rows_looked_at)
        totals = collect_totals(changed, to_read, unassigned_lines, ids=ids)
        if totals.to_read:
            read = self._read_again(to_read, totals.to_read).localCheckpoint()
            totals += collect_totals(read, ids=ids)
            changed = read if changed is None else changed.unionByName(read)
        entries: quarantine.MovedEntries = ((), ())
        if self.may_quarantine and changed is not None:
            entries = quarantine.moved_entries(changed)
        return changed, totals, entries

    def _changed_without_reading(self, components: DataFrame) -> DataFrame | None:
        """
        The components that need no event to be read again.

        Where nothing can be merged, those are the ones in quarantine.
        """
        if self.merges:
            return self._merged_components(components)
        return self._in_quarantine(components) if self.may_quarantine else None

    @returns(CHANGED_COMPONENTS)
    def _merged_components(self, components: DataFrame) -> DataFrame:
        """Components that are one session each, made from their merged states, or none any more."""
        leaves = (quarantine.LEAVES_TABLE,) if self.may_quarantine else ()
        vanishes = (VANISHES,) if self.components.knows_vanished else ()
        kept = (OLD, EVENTS, START, *leaves, *vanishes, *self._entry_columns)
        keyed = self._keyed(components, kept)
        new = F.array(F.struct(KEY, ROW))
        if vanishes:
            new = F.filter(new, lambda _: ~F.col(VANISHES))
        if self.may_quarantine:
            head = self._unchanged_head(keyed.schema[ROW].dataType)
            new = F.when(F.size(quarantine.NEW_ENTRIES) > 0, head).otherwise(new)
        return keyed.select(OLD, new.alias(NEW), _rows_looked_at(), *self._entry_columns)

    @returns(CHANGED_COMPONENTS)
    def _in_quarantine(self, components: DataFrame) -> DataFrame:
        """Components that are sessions in quarantine, known by their entries."""
        table = self.work.tables.read(self.step.model).schema
        row = table if self.part is None else self.part.schema
        new = self._unchanged_head(row).alias(NEW)
        return components.select(OLD, new, _rows_looked_at(), *self._entry_columns)

    def _unchanged_head(self, row: DataType) -> Column:
        """What stays in the table of a session in quarantine: what was there, or nothing."""
        stored_head = F.transform(
            quarantine.keys_of_head(OLD),
            lambda key: F.struct(key.alias(KEY), F.lit(None).cast(row).alias(ROW)),
        )
        return F.filter(stored_head, lambda _: ~F.col(quarantine.LEAVES_TABLE))

    @property
    def _entry_columns(self) -> tuple[str, ...]:
        """What changed components have besides, where there is a quarantine."""
        if not self.may_quarantine:
            return ()
        return OWNER, quarantine.NEW_ENTRIES, quarantine.OLD_ENTRIES

    @returns(CHANGED_COMPONENTS)
    def _read_again(self, components: DataFrame, times: Ranges) -> DataFrame:
        """Components, their sessions made from all events between their ends."""
        new = self._sessions_read(components, times)
        # A component without events has no new rows, and must stay: its old rows are removed.
        same = (F.col(OWNER) == F.col(_READ_OWNER)) & (F.col(START) == F.col(_COMPONENT_START))
        no_sessions = F.array().cast(new.schema[NEW].dataType)
        joined = components.join(new, same, "left")
        if self.may_quarantine:
            # Where only the head was read again, the entry is the component's own.
            entries_read = F.coalesce(_READ_ENTRIES, quarantine.no_entries())
            known = F.col(quarantine.NEW_ENTRIES)
            entries = F.when(F.col(quarantine.HEAD_END).isNull(), entries_read).otherwise(known)
            joined = joined.withColumn(quarantine.NEW_ENTRIES, entries)
        return joined.select(
            OLD,
            F.coalesce(NEW, no_sessions).alias(NEW),
            (F.col(EVENTS) + F.coalesce(_READ_EVENTS, F.lit(0))).alias(EVENTS),
            *self._entry_columns,
        )

    @returns(READ_COMPONENTS)
    def _sessions_read(self, components: DataFrame, times: Ranges) -> DataFrame:
        """The sessions of components, made from all events between their ends."""
        query = self.query
        self.scanned += sum(state.rows for state in self.feed.cells if times.overlaps(state.cell))
        inner_state = [name for cut in self.components.cuts.inner for name in cut.state]
        spans = spans_of(components, F.col(START).alias(_COMPONENT_START), *inner_state)
        if len(times) > LITERAL_RANGES:  # nights between days are no ranges worth a test
            times = Granularity.DAY.cover(times)
        prepared = prepared_events(self.feed.during(times), query, self.compiled)
        events = events_within(prepared, self.components.broadcast_if_small(spans))
        sessions = sessions_of(events, query, self.compiled, (OWNER, _COMPONENT_START))
        keep: tuple[str, ...] = (OWNER, _COMPONENT_START, EVENTS)
        row, entry_columns = F.struct(KEY, ROW), []
        if self.may_quarantine:
            sessions = quarantine.with_new_entries(sessions, query)
            keep = (*keep, quarantine.NEW_ENTRIES, quarantine.LEAVES_TABLE)
            entries = F.flatten(F.collect_list(quarantine.NEW_ENTRIES))
            entry_columns = [entries.alias(_READ_ENTRIES)]
            row = F.when(~F.col(quarantine.LEAVES_TABLE), row)
        return (
            self._keyed(sessions, keep)
            .groupBy(F.col(OWNER).alias(_READ_OWNER), _COMPONENT_START)
            .agg(F.collect_list(row).alias(NEW), F.sum(EVENTS).alias(_READ_EVENTS), *entry_columns)
        )

    @returns(KEYED_SESSIONS)
    def _keyed(self, sessions: DataFrame, keep: Sequence[str]) -> DataFrame:
        """Sessions as rows of the table, each a struct beside its key."""
        stored = table_rows(sessions, self.query, self.compiled, self.time, self.step.version, keep)
        if self.part is not None:
            stored = self.part.as_stored(stored, *keep)
        row = stored.drop(*keep)
        key = key_of(row, self.node.model.granularity)
        return stored.select(key.alias(KEY), F.struct(*map(column, row.columns)).alias(ROW), *keep)


def commit_changes(
    work: Work,
    step: Step,
    query: SessionsQuery,
    granularity: Granularity | None,
    changed: DataFrame | None,
    totals: Totals,
    computed: Computed,
) -> Outcome:
    """Commit changed components, and the sessions that get another number by their changes."""
    if query.numbered and changed is not None:
        table = work.tables.read(step.model)
        changed = renumbered_sessions(
            *(changed, table, query, granularity, step.version), rows=totals.rows_changed
        ).localCheckpoint()
        totals = replace(collect_totals(changed, ids=True), counts=totals.counts)
        looked_at = Receipt(scanned=sum(state.rows for state in work.cells(step.model)))
        computed = replace(computed, receipt=computed.receipt + looked_at)
    changes, rows = totals.cell_changes(work.cells(step.model), granularity), None
    if changed is not None and changes:
        rows = row_changes(work, step, changed, totals, granularity)
    return commit_step(work, step, rows, replace(computed, changes=changes))


def _rows_looked_at() -> Column:
    """How many rows a merged component was made from: new events, and stored sessions."""
    return (F.col(EVENTS) + F.size(OLD)).alias(EVENTS)


def row_changes(
    work: Work, step: Step, changed: DataFrame, totals: Totals, granularity: Granularity | None
) -> RowChanges:
    """The rows that changed components add, and those that they remove."""
    losing = totals.losing_cells(granularity)
    insert = rows_to_insert(changed)
    if not losing:
        few_files = insert.coalesce(1 + totals.rows_changed // ROWS_PER_TASK)
        return RowChanges(few_files, None, (ID, FIRST))
    table, delete = work.tables.read(step.model), keys_to_delete(changed)
    condition = time_predicate(table, FIRST, losing)
    matched = sum(state.rows for state in work.cells(step.model, losing))
    ids = totals.removed_ids
    if len(ids) == totals.rows_removed and key_filter.pays(len(ids), matched):
        condition += f" AND {key_filter.may_have(ids, ID)}"
        matched = key_filter.rows_passed(len(ids), matched)
    looked_at = matched + totals.rows_changed
    return RowChanges(insert, delete, (ID, FIRST), condition, looked_at, FIRST, losing)


def fold_receipt(query: SessionsQuery, totals: Totals, entered: int, scanned: int) -> Receipt:
    """What a fold read, and what became of sessions; ``entered`` the quarantine."""
    counts = totals.counts
    return Receipt(
        read=counts["read"],
        scanned=scanned,
        **unassigned.receipt_counts(query, unassigned.arrived_counts(counts)),
        before_start=counts[unassigned.BEFORE_START],
        sessions_new=counts["new"],
        sessions_extended=counts["extended"],
        sessions_merged=counts["merged"],
        sessions_split=counts["split"],
        sessions_removed=counts["removed"],
        sessions_quarantined=entered,
    )
