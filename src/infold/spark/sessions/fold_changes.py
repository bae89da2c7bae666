"""
The rows that a fold of sessions removes and adds, and what they add up to for the ledger.

A frame of changed components names the stored sessions of each component and its sessions as they
are now. From it come the rows of the commit, and by one more action their counts (:class:`Totals`).

A session is unchanged if its key is among the old ones of its component: a key contains hashes of
the row and of its state, so equal keys mean equal rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Granularity, Interval, Ranges
from infold.core.own_columns import FIRST, ID, LAST
from infold.core.queries import SessionsQuery
from infold.core.trace import CellChange, CellState, signed
from infold.spark import key_filter
from infold.spark.content import (
    cell_of,
    cell_start,
    content,
    micros,
    row_hash,
    state_hash,
)
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.frames import (
    END,
    EVENT_COUNT,
    EVENTS,
    ISLANDS,
    START,
    USER_AT,
    USER_VALUE,
)
from infold.spark.sessions.islands import islands_of, prepared_events

OLD, NEW = "__old", "__new"
"""Of a component: the keys of its stored sessions, and its sessions as they are now."""
KEY, ROW = "key", "row"
"""The fields of a session in ``NEW``."""

KEY_TYPE = "struct<id:string,first:…"
"""A key: ``id`` and ``first`` for the commit; ``cell``, ``last`` and two hashes for the totals."""

CHANGED_COMPONENTS = FrameSchema(
    "a component, or a session that gets another number",
    (
        FrameColumn(OLD, f"array<{KEY_TYPE}", "the keys of its stored sessions"),
        FrameColumn(NEW, f"array<struct<{KEY}:{KEY_TYPE}", "its sessions now; no row: it stays"),
        FrameColumn(EVENTS, ANY, "bigint or int: how many rows were looked at"),
    ),
    "the owner and entries, where there is a quarantine",
)

COUNT_LINES = FrameSchema(
    "a number to add up",
    (
        FrameColumn("what", "string", "cell, read again, removed id, or what is counted"),
        FrameColumn(
            "at", "bigint", "the start of the cell or of what is read again; the id's hash"
        ),
        FrameColumn("added", "boolean", "of a cell: whether rows are added or removed"),
        FrameColumn("n", "bigint", "how many"),
        FrameColumn("hi", "bigint", "of a cell: the sum of the upper halves of the rows' hashes"),
        FrameColumn("lo", "bigint", "of a cell: the sum of the lower halves"),
        FrameColumn("last", "bigint", "of a cell: its rows' last instant; or where reading ends"),
    ),
)

STORED_ROWS = FrameSchema(
    "a row to add to the table", (FrameColumn(ID, "string", "its id"),), "the table's columns"
)

STORED_KEYS = FrameSchema(
    "a row to remove from the table",
    (
        FrameColumn(ID, "string", "its id"),
        FrameColumn(FIRST, ANY, "its start, of the type that the table has"),
    ),
)

COUNTED = ("new", "extended", "merged", "split", "removed", "read")
"""What is counted of components: what became of their sessions, and the rows that were read."""

_CELL, _READ_AGAIN, _REMOVED_ID = "cell", "read again", "removed id"
"""Other lines: a touched cell, a day with events to be read again, the id of a row to remove."""


def key_of(rows: DataFrame, granularity: Granularity | None) -> Column:
    """The key of a stored row, of the type ``KEY_TYPE``."""
    return F.struct(
        F.col(ID).alias("id"),
        F.col(FIRST).alias("first"),
        cell_start(F.col(FIRST), granularity).alias("cell"),
        micros(F.col(LAST)).alias("last"),
        row_hash(rows.schema).alias("hash"),
        state_hash(rows.schema).alias("state"),
    )


@dataclass(frozen=True)
class Totals:
    """
    Sums over changed components.

    ``cells`` are rows, content and last instant by cell start and whether they were added or
    removed; ``to_read`` are the times of the events that have to be read again. ``removed_ids`` are
    hashes of the ids of the rows to remove, where they were asked for and are not too many.
    """

    cells: Mapping[tuple[int, bool], tuple[int, int, int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    to_read: Ranges = Ranges()
    removed_ids: tuple[int, ...] = ()

    def __add__(self, other: Totals) -> Totals:
        cells = dict(self.cells)
        for at, (rows, sum_, last) in other.cells.items():
            sums = cells.get(at, (0, 0, last))
            cells[at] = (sums[0] + rows, signed(sums[1] + sum_), max(sums[2], last))
        return Totals(
            cells,
            self.counts + other.counts,
            self.to_read | other.to_read,
            self.removed_ids + other.removed_ids,
        )

    def cell_changes(
        self, before: Iterable[CellState], granularity: Granularity | None
    ) -> tuple[CellChange, ...]:
        """The table's touched cells, before and after."""
        states = {state.cell.start: state for state in before}
        changes = []
        for start in sorted({start for start, _ in self.cells}):
            cell = cell_of(start, granularity)
            before_change = states.get(start, CellState(cell, 0, 0))
            added, plus, last = self.cells.get((start, True), (0, 0, None))
            removed, minus, _ = self.cells.get((start, False), (0, 0, None))
            last_instants = [at for at in (before_change.last, last) if at is not None]
            changes.append(
                CellChange(
                    cell=cell,
                    added=added,
                    removed=removed,
                    rows_before=before_change.rows,
                    rows_after=before_change.rows + added - removed,
                    content_before=before_change.content,
                    content_after=signed(before_change.content + plus - minus),
                    last=max(last_instants, default=None),
                )
            )
        return tuple(changes)

    @property
    def rows_removed(self) -> int:
        """How many rows are removed from the table."""
        return sum(rows for (_, added), (rows, _, _) in self.cells.items() if not added)

    @property
    def rows_changed(self) -> int:
        """How many rows are added to the table or removed from it."""
        return sum(rows for rows, _, _ in self.cells.values())

    def losing_cells(self, granularity: Granularity | None) -> Ranges:
        """The cells from which rows are removed."""
        return Ranges.of(cell_of(at, granularity) for at, added in self.cells if not added)


@returns(STORED_ROWS)
def rows_to_insert(changed: DataFrame) -> DataFrame:
    """The sessions of changed components that are not stored yet, as rows of the table."""
    added_sessions = F.filter(NEW, lambda new: ~F.array_contains(OLD, new[KEY]))
    return changed.select(F.explode(added_sessions).alias("n")).select(f"n.{ROW}.*")


@returns(STORED_KEYS)
def keys_to_delete(changed: DataFrame) -> DataFrame:
    """Id and start of the rows to remove."""
    removed = changed.select(F.explode(_removed_keys()).alias("o"))
    return removed.select(F.col("o.id").alias(ID), F.col("o.first").alias(FIRST))


def _new_keys() -> Column:
    return F.transform(NEW, lambda new: new[KEY])


def _removed_keys() -> Column:
    return F.array_except(OLD, _new_keys())


def collect_totals(
    changed: DataFrame | None,
    to_read: DataFrame | None = None,
    others: Iterable[DataFrame] = (),
    *,
    ids: bool = False,
) -> Totals:
    """
    Add up in one action.

    ``to_read`` are components to be read again: only their times are collected. ``others``
    are counts of what else there is (see :func:`count_lines`). ``ids`` asks for those of the rows
    to remove.
    """
    frames = [] if changed is None else [_cell_lines(changed), _component_lines(changed)]
    if changed is not None and ids:
        frames.append(_removed_ids(changed))
    if to_read is not None:
        frames.append(_days_to_read(to_read))
    frames += others
    cells: dict[tuple[int, bool], tuple[int, int, int]] = {}
    counts: Counter[str] = Counter()
    times_to_read = []
    # At most a few rows for each cell and day, and ``key_filter.MOST_KEYS`` numbers.
    lines = reduce(DataFrame.unionAll, frames).toArrow()
    is_id = pc.equal(lines["what"], _REMOVED_ID)
    removed = lines.filter(is_id)["at"].to_pylist()
    for row in lines.filter(pc.invert(is_id)).to_pylist():
        if row["what"] == _CELL:
            sum_ = content(row["hi"], row["lo"])
            cells[row["at"], row["added"]] = (row["n"], sum_, row["last"])
        elif row["what"] == _READ_AGAIN:
            times_to_read.append(Interval(row["at"], row["last"] + 1))
            counts["again"] += row["n"]
        elif row["n"]:
            counts[row["what"]] += row["n"]
    return Totals(cells, counts, Ranges.of(times_to_read), tuple(removed))


@returns(COUNT_LINES)
def count_lines(rows: DataFrame, what: Column) -> DataFrame:
    """How many rows there are, by what they are counted as."""
    counts = rows.groupBy(what.alias("what")).agg(F.count(F.lit(1)).alias("n"))
    return counts.select(*_count_line(F.col("what"), F.lit(0), False, F.col("n")))


def _count_line(
    what: str | Column,
    at: Column,
    added: bool | Column,
    n: Column,
    hi: Column | None = None,
    lo: Column | None = None,
    last: Column | None = None,
) -> list[Column]:
    zero = F.lit(0)
    values = {
        "what": what if isinstance(what, Column) else F.lit(what),
        "at": at.cast("bigint"),
        "added": added if isinstance(added, Column) else F.lit(added),
        "n": n.cast("bigint"),
        "hi": (zero if hi is None else hi).cast("bigint"),
        "lo": (zero if lo is None else lo).cast("bigint"),
        "last": (zero if last is None else last).cast("bigint"),
    }
    return [value.alias(name) for name, value in values.items()]


@returns(COUNT_LINES)
def _cell_lines(changed: DataFrame) -> DataFrame:
    """The rows that are added and removed, one line for each touched cell and either."""
    added = F.transform(
        F.filter(NEW, lambda new: ~F.array_contains(OLD, new[KEY])),
        lambda new: F.struct(new[KEY].alias("key"), F.lit(True).alias("added")),
    )
    removed = F.transform(
        _removed_keys(), lambda old: F.struct(old.alias("key"), F.lit(False).alias("added"))
    )
    rows = changed.select(F.explode(F.concat(added, removed)).alias("c"))
    grouped = rows.groupBy(F.col("c.key.cell").alias("cell"), F.col("c.added").alias("added")).agg(
        F.count(F.lit(1)).alias("n"),
        F.sum(F.shiftright("c.key.hash", 32)).alias("hi"),
        F.sum(F.col("c.key.hash").bitwiseAND(F.lit(0xFFFFFFFF))).alias("lo"),
        F.max("c.key.last").alias("last"),
    )
    return grouped.select(
        *_count_line(
            _CELL,
            F.col("cell"),
            F.col("added"),
            F.col("n"),
            F.col("hi"),
            F.col("lo"),
            F.col("last"),
        )
    )


@returns(COUNT_LINES)
def _removed_ids(changed: DataFrame) -> DataFrame:
    """A hash of the id of each row to remove; only some of them if they are too many to be used."""
    removed = changed.select(F.explode(_removed_keys()).alias("o")).limit(key_filter.MOST_KEYS)
    return removed.select(*_count_line(_REMOVED_ID, F.xxhash64("o.id"), False, F.lit(1)))


@returns(COUNT_LINES)
def _component_lines(changed: DataFrame) -> DataFrame:
    """What became of the components' sessions, one line for each thing that is counted."""
    old, new = F.size(OLD), F.size(NEW)
    added = F.size(F.array_except(_new_keys(), F.col(OLD)))
    fewer = F.greatest(old - new, F.lit(0))
    more = F.greatest(new - old, F.lit(0))
    zero = F.lit(0)
    values = {
        "new": F.when(old == 0, new).otherwise(zero),
        "extended": F.when((old > 0) & (new > 0) & (old == new), added).otherwise(zero),
        "merged": F.when(new > 0, fewer).otherwise(zero),
        "split": F.when(old > 0, more).otherwise(zero),
        "removed": F.when(new == 0, old).otherwise(zero),
        "read": F.col(EVENTS),
    }
    sums = changed.agg(*(F.sum(values[name]).alias(name) for name in COUNTED))
    pairs = F.array(
        *(
            F.struct(F.lit(name).alias("what"), F.coalesce(name, F.lit(0)).alias("n"))
            for name in COUNTED
        )
    )
    lines = sums.select(F.explode(pairs).alias("l"))
    return lines.select(*_count_line(F.col("l.what"), F.lit(0), False, F.col("l.n")))


@returns(COUNT_LINES)
def _days_to_read(components: DataFrame) -> DataFrame:
    """The days in which events have to be read again, not one line for each component."""
    day = cell_start(F.timestamp_micros(START), Granularity.DAY)
    days = components.groupBy(day.alias("day")).agg(
        F.min(START).alias("first"), F.max(END).alias("end"), F.count(F.lit(1)).alias("n")
    )
    return days.select(
        *_count_line(_READ_AGAIN, F.col("first"), False, F.col("n"), last=F.col("end"))
    )


# A fold merges the islands of added events into stored sessions, if aggregates and cuts allow it
# (:func:`can_merge`). Those of removed events only show which sessions have to be read again.

REMOVED = "__removed"
"""Whether an island is of events that are no longer there."""

INPUT_CHANGES = ISLANDS.plus(
    "an island of new events, or of removed ones",
    FrameColumn(REMOVED, "boolean", "whether its events are no longer there"),
)


def can_merge(query: SessionsQuery, compiled: CompiledAggregates) -> bool:
    """Whether new events can be merged into stored sessions without reading these' events."""
    return compiled.mergeable and cuts_of(query).merge


class InputChanges:
    """The changes of a sessions model's input, as the query sees them."""

    def __init__(self, query: SessionsQuery, compiled: CompiledAggregates, feed: Feed) -> None:
        self.query, self.feed = query, feed
        self.compiled = compiled
        if not can_merge(query, compiled):
            bare = _without_aggregates(compiled)
            self.compiled = _for_quarantine(compiled, query) if query.may_quarantine else bare

    @returns(INPUT_CHANGES)
    def islands(self) -> DataFrame:
        """The islands of what was added, and of what was removed."""
        query = self.query
        added = islands_of(
            prepared_events(self.feed.added(), query, self.compiled), query, self.compiled
        )
        islands = added.withColumn(REMOVED, F.lit(False))
        removed_events = self.feed.removed()
        if removed_events is None:
            return islands
        bare = _without_aggregates(self.compiled)
        removed = islands_of(prepared_events(removed_events, query, bare), query, bare)
        removed = removed.withColumn(REMOVED, F.lit(True))
        return islands.unionByName(removed, allowMissingColumns=True)


def _without_aggregates(compiled: CompiledAggregates) -> CompiledAggregates:
    """No aggregates: islands with their first and last instants alone."""
    return replace(compiled, arguments=(), parts=(), picks=(), raw=False)


def _for_quarantine(compiled: CompiledAggregates, query: SessionsQuery) -> CompiledAggregates:
    """Of the aggregates what an entry of the quarantine keeps, and what cuts ask of new events."""
    parts = [part for part in compiled.parts if part.name in (EVENT_COUNT, USER_VALUE, USER_AT)]
    parts += [part for cut in cuts_of(query).inner for part in cut.new_event_state()]
    picks = tuple(pick for pick in compiled.picks if pick.value == USER_VALUE)
    return replace(compiled, parts=tuple(parts), picks=picks, raw=False)
