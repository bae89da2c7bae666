"""
Components: what a change of events can alter, and nothing more.

Per user, everything connected by pauses no longer than the gap: islands of what arrived, the
stored sessions that they touch, and the events that are gone. No event outside a component can
belong to one of its sessions. Where sessions end inside of islands, a component begins with the
last stored session that began before the first change and goes on to the island's end: a change
may move all later ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.interval import EVER, MAX, Interval, Ranges
from infold.core.plan import Step
from infold.core.project import Node, SessionsQuery
from infold.core.session_columns import FIRST, LAST
from infold.core.session_rules import Keep
from infold.core.trace import CellState
from infold.spark.content import column, micros, time_predicate, type_of
from infold.spark.inputs.feed import Feed
from infold.spark.sessions import quarantine
from infold.spark.sessions.aggregate_state import FirstOrLast
from infold.spark.sessions.cuts import CARRIED, IN_FORCE, NAMED
from infold.spark.sessions.delta import GONE, InputDelta, merges
from infold.spark.sessions.islands import (
    END,
    EVENTS,
    START,
    USER,
    apart,
    compiled,
    reach,
)
from infold.spark.sessions.manual_entries import ASKED
from infold.spark.sessions.stored import of, restored
from infold.spark.sessions.totals import (
    OLD,
    key_of,
)
from infold.spark.step_context import Work

SMALL = 400_000
"""Up to this many changed rows, the delta is sent to every task rather than shuffled."""

HULL = "__hull"
AGAIN = "__again"


class Components:
    """The components of one step, and what was read to find them."""

    def __init__(self, work: Work, node: Node, step: Step) -> None:
        self.work, self.node, self.step = work, node, step
        self.query = query = query_of(work, step)
        self.feed = feed = Feed(work, node, step, query.input)
        self.time = type_of(feed.now, query.time_column)
        self.over = compiled(feed.now, query)
        self.delta = InputDelta(query, self.over, feed)
        self.small = feed.rows <= SMALL
        self.merges = merges(query, self.over)
        self.may_quarantine = query.may_quarantine
        applied = step.previous_trace.applied_entry if step.previous_trace else 0
        self.asked = [entry for entry in query.entries if entry.number > applied]
        near = feed.times.widen(reach(query), reach(query))
        near |= Ranges.of(
            EVER
            if entry.start is None or entry.end is None
            else Interval(entry.start, entry.end + 1)
            for entry in self.asked
        )
        if (
            query.cuts_within_islands and near.span
        ):  # where a session ends may change all that follow it
            near = Ranges((Interval(near.span.start, MAX),))
        entries = work.ledger.quarantined(step.model) if self.may_quarantine else ()
        self.entries = [e for e in entries if near.overlaps(Interval(e.start, e.end + 1))]
        # What stays of a session in quarantine may lie far from where that goes on.
        heads = Ranges.of(Interval(e.start, e.start + 1) for e in self.entries)
        self.candidates = _reaching(work.cells(step.model), near | heads)
        self.scanned = feed.rows_to_scan
        self.scanned += sum(state.rows for state in self.candidates)

    def find(self) -> DataFrame:
        """One row for each component: its span, merged state, stored keys, and ``AGAIN``."""
        return self._components(self._delta().localCheckpoint()).localCheckpoint()

    def _delta(self) -> DataFrame:
        """Islands of what changed, and the spans of sessions that somebody spoke of."""
        found = self.delta.islands()
        if not self.asked:
            return found
        cells = Ranges.of(state.cell for state in self.candidates)
        table = self.work.tables.read(self.step.model)
        spans = quarantine.concerned(
            table.where(time_predicate(table, FIRST, cells)),
            self.query,
            self.asked,
            self.entries,
            found.schema[USER].dataType,
        )
        asked = spans.withColumns(
            {EVENTS: F.lit(0).cast("bigint"), GONE: F.lit(True), ASKED: F.lit(True)}
        )
        return found.unionByName(asked, allowMissingColumns=True)

    def _components(self, delta: DataFrame) -> DataFrame:
        """One row for each component, with its merged parts and the keys of its stored sessions."""
        query = self.query
        stored = self._touched(delta)
        old = stored.select(
            *restored(query, self.delta.over, delta.schema),
            F.lit(0).cast("bigint").alias(EVENTS),
            F.lit(False).alias(GONE),
            key_of(stored, self.node.model.granularity).alias(OLD),
        )
        everything = delta.unionByName(old, allowMissingColumns=True)
        if self.may_quarantine:
            everything = quarantine.with_entries(everything, self.entries)
        by_start = Window.partitionBy(USER).orderBy(START)
        reached = F.max(END).over(by_start.rowsBetween(Window.unboundedPreceding, -1))
        begins = F.when(reached.isNull() | apart(query, reached, F.col(START)), 1).otherwise(0)
        numbered = everything.withColumn("__b", begins).withColumn(
            "__i", F.sum("__b").over(by_start.rowsBetween(Window.unboundedPreceding, 0))
        )
        if query.cuts_within_islands or self.may_quarantine:
            numbered = self._from_change(numbered)
        grouped = numbered.groupBy(USER, "__i").agg(
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            F.collect_list(OLD).alias(OLD),
            self._unclear().alias(AGAIN),
            *([self._carried()] if query.cuts.campaign else []),
            *(self._entries() if self.may_quarantine else []),
            *(F.expr(str(part.merge)).alias(part.name) for part in self.delta.over.parts),
        )
        if query.max_length is not None:
            longer = F.col(END) - F.col(START) > query.max_length
            grouped = grouped.withColumn(AGAIN, F.col(AGAIN) | longer)
        if self.may_quarantine:
            one = ~F.col(GONE)
            if query.cuts.campaign or query.cuts.start:
                one = one & quarantine.uncut(query)
            if query.max_length is not None:
                one = one & (F.col(END) - F.col(START) <= query.max_length)
            grouped = quarantine.judged(
                grouped,
                query,
                one=one,
                again=F.col(AGAIN),
                tied=F.col("__tied"),
                changed=F.col("__changed"),
            ).drop("__changed", "__tied", GONE, IN_FORCE)
        return grouped.drop("__i")

    def _carried(self) -> Column:
        """The campaign before a component, as what was stored says it of the first instant."""
        first = F.struct(START, ~F.expr(self._known))
        return F.min_by(CARRIED, first).alias(CARRIED)

    def _entries(self) -> list[Column]:
        """What a component gathers of the entries in it, and of what may be one."""
        tied = [_ambiguous(p, self._known) for p in self.delta.over.picks if p.value == NAMED]
        in_force = [F.max(IN_FORCE).alias(IN_FORCE)] if self.query.cuts.campaign else []
        return [
            *in_force,
            F.collect_list(quarantine.ENTRY).alias(quarantine.FREED),
            F.min("__changed").alias("__changed"),
            F.bool_or(self._gone).alias(GONE),
            (tied[0] if tied else F.lit(False)).alias("__tied"),
        ]

    @property
    def _gone(self) -> Column:
        """Whether something is of events that are no longer there."""
        if not self.asked:
            return F.col(GONE)
        return F.col(GONE) & ~F.coalesce(ASKED, F.lit(False))

    @property
    def _known(self) -> str:
        """SQL: whether something that takes part was there before."""
        entry = f" OR {quarantine.ENTRY} IS NOT NULL" if self.may_quarantine else ""
        return f"({OLD} IS NOT NULL{entry})"

    def _from_change(self, numbered: DataFrame) -> DataFrame:
        """
        Components with something new in them, from the first change on.

        What lies before a change cannot depend on it, so an island is looked at from the last of
        its sessions that began before the first change.
        """
        component = Window.partitionBy(USER, "__i")
        known = F.expr(self._known)
        changed = F.min(F.when(~known, F.col(START))).over(component)
        found = numbered.withColumn("__changed", changed).where(F.col("__changed").isNotNull())
        if not self.query.cuts_within_islands:
            return found
        before = F.when(known & (F.col(START) < F.col("__changed")), F.col(START))
        return found.withColumn("__anchor", F.max(before).over(component)).where(
            F.col(START) >= F.coalesce("__anchor", START)
        )

    def _unclear(self) -> Column:
        """Whether a component's session does not follow from its merged parts alone."""
        if not self.merges:
            return F.lit(True)
        found = F.bool_or(GONE)
        for pick in self.over.picks:
            found = found | _ambiguous(pick, self._known)
        return found

    def _touched(self, delta: DataFrame) -> DataFrame:
        """
        The stored sessions within a gap of an island of the delta.

        Where sessions end inside of islands, all later ones of the same user or identifier too.
        """
        table, query = self.work.tables.read(self.step.model), self.query
        cells = Ranges.of(state.cell for state in self.candidates)
        if query.keep is Keep.HEAD:
            delta = quarantine.beside(delta, self.entries)
        if query.cuts_within_islands:
            near = delta.groupBy(F.col(USER).alias("__of")).agg(F.min(START).alias(START))
            test = micros(column(LAST)) >= F.col("__lo")
        else:
            near = delta.select(F.col(USER).alias("__of"), START, END)
            test = (micros(column(LAST)) >= F.col("__lo")) & (
                micros(column(FIRST)) <= F.col(END) + reach(query)
            )
        near = near.withColumn("__lo", F.col(START) - reach(query)).drop(START)
        return table.where(time_predicate(table, FIRST, cells)).join(
            self.sent(near), (of(query) == F.col("__of")) & test, "left_semi"
        )

    def sent(self, frame: DataFrame) -> DataFrame:
        """A frame that goes to every task, if it is small."""
        return F.broadcast(frame) if self.small else frame


def query_of(work: Work, step: Step) -> SessionsQuery:
    """The compiled query of a step's model, with the manual entries that the step applies."""
    query = work.project[step.model].query
    assert query is not None, "a sessions model has a compiled query"
    newest = step.trace.applied_entry if step.trace else 0
    if not newest:
        return query
    applied = (entry for entry in work.ledger.entries(step.model) if entry.number <= newest)
    return replace(query, entries=tuple(applied))


def _reaching(cells: Sequence[CellState], ranges: Ranges) -> list[CellState]:
    """The cells that can hold a session which reaches into ``ranges``."""
    found = []
    for state in cells:
        last = state.cell.end if state.last is None else max(state.last + 1, state.cell.end)
        if ranges.overlaps(Interval(state.cell.start, last)):
            found.append(state)
    return found


def _ambiguous(pick: FirstOrLast, known: str) -> Column:
    """
    Whether a stored and a new event tie for first or last, with different values.

    The state knows the time of the event and not its key, so such a component is read again.
    """
    end, by = ("max", "max_by") if pick.last else ("min", "min_by")
    old, new = f"FILTER (WHERE {known})", f"FILTER (WHERE NOT {known})"
    at, value = pick.at, pick.value
    return F.expr(
        f"coalesce({end}({at}) {old} = {end}({at}) {new}, false) AND NOT"
        f" ({by}({value}, {at}) {old} <=> {by}({value}, {at}) {new})"
    )
