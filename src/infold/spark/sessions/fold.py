"""
Folding changed events into stored sessions.

What changed touches *components* (see ``components``), and nothing outside of them can differ. If
nothing is gone from a component and every aggregate can be merged, its session is the merger of its
islands. Else exactly the events between its first and last instant are read again; it may then
split, shrink or vanish. One commit removes the stored sessions of the components and adds the new
ones; a session that comes out as it was is left alone.

A fold is a handful of Spark actions: the delta, the components, their totals, the commit; two more
when events are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.project import Node
from infold.core.record import Outcome, Receipt
from infold.core.session_columns import FIRST, ID
from infold.core.trace import CellChange
from infold.spark.content import column, time_predicate
from infold.spark.sessions import quarantine, unassigned
from infold.spark.sessions.components import AGAIN, HULL, Components
from infold.spark.sessions.cuts import CARRIED, sessions_of
from infold.spark.sessions.islands import (
    EVENTS,
    START,
    USER,
    prepared,
    spans,
    within_spans,
)
from infold.spark.sessions.session_numbers import renumbered
from infold.spark.sessions.stored import rows
from infold.spark.sessions.totals import (
    KEY,
    NEW,
    OLD,
    ROW,
    Totals,
    deleted,
    inserted,
    key_of,
    totals,
)
from infold.spark.step_context import Work


def fold(work: Work, node: Node, step: Step, announce: Prepared) -> Outcome:
    """Carry the input's changes since the step's trace into the table."""
    return _Fold(work, node, step).carry_out(announce)


class _Fold:
    """One fold: its components, and the frames on the way to its commit."""

    def __init__(self, work: Work, node: Node, step: Step) -> None:
        self.work, self.node, self.step = work, node, step
        self.components = found = Components(work, node, step)
        self.query, self.feed, self.time, self.over = (
            found.query,
            found.feed,
            found.time,
            found.over,
        )
        self.merges, self.may_quarantine, self.scanned = (
            found.merges,
            found.may_quarantine,
            found.scanned,
        )

    def carry_out(self, announce: Prepared) -> Outcome:
        """Find what changes, announce what will hold, commit."""
        components = self.components.find()
        again = components.where(AGAIN)
        whole = components.where(~F.col(AGAIN))
        changed = self._merged(whole) if self.merges else self._held(whole)
        others = unassigned.others(self.work, self.step)
        found = totals(changed, again, unassigned.came_and_went(self.feed, self.query, others))
        if found.hulls:
            read = self._read_again(again, found.hulls).localCheckpoint()
            found += totals(read)
            changed = read if changed is None else changed.unionByName(read)
        held = quarantine.taken(changed) if self.may_quarantine and changed else ((), ())
        if self.query.numbered and changed is not None:
            changed, found = self._numbered(changed, found)
        return self._commit(changed, found, held, announce)

    def _merged(self, components: DataFrame) -> DataFrame:
        """Components whose merged parts are their one session, as ``totals`` wants them."""
        out = (quarantine.OUT,) if self.may_quarantine else ()
        made = self._keyed(components, (OLD, EVENTS, START, *out, *self._kept))
        new = F.array(F.struct(KEY, ROW))
        if self.may_quarantine:
            stays = self._stays(made.schema[ROW].dataType)
            new = F.when(F.size(quarantine.HELD) > 0, stays).otherwise(new)
        return made.select(OLD, new.alias(NEW), _looked_at(), *self._kept)

    def _held(self, components: DataFrame) -> DataFrame | None:
        """Components that are in quarantine, where everything else is read again."""
        if not self.may_quarantine:
            return None
        row = self.work.tables.read(self.step.model).schema
        return components.select(OLD, self._stays(row).alias(NEW), _looked_at(), *self._kept)

    def _stays(self, row: DataType) -> Column:
        """What stays in the table of a session in quarantine is what was there, or nothing."""
        there = F.transform(
            quarantine.stays(OLD),
            lambda key: F.struct(key.alias(KEY), F.lit(None).cast(row).alias(ROW)),
        )
        return F.filter(there, lambda _: ~F.col(quarantine.OUT))

    @property
    def _kept(self) -> tuple[str, ...]:
        """What changed components carry besides, where there is a quarantine."""
        return (USER, quarantine.HELD, quarantine.FREED) if self.may_quarantine else ()

    def _read_again(self, components: DataFrame, hulls: Ranges) -> DataFrame:
        """Components whose sessions are made anew from all events between their ends."""
        query = self.query
        self.scanned += sum(state.rows for state in self.feed.cells if hulls.overlaps(state.cell))
        bring = [CARRIED] if query.cuts.campaign else []
        near = spans(components, F.col(START).alias(HULL), *bring)
        there = prepared(self.feed.during(hulls), query, self.over)
        events = within_spans(there, self.components.sent(near))
        found = sessions_of(events, query, self.over, (USER, HULL))
        keep: tuple[str, ...] = (USER, HULL, EVENTS)
        row, more = F.struct(KEY, ROW), []
        if self.may_quarantine:
            found = quarantine.entered(found, query)
            keep = (*keep, quarantine.HELD, quarantine.OUT)
            more = [F.flatten(F.collect_list(quarantine.HELD)).alias("__entries")]
            row = F.when(~F.col(quarantine.OUT), row)
        new = (
            self._keyed(found, keep)
            .groupBy(F.col(USER).alias("__of"), HULL)
            .agg(F.collect_list(row).alias(NEW), F.sum(EVENTS).alias("__read"), *more)
        )
        # A component all of whose events are gone has no new rows: it must not get lost here.
        pairs = (F.col(USER) == F.col("__of")) & (F.col(START) == F.col(HULL))
        nothing = F.array().cast(new.schema[NEW].dataType)
        joined = components.join(new, pairs, "left")
        if self.may_quarantine:
            # Where only the head was read again, the entry is the component's own.
            entries = F.coalesce("__entries", quarantine.nothing())
            own = F.when(F.col(quarantine.HEAD).isNull(), entries).otherwise(F.col(quarantine.HELD))
            joined = joined.withColumn(quarantine.HELD, own)
        return joined.select(
            OLD,
            F.coalesce(NEW, nothing).alias(NEW),
            (F.col(EVENTS) + F.coalesce("__read", F.lit(0))).alias(EVENTS),
            *self._kept,
        )

    def _keyed(self, found: DataFrame, keep: Sequence[str]) -> DataFrame:
        """Islands as rows of the table, each a struct beside its key."""
        made = rows(found, self.query, self.over, self.time, self.step.version, keep)
        own = made.drop(*keep)
        key = key_of(own, self.node.model.granularity)
        return made.select(key.alias(KEY), F.struct(*map(column, own.columns)).alias(ROW), *keep)

    def _numbered(self, changed: DataFrame, found: Totals) -> tuple[DataFrame, Totals]:
        """The same changes with those of the sessions that get another number."""
        table = self.work.tables.read(self.step.model)
        granularity = self.node.model.granularity
        self.scanned += sum(state.rows for state in self.work.cells(self.step.model))
        moved = renumbered(
            changed, table, self.query, granularity, self.step.version
        ).localCheckpoint()
        return moved, replace(totals(moved), counts=found.counts)

    def _commit(
        self,
        changed: DataFrame | None,
        found: Totals,
        moved: quarantine.Moved,
        announce: Prepared,
    ) -> Outcome:
        work, step, granularity = self.work, self.step, self.node.model.granularity
        assert step.trace is not None, "a planned step says what will hold"
        changes = found.changes(work.cells(step.model), granularity)
        held, freed = moved
        outcome = Outcome(
            model=step.model,
            version=step.version,
            trace=step.trace,
            changes=changes,
            committed=bool(changes),
            receipt=self._receipt(found, changes, {one.key for one in held} - {*freed}),
            left_out=unassigned.there(work, step, self.feed, self.query, found.counts),
            quarantined=held,
            released=freed,
        )
        announce(outcome)
        if changed is None or not changes:
            return outcome
        losing = found.losing(granularity)
        if losing:
            table = work.tables.read(step.model)
            snapshot = work.tables.merge(
                step.model,
                insert=inserted(changed),
                delete=deleted(changed),
                on=(ID, FIRST),
                within=time_predicate(table, FIRST, losing),
                stamp=work.stamp(step),
            )
        else:
            snapshot = work.tables.append(step.model, inserted(changed), work.stamp(step))
        return replace(outcome, snapshot=snapshot)

    def _receipt(
        self, found: Totals, changes: Sequence[CellChange], entered: Collection[object]
    ) -> Receipt:
        counts = found.counts
        return Receipt(
            read=counts["read"],
            scanned=self.scanned,
            written=sum(change.added for change in changes),
            removed=sum(change.removed for change in changes),
            **unassigned.said(self.query, unassigned.came(counts)),
            before_start=counts[unassigned.BEFORE],
            cells_built=len(changes),
            cells_cut_off=sum(not change.changes_rows for change in changes),
            sessions_new=counts["new"],
            sessions_extended=counts["extended"],
            sessions_merged=counts["merged"],
            sessions_split=counts["split"],
            sessions_removed=counts["removed"],
            sessions_quarantined=len(entered),
            commits=1 if changes else 0,
        )


def _looked_at() -> Column:
    """How many rows a merged component was made from: new events, and stored sessions."""
    return (F.col(EVENTS) + F.size(OLD)).alias(EVENTS)
