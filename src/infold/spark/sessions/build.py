"""
Sessions: the first build, and the choice between building and folding.

What islands are is in ``islands``, where sessions end inside of them in ``cuts``, what a row of
the table is in ``stored``, and how changed events are folded in is in ``fold``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Granularity
from infold.core.model import Kind
from infold.core.plan import Action, Step
from infold.core.ports import Prepared
from infold.core.project import Node, SessionsQuery
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.session_columns import FIRST, LAST
from infold.core.session_rules import Keep
from infold.core.trace import CellState, changes_of_rewrite
from infold.spark.content import cell_of, cell_stats, content, micros, type_of
from infold.spark.inputs.feed import Feed, foldable
from infold.spark.sessions import quarantine, unassigned
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.components import query_of
from infold.spark.sessions.cuts import COUNT, sessions_of
from infold.spark.sessions.delta import merges
from infold.spark.sessions.fold import fold
from infold.spark.sessions.islands import END, START, compiled, prepared, reach, spans, within_spans
from infold.spark.sessions.micro_islands import VALUES, Told, quick_islands, untold
from infold.spark.sessions.rebuilt_counts import became
from infold.spark.sessions.session_numbers import numbered
from infold.spark.sessions.stored import rows, stored_part
from infold.spark.sessions.stretches import borders, cut
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout

LARGE = 300_000
"""From so many events on, looking at them beforehand pays."""

TOLD = 100_000_000
"""Up to so many events one process reads a column's values sooner than Spark does."""

CUT = 200_000
"""The most islands whose events are read again to cut them; with more, all events are."""


def carry_out(work: Work, step: Step, announce: Prepared) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    if step.action is Action.FOLD and foldable(work, node, step):
        return fold(work, node, step, announce)
    return _build(work, node, step)


def build(
    events: DataFrame,
    query: SessionsQuery,
    version: int = 1,
    size: int = 0,
    told: Told = untold,
    at: Sequence[int] = (),
) -> DataFrame:
    """
    All sessions of all events, as the table stores them.

    ``size`` is about how many events there are; it, what is ``told``, and the borders ``at`` which
    events are cut by time decide about speed alone.
    """
    over = compiled(events, query)
    found = _found(events, query, over, size, told, at)
    return _rows(found, events, query, over, version)


def _rows(
    found: DataFrame,
    events: DataFrame,
    query: SessionsQuery,
    over: CompiledAggregates,
    version: int,
) -> DataFrame:
    if query.may_quarantine:
        found = found.where(~F.col(quarantine.OUT))
    made = rows(found, query, over, type_of(events, query.time_column), version)
    return numbered(made, query) if query.numbered else made


def _found(
    events: DataFrame,
    query: SessionsQuery,
    over: CompiledAggregates,
    size: int,
    told: Told,
    at: Sequence[int],
) -> DataFrame:
    """The sessions of events; most of a large table's are islands as they stand."""
    ready = prepared(events, query, over)
    if size < LARGE or not merges(query, over):
        return _made(ready, query, over)
    found = quick_islands(ready, query, over, told, cut(events, query, over, at))
    if query.may_quarantine:
        found = quarantine.entered(quarantine.whole(found), query)
    longest = _as_they_stand(query)
    if longest is None:
        return found
    found = found.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)  # looked at three times
    longer = F.col(END) - F.col(START) > longest
    to_cut = found.where(longer)
    number = to_cut.count()
    if number > CUT:
        return _made(ready, query, over)
    if number == 0:
        return found
    again = within_spans(ready, F.broadcast(spans(to_cut)))
    return found.where(~longer).unionByName(_made(again, query, over))


def _made(events: DataFrame, query: SessionsQuery, over: CompiledAggregates) -> DataFrame:
    """Sessions made from their events, with their entries where there is a quarantine."""
    found = sessions_of(events, query, over)
    return quarantine.entered(found, query) if query.may_quarantine else found


def _as_they_stand(query: SessionsQuery) -> int | None:
    """Up to which length an island is a session of the table as it stands; None: any length."""
    lengths = [query.max_length]
    if query.keep is Keep.HEAD:
        lengths.append(query.quarantine_after)
    return min((length for length in lengths if length is not None), default=None)


def _build(work: Work, node: Node, step: Step) -> Outcome:
    """Everything anew, in one commit; what it holds is read back from the commit."""
    query = query_of(work, step)
    assert step.trace is not None, "a planned step says what will hold"
    feed = Feed(work, node, step, query.input)
    events, cells = feed.now, feed.cells
    read = sum(state.rows for state in cells)
    over = compiled(events, query)
    told, at = _told(work, node, step, read), _borders(work, node, query, cells)
    found = _found(events, query, over, read, told, at)
    held: tuple[QuarantinedSession, ...] = ()
    known = {one.key for one in work.ledger.quarantined(step.model)}
    if query.may_quarantine:  # looked at twice: for the ledger, for the table
        found = found.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        held = quarantine.all_held(found)
    snapshot = work.tables.create(
        step.model,
        _rows(found, events, query, over, step.version),
        Layout(FIRST, Granularity.MONTH),
        work.stamp(step),
    )
    table = work.tables.read(step.model, snapshot)
    states, counted = _states(table, node, over)
    changes = changes_of_rewrite(work.cells(step.model), states.values())
    left_out = _left_out(work, node, step, events, query, read - counted)
    receipt = Receipt(
        read=read,
        scanned=read,
        written=sum(change.added for change in changes),
        removed=sum(change.removed for change in changes),
        **unassigned.said(query, left_out),
        before_start=unassigned.before(events, query),
        cells_built=len(changes),
        cells_cut_off=sum(not change.changes_rows for change in changes),
        sessions_quarantined=len({one.key for one in held} - known),
        commits=1,
    )
    return Outcome(
        model=step.model,
        version=step.version,
        trace=step.trace,
        changes=changes,
        whole=True,
        snapshot=snapshot,
        receipt=became(work, step, table, receipt),
        quarantined=held,
        left_out=left_out.total(),
    )


def _left_out(
    work: Work, node: Node, step: Step, events: DataFrame, query: SessionsQuery, elsewhere: int
) -> Counter[str]:
    """
    How many events are in no session, by the other models that leave them out.

    ``elsewhere`` are those in no session of the table: nobody's, where nothing else keeps them out.
    """
    also = unassigned.others(work, step)
    whole = query.where is None and not query.may_quarantine and _all_of_them(work, node)
    if whole and (also is None or not elsewhere):
        return Counter({"": elsewhere})
    return unassigned.counted(events, query, also)


def _all_of_them(work: Work, node: Node) -> bool:
    """Whether what the query ranges over is a table of events, all of which have a time."""
    query = node.query
    return query is not None and work.project[query.input].model.kind is Kind.EVENTS


def _borders(
    work: Work, node: Node, query: SessionsQuery, cells: Iterable[CellState]
) -> tuple[int, ...]:
    """Where to cut the input, by the partitions that it is stored in, where that pays."""
    name = node.inputs[0].name
    if query.input != name or not _all_of_them(work, node):
        return ()  # through a view, or of a table that may be anybody's
    layout = work.tables.layout(name)
    if layout.column != query.time_column:
        return ()
    tasks = work.spark.sparkContext.defaultParallelism
    return borders(cells, layout.partition, reach(query), tasks)


def _told(work: Work, node: Node, step: Step, size: int) -> Told:
    """The values of columns that the input stores, read from its files by this process alone."""
    name = node.inputs[0].name
    snapshot = work.snapshot(name, step.inputs[name][1])
    if size > TOLD or snapshot is None or not _all_of_them(work, node):
        return untold

    def told(sql: str) -> pa.Array | None:
        column = re.fullmatch(r"\(`?(\w+)`?\)", sql)
        return column and work.tables.values(name, column[1], snapshot, VALUES)

    return told


def _states(
    table: DataFrame, node: Node, over: CompiledAggregates
) -> tuple[dict[int, CellState], int]:
    """How the cells of a table stand, and how many events its sessions have."""
    granularity = node.model.granularity
    [events] = [part for part in over.parts if part.name == COUNT]
    stats = cell_stats(
        table, F.col(FIRST), granularity, last=micros(F.col(LAST)), total=stored_part(events)
    )
    found, counted = {}, 0
    for row in stats.collect():
        cell = cell_of(row["cell"], granularity)
        found[cell.start] = CellState(cell, row["rows"], content(row["hi"], row["lo"]), row["last"])
        counted += row["total"]
    return found, counted
