"""
A long history cut into stretches of time, each of which one task turns into islands by itself.

Where a large table lies in partitions of time, a task that reads a whole one needs nothing from
the others: no row is shuffled. Only islands that come within a gap of a border may go on beyond it;
they are few, and are put together in a second step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.project import SessionsQuery
from infold.core.trace import CellState
from infold.spark.content import time_predicate
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.islands import END, START, prepared, reach

ROWS = 4_000_000
"""About the rows of a stretch, as long as there are no more than ``MOST`` of them."""

MOST = 24
"""About the most stretches: planning each takes Spark as long as a hundred thousand rows do."""

LONG = 10
"""A stretch is at least so many gaps long, or too many islands come near a border."""


@dataclass(frozen=True)
class Stretches:
    """Prepared events, cut at ``borders`` (microseconds): one frame of one part before each."""

    borders: tuple[int, ...] = ()
    frames: tuple[DataFrame, ...] = ()

    def near(self, query: SessionsQuery) -> Column:
        """Whether an island may go on beyond a border."""
        far = reach(query)
        return reduce(
            Column.__or__,
            ((F.col(START) <= at + far) & (F.col(END) >= at - far) for at in self.borders),
            F.lit(False),
        )


def cut(
    events: DataFrame, query: SessionsQuery, over: CompiledAggregates, at: Sequence[int]
) -> Stretches:
    """Events as ``prepared`` by themselves in each stretch; nothing without a border."""
    if not at:
        return Stretches()
    frames = (
        prepared(
            events.where(time_predicate(events, query.time_column, Ranges((part,)))), query, over
        )
        for part in (Interval(*ends) for ends in pairwise((MIN, *at, MAX)))
    )
    return Stretches(tuple(at), tuple(frame.coalesce(1) for frame in frames))


def borders(
    cells: Iterable[CellState], partition: Granularity | None, far: int, tasks: int
) -> tuple[int, ...]:
    """
    Where to cut the history in some cells so that ``tasks`` tasks at a time have enough to do.

    ``partition`` is how the table lies on disk: stretches are whole partitions, so that every file
    is read once and no row of it is looked at for its time. ``far`` is the longest gap, in
    microseconds. Empty where cutting does not pay: without partitions, where they are too short for
    the gap, or where one holds more than a task's share.
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
    if len(sizes) < 2 * tasks or max(sizes) * tasks > total or _shortest(partition) < LONG * far:
        return ()
    return tuple(found)


def _shortest(partition: Granularity) -> int:
    return {Granularity.YEAR: 365 * DAY, Granularity.MONTH: 28 * DAY}.get(partition, 0)
