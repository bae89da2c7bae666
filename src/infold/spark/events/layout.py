"""
How an events table lies on disk, and how its first load is written with one shuffle.

Late rows touch many old cells with few rows each, so partitions are months (years for little data
over a long time), and rows are sorted by event time in them. A first load is shuffled by a period
of event time that is as coarse as the data allows. Copies of an event then meet in one task, the
window that compares them needs no second shuffle, and its sort is the order of the written files.

The frames here are of judged arrivals (``arrivals``) on the way in, and of the stored columns on
the way out: the model's and ``_source_file``, without ``_version``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import DAY, Granularity
from infold.core.own_columns import FILE
from infold.core.project import Node
from infold.spark.content import cell_start, column, micros, time_type
from infold.spark.events.arrivals import RowCount, RowState
from infold.spark.events.copies import DIFFERS, ELSEWHERE, Identity, rank_copies, row_order
from infold.spark.events.ingest import model_columns
from infold.spark.observed import Seen, observed
from infold.spark.tables.port import Layout

ROWS_FOR_PARTITIONS = 500_000
ROWS_OF_A_TASK = 1_000_000
_MONTH = 30 * DAY
_PERIOD = 8 * DAY
_ROWS_OF_A_MONTH = 20_000
DICTIONARY = 128 * 1024
"""Dictionaries up to this size let a column's values be read without its rows."""
_PERIOD_COLUMN = "_period"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """
    A table's layout, and how its first load is shuffled: over how many tasks, by which value.

    ``period`` is the start of a period of event time, in microseconds; None for a lookup.
    """

    layout: Layout
    tasks: int
    period: Column | None


def load_plan(node: Node, rows: DataFrame, counted: Iterable[RowCount]) -> LoadPlan:
    """How to lay out and load a table of about the rows that were counted."""
    admitted = [count for count in counted if count.state is RowState.ADMITTED]
    total = sum(count.rows for count in admitted)
    tasks = -(-total // ROWS_OF_A_TASK) or 1
    layout = Layout(dictionary=DICTIONARY)
    if node.model.timeseries is None or not admitted:
        return LoadPlan(layout, tasks, None)
    name = node.model.timeseries.event_time_column
    first = min(count.first or 0 for count in admitted)
    months = (max(count.last or 0 for count in admitted) - first) // _MONTH + 1
    partition = Granularity.MONTH if total / months >= _ROWS_OF_A_MONTH else Granularity.YEAR
    if total >= ROWS_FOR_PARTITIONS:
        layout = replace(layout, column=name, partition=partition, type=time_type(rows, name))
    if months >= 2 * tasks:
        return LoadPlan(layout, tasks, cell_start(column(name), Granularity.MONTH))
    at = micros(column(name))
    return LoadPlan(layout, tasks, at - F.pmod(at, F.lit(_PERIOD)))


def rows_to_load(node: Node, rows: DataFrame, how: LoadPlan) -> tuple[DataFrame, Seen | None]:
    """
    The rows to store, one copy of each event, in the order to write them.

    The observation counts the ``copies`` left out, how many of them are ``conflicting``, and how
    many have another event time than the kept one (``elsewhere``).
    """
    own = model_columns(rows)
    names = [*own, FILE]
    by = row_order(node)
    if not node.model.unique_key:
        if how.period is None:
            return rows.select(*map(column, names)), None
        near = rows.repartition(how.tasks, how.period)
        return near.select(*map(column, names)).sortWithinPartitions(*map(column, by)), None
    identity = Identity.of(node)
    at: Column | None = None
    rows = identity.prepared(rows, own)
    if how.period is None or identity.time is not None:
        near = rows.repartition(how.tasks, *map(column, identity.keys))
    else:
        near = rows.withColumn(_PERIOD_COLUMN, how.period)
        at = F.col(_PERIOD_COLUMN)
        near = near.repartition(how.tasks, at)
    again = F.col("_copy") > 1
    ranked, seen = observed(
        rank_copies(near, identity, at),
        F.count_if(again).alias("copies"),
        F.count_if(again & F.col(DIFFERS)).alias("conflicting"),
        F.count_if(again & F.col(ELSEWHERE)).alias("elsewhere"),
    )
    kept = ranked.where(F.col("_copy") == 1).select(*map(column, names))
    if identity.time is not None and how.period is not None:
        # Copies met by key; files are written by time.
        near = kept.repartition(how.tasks, how.period)
        kept = near.sortWithinPartitions(*map(column, by))
    return kept, seen
