"""
A long history in slices of time: one task turns each slice into islands by itself.

Where a large table lies in partitions of time, a task that reads a whole one needs nothing from
the others: no row is shuffled. Only islands that come within a gap of a border may go on beyond it.
They are few, and are merged in a second step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.queries import SessionsQuery
from infold.core.trace import CellState
from infold.spark.content import time_predicate
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.cuts.silence import longest_silence
from infold.spark.sessions.frames import END, START
from infold.spark.sessions.islands import prepared_events

ROWS = 4_000_000
"""About the rows of a slice, as long as there are no more than ``MOST`` of them."""

MOST = 24
"""About the most slices: planning each takes Spark as long as a hundred thousand rows do."""

LONG = 10
"""A slice is at least so many gaps long, or too many islands come near a border."""


@dataclass(frozen=True)
class TimeSlices:
    """Prepared events between ``borders`` (microseconds): a frame of one partition for each."""

    borders: tuple[int, ...] = ()
    frames: tuple[DataFrame, ...] = ()

    def near_border(self, query: SessionsQuery) -> Column:
        """Whether an island may go on beyond a border."""
        far = longest_silence(query)
        return reduce(
            Column.__or__,
            ((F.col(START) <= at + far) & (F.col(END) >= at - far) for at in self.borders),
            F.lit(False),
        )


def sliced_events(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates, borders: Sequence[int]
) -> TimeSlices:
    """Prepared events of each slice by themselves; no slice without a border."""
    if not borders:
        return TimeSlices()
    frames = (
        prepared_events(
            events.where(time_predicate(events, query.time_column, Ranges((part,)))),
            query,
            compiled,
        )
        for part in (Interval(*ends) for ends in pairwise((MIN, *borders, MAX)))
    )
    return TimeSlices(tuple(borders), tuple(frame.coalesce(1) for frame in frames))


def slice_borders(
    cells: Iterable[CellState], partition: Granularity | None, far: int, tasks: int
) -> tuple[int, ...]:
    """
    Where the slices of some cells begin so that ``tasks`` tasks at a time have enough to do.

    ``partition`` is how the table lies on disk: slices are whole partitions, so that every file
    is read once and no row of it is looked at for its time. ``far`` is the longest gap, in
    microseconds. Empty where slices do not pay: without partitions, where they are too short for
    the gap, or where one has more rows than a task's share.
    """
    if partition is None:
        return ()
    rows: dict[int, int] = {}
    for state in cells:
        start = partition.floor(state.cell.start)
        rows[start] = rows.get(start, 0) + state.rows
    total = sum(rows.values())
    number = max(6 * tasks, min(MOST, total // ROWS))
    found: list[int] = []
    sizes = [0]
    for start, more in sorted(rows.items()):
        if sizes[-1] and 2 * number * (sizes[-1] + more) > 3 * total:  # more than 1.5 shares
            found.append(start)
            sizes.append(0)
        sizes[-1] += more
    if (
        len(sizes) < 2 * tasks
        or max(sizes) * tasks > total
        or _shortest_length(partition) < LONG * far
    ):
        return ()
    return tuple(found)


def _shortest_length(partition: Granularity) -> int:
    """The length of the shortest partition; 0 for those that are too short anyway."""
    return {Granularity.YEAR: 365 * DAY, Granularity.MONTH: 28 * DAY}.get(partition, 0)
