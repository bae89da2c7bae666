"""
Folding changed events into stored sessions.

What arrived forms islands of its own. With the stored sessions that they touch, and the events
that are gone, they form *components*: per user, everything connected by pauses no longer than the
gap. No event outside a component can belong to one of its sessions, so a component is all there is
to look at. If nothing is gone from it and every aggregate can be merged, its session is the merger
of its islands. Else exactly the events between its first and last instant are read again; it may
then split, shrink or vanish. One commit removes the stored sessions of the components and adds the
new ones; a session that comes out as it was is left alone.

A fold is a handful of Spark actions: the delta, the components, their totals, the commit; two more
when events are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.interval import Interval, Ranges
from infold.plan import Step
from infold.ports import Prepared
from infold.project import Node, SessionsQuery
from infold.record import Outcome, Receipt
from infold.spark.content import column, micros
from infold.spark.kinds.aggregates import TIME, Pick
from infold.spark.kinds.delta import GONE, Delta, View, in_time, type_of
from infold.spark.kinds.islands import (
    END,
    EVENTS,
    START,
    USER,
    compiled,
    islands,
    prepared,
)
from infold.spark.kinds.stored import FIRST, ID, LAST, restored, rows
from infold.spark.kinds.totals import (
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
from infold.spark.work import Work
from infold.trace import CellChange, CellState, net

NULL_USER = "null user"
"""Why an event is in no session: it is nobody's."""

SMALL = 400_000
"""Up to this many changed rows, the delta is sent to every task rather than shuffled."""

HULL = "__hull"
AGAIN = "__again"


def foldable(work: Work, node: Node, step: Step) -> bool:
    """Whether there is a table to fold into, and the input still has the columns it had."""
    if not work.tables.exists(step.model):
        return False
    name = node.inputs[0].name
    since, upto = step.inputs[name]
    now = work.frame(name, upto)
    versions = [entry for entry in work.ledger.versions(name, since) if entry.number <= upto]
    numbered = "_version" in now.columns
    if numbered and not any(entry.whole for entry in versions):
        return True
    if work.snapshot(name, since) is None:
        return numbered
    return work.frame(name, since).schema == now.schema and (numbered or _comparable(now))


def fold(work: Work, node: Node, step: Step, announce: Prepared) -> Outcome:
    """Carry the input's changes since the step's trace into the table."""
    return _Fold(work, node, step).carry_out(announce)


def query_of(node: Node) -> SessionsQuery:
    """The compiled query of a sessions model."""
    assert node.query is not None, "a sessions model has a compiled query"
    return node.query


def view_of(work: Work, node: Node) -> View:
    """What the model sees of its stored input: a view may stand between the two."""
    name = query_of(node).input
    if name == node.inputs[0].name:
        return lambda frame: frame
    return lambda frame: work.sql(work.project[name], {node.inputs[0].name: frame})


def _comparable(frame: DataFrame) -> bool:
    return not any("map<" in type_ or "variant" in type_ for _, type_ in frame.dtypes)


class _Fold:
    """One fold: what it reads, and the frames on the way to its commit."""

    def __init__(self, work: Work, node: Node, step: Step) -> None:
        self.work, self.node, self.step = work, node, step
        self.query = query = query_of(node)
        self.input = name = node.inputs[0].name
        since, upto = step.inputs[name]
        changes = [change for change in net(work.ledger.changes(name, since)) if change.real]
        self.now = work.frame(name, upto)
        self.view = view_of(work, node)
        events = self.view(self.now)
        self.time = type_of(events, query.time_column)
        self.over = compiled(events, query)
        before = work.frame(name, since) if work.snapshot(name, since) is not None else None
        self.delta = Delta(query, self.over, self.view, before, self.now, changes, since)
        self.small = self.delta.rows <= SMALL
        self.candidates = _reaching(
            work.cells(step.model),
            Ranges.of(change.cell for change in changes).widen(query.gap, query.gap),
        )
        self.scanned = self.delta.looked_through
        self.scanned += sum(state.rows for state in self.candidates)

    def carry_out(self, announce: Prepared) -> Outcome:
        """Find what changes, announce what will hold, commit."""
        components = self._components(self.delta.islands().localCheckpoint()).localCheckpoint()
        again = components.where(AGAIN)
        changed = self._merged(components.where(~F.col(AGAIN))) if self.over.mergeable else None
        found = totals(changed, again, self.delta.nobody())
        if found.hulls:
            read = self._read_again(again, found.hulls).localCheckpoint()
            found += totals(read)
            changed = read if changed is None else changed.unionByName(read)
        return self._commit(changed, found, announce)

    # -- components

    def _components(self, delta: DataFrame) -> DataFrame:
        """One row for each component, with its merged parts and the keys of its stored sessions."""
        types = delta.schema
        parts = self.delta.over.parts
        stored = self._touched(delta)
        old = stored.select(
            *restored(self.query, self.delta.over, types),
            F.lit(0).cast("bigint").alias(EVENTS),
            F.lit(False).alias(GONE),
            key_of(stored, self.node.model.granularity).alias(OLD),
        )
        everything = delta.unionByName(old, allowMissingColumns=True)
        by_start = Window.partitionBy(USER).orderBy(START)
        reached = F.max(END).over(by_start.rowsBetween(Window.unboundedPreceding, -1))
        numbered = everything.withColumn(
            "__b", F.when(F.col(START) - reached <= self.query.gap, 0).otherwise(1)
        ).withColumn(
            "__i",
            F.sum("__b").over(by_start.rowsBetween(Window.unboundedPreceding, 0)),
        )
        again = F.bool_or(GONE) if self.over.mergeable else F.lit(True)
        for pick in self.over.picks if self.over.mergeable else ():
            again = again | _ambiguous(pick)
        grouped = numbered.groupBy(USER, "__i").agg(
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            F.collect_list(OLD).alias(OLD),
            again.alias(AGAIN),
            *(F.expr(str(part.merge)).alias(part.name) for part in parts),
        )
        return grouped.drop("__i")

    def _touched(self, delta: DataFrame) -> DataFrame:
        """The stored sessions within a gap of an island of the delta."""
        table = self.work.tables.read(self.step.model)
        cells = Ranges.of(state.cell for state in self.candidates)
        near = delta.select(
            F.col(USER).alias("__of"),
            (F.col(START) - self.query.gap).alias("__lo"),
            (F.col(END) + self.query.gap).alias("__hi"),
        )
        return table.where(in_time(table, FIRST, cells)).join(
            self._sent(near),
            (column(self.query.user) == F.col("__of"))
            & (micros(column(FIRST)) <= F.col("__hi"))
            & (micros(column(LAST)) >= F.col("__lo")),
            "left_semi",
        )

    def _sent(self, frame: DataFrame) -> DataFrame:
        return F.broadcast(frame) if self.small else frame

    # -- new rows

    def _merged(self, components: DataFrame) -> DataFrame:
        """Components whose merged parts are their one session, as ``totals`` wants them."""
        return self._keyed(components, (OLD, EVENTS)).select(
            OLD, F.array(F.struct(KEY, ROW)).alias(NEW), (F.col(EVENTS) + F.size(OLD)).alias(EVENTS)
        )

    def _read_again(self, components: DataFrame, hulls: Ranges) -> DataFrame:
        """Components whose sessions are made anew from all events between their ends."""
        query = self.query
        self.scanned += sum(
            state.rows for state in self.work.cells(self.input) if hulls.overlaps(state.cell)
        )
        near = components.select(
            F.col(USER).alias("__of"), F.col(START).alias(HULL), F.col(END).alias("__hi")
        )
        there = self.now.where(in_time(self.now, query.time_column, hulls))
        events = prepared(self.view(there), query, self.over).join(
            self._sent(near),
            (F.col(USER) == F.col("__of"))
            & (F.col(TIME) >= F.col(HULL))
            & (F.col(TIME) <= F.col("__hi")),
        )
        found = islands(events, query.gap, self.over, (USER, HULL))
        new = (
            self._keyed(found, (USER, HULL, EVENTS))
            .groupBy(F.col(USER).alias("__of"), HULL)
            .agg(F.collect_list(F.struct(KEY, ROW)).alias(NEW), F.sum(EVENTS).alias("__read"))
        )
        # A component all of whose events are gone has no new rows: it must not get lost here.
        pairs = (F.col(USER) == F.col("__of")) & (F.col(START) == F.col(HULL))
        nothing = F.array().cast(new.schema[NEW].dataType)
        return components.join(new, pairs, "left").select(
            OLD,
            F.coalesce(NEW, nothing).alias(NEW),
            (F.col(EVENTS) + F.coalesce("__read", F.lit(0))).alias(EVENTS),
        )

    def _keyed(self, found: DataFrame, keep: Sequence[str]) -> DataFrame:
        """Islands as rows of the table, each a struct beside its key."""
        made = rows(found, self.query, self.over, self.time, self.step.version, keep)
        own = made.drop(*keep)
        key = key_of(own, self.node.model.granularity)
        return made.select(key.alias(KEY), F.struct(*map(column, own.columns)).alias(ROW), *keep)

    # -- the commit

    def _commit(self, changed: DataFrame | None, found: Totals, announce: Prepared) -> Outcome:
        work, step, granularity = self.work, self.step, self.node.model.granularity
        assert step.trace is not None, "a planned step says what will hold"
        changes = found.changes(work.cells(step.model), granularity)
        outcome = Outcome(
            model=step.model,
            version=step.version,
            trace=step.trace,
            changes=changes,
            committed=bool(changes),
            receipt=self._receipt(found, changes),
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
                within=in_time(table, FIRST, losing),
                stamp=work.stamp(step),
            )
        else:
            snapshot = work.tables.append(step.model, inserted(changed), work.stamp(step))
        return replace(outcome, snapshot=snapshot)

    def _receipt(self, found: Totals, changes: Sequence[CellChange]) -> Receipt:
        counts, nobody = found.counts, found.counts["nobody"]
        return Receipt(
            read=counts["read"],
            scanned=self.scanned,
            written=sum(change.added for change in changes),
            removed=sum(change.removed for change in changes),
            set_aside=nobody,
            set_aside_by=((NULL_USER, nobody),) if nobody else (),
            cells_built=len(changes),
            cells_cut_off=sum(not change.real for change in changes),
            sessions_new=counts["new"],
            sessions_extended=counts["extended"],
            sessions_merged=counts["merged"],
            sessions_split=counts["split"],
            sessions_removed=counts["removed"],
            commits=1 if changes else 0,
        )


def _reaching(cells: Sequence[CellState], ranges: Ranges) -> list[CellState]:
    """The cells that can hold a session which reaches into ``ranges``."""
    found = []
    for state in cells:
        last = state.cell.end if state.last is None else max(state.last + 1, state.cell.end)
        if ranges.overlaps(Interval(state.cell.start, last)):
            found.append(state)
    return found


def _ambiguous(pick: Pick) -> Column:
    """
    Whether a stored and a new event tie for first or last, with different values.

    The state knows the time of the event and not its key, so such a component is read again.
    """
    end, by = ("max", "max_by") if pick.last else ("min", "min_by")
    old, new = f"FILTER (WHERE {OLD} IS NOT NULL)", f"FILTER (WHERE {OLD} IS NULL)"
    at, value = pick.at, pick.value
    return F.expr(
        f"coalesce({end}({at}) {old} = {end}({at}) {new}, false) AND NOT"
        f" ({by}({value}, {at}) {old} <=> {by}({value}, {at}) {new})"
    )
