"""
How an events table lies on disk, and how a first load gets there with one shuffle.

Late rows touch many old cells with few rows each, so partitions are months (years for little data
over a long time), sorted by event time inside. A first load is shuffled by a stretch of event time
that is as coarse as the data allows: copies of an event then meet in one task, the window that
compares them needs no second shuffle, and its sort is the order in which the files are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from infold.core.interval import DAY, Granularity
from infold.core.project import Node
from infold.spark.content import cell_start, column, micros, time_type
from infold.spark.events.arrivals import FILE, Count, State
from infold.spark.events.copies import DIFFERS, ELSEWHERE, Identity, best, place
from infold.spark.events.ingest import model_columns
from infold.spark.tables.port import Layout

ROWS_FOR_PARTITIONS = 500_000
ROWS_OF_A_TASK = 1_000_000
_MONTH = 30 * DAY
_STRETCH = 8 * DAY
_ROWS_OF_A_MONTH = 20_000
_DICTIONARY = 128 * 1024
"""Files of events tell a column's values at once while these are in dictionaries of this size."""
_STRETCH_COLUMN = "_stretch"


@dataclass(frozen=True, slots=True)
class Spread:
    """The layout of a table, and over how many tasks and by what its first load is shuffled."""

    layout: Layout
    tasks: int
    stretch: Column | None


def spread(node: Node, rows: DataFrame, counted: Iterable[Count]) -> Spread:
    """How to lay out a table that will hold about the rows that were counted."""
    admitted = [count for count in counted if count.state is State.ADMITTED]
    total = sum(count.rows for count in admitted)
    tasks = -(-total // ROWS_OF_A_TASK) or 1
    layout = Layout(dictionary=_DICTIONARY)
    if node.model.timeseries is None or not admitted:
        return Spread(layout, tasks, None)
    name = node.model.timeseries.event_time_column
    first = min(count.first or 0 for count in admitted)
    months = (max(count.last or 0 for count in admitted) - first) // _MONTH + 1
    partition = Granularity.MONTH if total / months >= _ROWS_OF_A_MONTH else Granularity.YEAR
    if total >= ROWS_FOR_PARTITIONS:
        layout = replace(layout, column=name, partition=partition, type=time_type(rows, name))
    if months >= 2 * tasks:
        return Spread(layout, tasks, cell_start(column(name), Granularity.MONTH))
    at = micros(column(name))
    return Spread(layout, tasks, at - F.pmod(at, F.lit(_STRETCH)))


def loaded(node: Node, rows: DataFrame, how: Spread) -> tuple[DataFrame, Observation | None]:
    """
    The rows to store, in the order to write them: one copy of each event.

    The observation counts the ``copies`` left out, those of them that are ``conflicting``, and
    those that are ``elsewhere``: at another time than the one kept.
    """
    own = model_columns(rows)
    names = [*own, FILE]
    by = place(node)
    if not node.model.unique_key:
        if how.stretch is None:
            return rows.select(*map(column, names)), None
        near = rows.repartition(how.tasks, how.stretch)
        return near.select(*map(column, names)).sortWithinPartitions(*map(column, by)), None
    identity = Identity.of(node)
    at: Column | None = None
    rows = identity.prepared(rows, own)
    if how.stretch is None or identity.time is not None:
        near = rows.repartition(how.tasks, *map(column, identity.keys))
    else:
        near = rows.withColumn(_STRETCH_COLUMN, how.stretch)
        at = F.col(_STRETCH_COLUMN)
        near = near.repartition(how.tasks, at)
    observed = Observation(f"infold copies of {node.name}")
    again = F.col("_copy") > 1
    ranked = best(near, identity, at).observe(
        observed,
        F.count_if(again).alias("copies"),
        F.count_if(again & F.col(DIFFERS)).alias("conflicting"),
        F.count_if(again & F.col(ELSEWHERE)).alias("elsewhere"),
    )
    kept = ranked.where(F.col("_copy") == 1).select(*map(column, names))
    if identity.time is not None and how.stretch is not None:
        # Copies met by key; files are written by time.
        near = kept.repartition(how.tasks, how.stretch)
        kept = near.sortWithinPartitions(*map(column, by))
    return kept, observed
