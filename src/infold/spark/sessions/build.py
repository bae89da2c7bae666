"""
Sessions: the first build, and the choice between building and folding.

Islands are made in ``islands`` (of a large table in ``micro_islands``), sessions of them in
``divide``, rows of the table in ``stored``. Changed events are folded in by ``fold``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Granularity
from infold.core.model import Kind
from infold.core.own_columns import FIRST, ID, LAST
from infold.core.plan import Action, Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.sessions import Keep
from infold.core.trace import CellChange, CellState, changes_of_rewrite
from infold.spark.content import micros, type_of
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.inputs.feed import Feed, foldable
from infold.spark.session_facts import parallelism
from infold.spark.sessions import quarantine, unassigned
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.components import query_of
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.base import longest_silence
from infold.spark.sessions.divide import sessions_of
from infold.spark.sessions.fold import SessionsFold
from infold.spark.sessions.fold_changes import can_merge
from infold.spark.sessions.frames import END, EVENT_COUNT, ISLANDS, START
from infold.spark.sessions.islands import (
    compiled_aggregates,
    events_within,
    prepared_events,
    spans_of,
)
from infold.spark.sessions.micro_islands import (
    MOST_VALUES,
    ColumnValues,
    no_column_values,
    quick_islands,
    slice_borders,
    sliced_events,
)
from infold.spark.sessions.stored import (
    TABLE_ROWS,
    states_of_sessions,
    stored_part,
    table_rows,
    with_session_numbers,
)
from infold.spark.step_commit import Computed, WholeTable, commit_step
from infold.spark.step_context import Work
from infold.spark.tables.port import Layout

BY_MONTH = Layout(FIRST, Granularity.MONTH)
"""How every table of sessions lies on disk."""

QUICK_BUILD_EVENTS = 300_000
"""From so many events on, looking at them beforehand pays."""

MOST_EVENTS_READ_HERE = 100_000_000
"""Up to so many events one process reads a column's values sooner than Spark does."""

MOST_DIVIDED_ISLANDS = 200_000
"""Up to so many islands are divided by reading their events again; with more, all are read."""


def carry_out(work: Work, step: Step) -> Outcome:
    """Build the table, or fold in what changed of its input since the step's trace."""
    node = work.project[step.model]
    if step.action is Action.FOLD and foldable(work, node, step):
        return SessionsFold(work, node, step).carry_out()
    return _build_table(work, node, step)


def build(
    events: DataFrame,
    query: SessionsQuery,
    version: int = 1,
    size: int = 0,
    values: ColumnValues = no_column_values,
    borders: Sequence[int] = (),
) -> DataFrame:
    """
    All sessions of all events, as the table stores them.

    ``size`` is about how many events there are. It, the ``values`` of stored columns, and the
    ``borders`` of time slices decide about speed alone.
    """
    compiled = compiled_aggregates(events, query)
    sessions = all_sessions(events, query, compiled, size, values, borders)
    return rows_of_table(sessions, events, query, compiled, version)


@returns(TABLE_ROWS)
def rows_of_table(
    sessions: DataFrame,
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    version: int,
) -> DataFrame:
    """Sessions as the table stores them, without those in quarantine."""
    if query.may_quarantine:
        sessions = sessions.where(~F.col(quarantine.LEAVES_TABLE))
    stored_rows = table_rows(sessions, query, compiled, type_of(events, query.time_column), version)
    return with_session_numbers(stored_rows, query) if query.numbered else stored_rows


@returns(ISLANDS)
def all_sessions(
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    size: int = 0,
    values: ColumnValues = no_column_values,
    borders: Sequence[int] = (),
) -> DataFrame:
    """The sessions of events; most of a large table's are whole islands."""
    prepared = prepared_events(events, query, compiled)
    if size < QUICK_BUILD_EVENTS or not can_merge(query, compiled):
        return _sessions_from(prepared, query, compiled)
    slices = sliced_events(events, query, compiled, borders)
    islands = quick_islands(prepared, query, compiled, values, slices)
    if query.may_quarantine:
        islands = quarantine.with_new_entries(quarantine.with_whole_columns(islands), query)
    divided = _may_be_divided(query)
    if divided is None:
        return islands
    islands = islands.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)  # looked at three times
    to_divide = islands.where(divided)
    count = to_divide.count()
    if count > MOST_DIVIDED_ISLANDS:
        return _sessions_from(prepared, query, compiled)
    if count == 0:
        return islands
    # At most ``MOST_DIVIDED_ISLANDS`` rows.
    events_to_divide = events_within(prepared, F.broadcast(spans_of(to_divide)))
    return islands.where(~divided).unionByName(_sessions_from(events_to_divide, query, compiled))


@returns(ISLANDS)
def _sessions_from(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates
) -> DataFrame:
    """Sessions made from prepared events, with their entries where there is a quarantine."""
    sessions = sessions_of(events, query, compiled)
    return quarantine.with_new_entries(sessions, query) if query.may_quarantine else sessions


def _may_be_divided(query: SessionsQuery) -> Column | None:
    """Whether an island may be other than a session of the table; None: each island is one."""
    divisions = [cut.may_divide() for cut in cuts_of(query).inner]
    if query.keep is Keep.HEAD and query.quarantine_after is not None:
        divisions.append(F.col(END) - F.col(START) > query.quarantine_after)
    conditions = [division for division in divisions if division is not None]
    return reduce(Column.__or__, conditions) if conditions else None


def _build_table(work: Work, node: Node, step: Step) -> Outcome:
    """Build the whole table in one commit; what was written is read back from the commit."""
    query = query_of(work, step)
    feed = Feed(work, node, step, query.input)
    events, cells = feed.current, feed.cells
    read = sum(state.rows for state in cells)
    compiled = compiled_aggregates(events, query)
    values, borders = _column_values(work, node, step, read), _borders(work, node, query, cells)
    sessions = all_sessions(events, query, compiled, read, values, borders)
    entries: tuple[QuarantinedSession, ...] = ()
    entries_before = {entry.key for entry in work.ledger.quarantined(step.model)}
    if query.may_quarantine:  # looked at twice: for the ledger, for the table
        sessions = sessions.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        entries = quarantine.all_entries(sessions)

    def count(snapshot: int) -> Computed:
        table = work.tables.read(step.model, snapshot)
        [events_of] = (stored_part(part) for part in compiled.parts if part.name == EVENT_COUNT)
        states = states_of_sessions(table, node.model.granularity, events_of)
        changes = changes_of_rewrite(work.cells(step.model), states)
        left_out = _left_out(work, node, step, events, query, read - sum(states.values()))
        receipt = Receipt(
            read=read,
            scanned=read,
            **unassigned.receipt_counts(query, left_out),
            before_start=unassigned.count_before_start(events, query),
            sessions_quarantined=len({entry.key for entry in entries} - entries_before),
        )
        receipt = with_session_counts(work, step, table, changes, receipt)
        return Computed(changes, receipt, quarantined=entries, left_out=left_out.total())

    rows = rows_of_table(sessions, events, query, compiled, step.version)
    return commit_step(work, step, WholeTable(rows, BY_MONTH), count=count)


def _left_out(
    work: Work, node: Node, step: Step, events: DataFrame, query: SessionsQuery, elsewhere: int
) -> Counter[str]:
    """
    How many events are in no session, by the other models that leave them out.

    ``elsewhere`` are those in no session of the table. They have no owner, where nothing else keeps
    them out.
    """
    names = unassigned.names_of_others(work, step)
    all_owned = query.where is None and not query.may_quarantine and _reads_events_table(work, node)
    if all_owned and (names is None or not elsewhere):
        return Counter({"": elsewhere})
    return unassigned.count_by_others(events, query, names)


def _reads_events_table(work: Work, node: Node) -> bool:
    """Whether the query reads a table of events: there every row has a time."""
    query = node.query
    return query is not None and work.project[query.input].model.kind is Kind.EVENTS


def _borders(
    work: Work, node: Node, query: SessionsQuery, cells: Iterable[CellState]
) -> tuple[int, ...]:
    """Where the input's time slices begin, by the partitions that it is stored in, if any pay."""
    name = node.inputs[0].name
    if query.input != name or not _reads_events_table(work, node):
        return ()  # through a view, or of a table that another program may write
    layout = work.tables.layout(name)
    if layout.column != query.time_column:
        return ()
    tasks = parallelism(work.spark)
    return slice_borders(cells, layout.partition, longest_silence(query), tasks)


def _column_values(work: Work, node: Node, step: Step, size: int) -> ColumnValues:
    """The values of columns that the input stores, read from its files by this process alone."""
    name = node.inputs[0].name
    snapshot = work.snapshot(name, step.inputs[name][1])
    if size > MOST_EVENTS_READ_HERE or snapshot is None or not _reads_events_table(work, node):
        return no_column_values

    def values(sql: str) -> pa.Array | None:
        column = re.fullmatch(r"\(`?(\w+)`?\)", sql)
        return column and work.tables.values(name, column[1], snapshot, MOST_VALUES)

    return values


# A rebuild writes every row and removes every old one, and still most sessions are those that were
# there before. The numbers of new and removed ones differ by the rows that the table gained or
# lost.

_ID, _LAST, _OLD = "id", "last", "old"

SESSION_ENDS = FrameSchema(
    "a session of the table before or after the rebuild",
    (
        FrameColumn(_ID, "string", "its id"),
        FrameColumn(_LAST, "bigint", "its last instant"),
        FrameColumn(_OLD, "int", "1 before the rebuild, 0 after it"),
    ),
)


def with_session_counts(
    work: Work, step: Step, current: DataFrame, changes: Sequence[CellChange], receipt: Receipt
) -> Receipt:
    """The receipt of a rebuild, with the sessions new, extended or removed."""
    added = sum(change.added for change in changes)
    removed = sum(change.removed for change in changes)
    all_new = replace(receipt, sessions_new=added, sessions_removed=removed)
    head = work.ledger.newest_versions().get(step.model)
    if head is None or head.snapshot is None or not removed:
        return all_new
    try:
        return _with_session_changes(work.tables.read(step.model, head.snapshot), current, receipt)
    except Exception:  # noqa: BLE001 (the old table may be damaged, expired, or no sessions)
        return all_new


def _with_session_changes(before: DataFrame, current: DataFrame, receipt: Receipt) -> Receipt:
    """The receipt, with what changed between two states of a table."""
    both = _session_ends(before, old=1).unionByName(_session_ends(current, old=0))
    ends = [F.max(F.when(F.col(_OLD) == old, F.col(_LAST))) for old in (0, 1)]
    by_id = both.groupBy(_ID).agg(
        F.sum(1 - 2 * F.col(_OLD)).alias("more"), (ends[0] != ends[1]).alias("extended")
    )
    # One row.
    [(new, removed, extended)] = by_id.agg(
        F.sum(F.greatest("more", F.lit(0))),
        F.sum(F.greatest(-F.col("more"), F.lit(0))),
        F.count_if("extended"),
    ).collect()
    return replace(
        receipt,
        sessions_new=new or 0,
        sessions_removed=removed or 0,
        sessions_extended=extended or 0,
    )


@returns(SESSION_ENDS)
def _session_ends(table: DataFrame, *, old: int) -> DataFrame:
    """The ids of sessions, and when they end."""
    return table.select(
        F.col(ID).alias(_ID), micros(F.col(LAST)).alias(_LAST), F.lit(old).alias(_OLD)
    )
