"""
The states of the cells of a query's rows: how many rows each has, their content, their last time.

Few cells, as a day's run builds, are observed while the rows are computed: in one pass, which may
be the one that writes them, without a shuffle. Many cells are grouped, by a query over rows that
are kept.

The frames are the model's own columns, as its query yields them. Observed, they have one more:

| column         | type   | meaning                                              |
|----------------|--------|------------------------------------------------------|
| `_infold_hash` | bigint | the hash of the row; only while sums are observed     |

The observation is one row: ``rows`` (all), and for each cell, by its number, ``rows_0``, the sums
``hi_0`` and ``lo_0`` of its content, and ``last_0``, its last time in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Interval, Ranges
from infold.core.project import Node
from infold.core.queries import quoted
from infold.core.trace import CellState
from infold.spark.content import (
    cell_of,
    cell_stats,
    column,
    content,
    range_predicate,
    row_hash,
)
from infold.spark.observed import Aggregates, kept_and_observed, observed

_FEW_CELLS = 16
"""Up to so many cells are observed: each adds four sums."""

_HASH = "_infold_hash"


@dataclass(frozen=True, slots=True)
class CellStates:
    """The cells asked for that have rows; ``beyond`` is how many rows are in other cells."""

    cells: Mapping[Interval, CellState]
    beyond: int = 0


def partition_column(node: Node) -> str:
    """The column that decides which cell a row of a time-range model is in."""
    assert node.model.timeseries is not None, "a time-range model has a timeseries"
    return node.model.timeseries.partition_column


def compute_once(
    rows: DataFrame, node: Node, ranges: Ranges, type_: str
) -> tuple[DataFrame, CellStates]:
    """
    The rows, computed once and kept, and the states of the cells ``ranges`` for.

    ``type_`` is the partition column's: ``date`` or ``timestamp``.
    """
    cells = _few_cells(node, ranges)
    if cells is None:
        rows = rows.localCheckpoint(eager=False)
        test = range_predicate(partition_column(node), type_, ranges, exact=True)
        return rows, states_of_cells(rows, node, F.expr(test))
    sums = _cell_sums(node, cells, ranges, type_)
    computed, counts = kept_and_observed(_with_hash(rows), *sums, without=(_HASH,))
    return computed, _states_from_sums(counts, cells)


@dataclass(frozen=True, slots=True)
class ObservedRows:
    """Rows that are computed once; after that the states of ``cells`` are known."""

    rows: DataFrame
    cells: Sequence[Interval]
    seen: Aggregates

    def states(self) -> CellStates:
        """The states of the cells; waits until the rows have been computed."""
        return _states_from_sums(self.seen.get, self.cells)


def observe_cells(rows: DataFrame, node: Node, ranges: Ranges, type_: str) -> ObservedRows | None:
    """The same rows, observed; None if the cells ``ranges`` for are too many for that."""
    cells = _few_cells(node, ranges)
    if cells is None:
        return None
    watched, aggregates = observed(_with_hash(rows), *_cell_sums(node, cells, ranges, type_))
    return ObservedRows(watched.drop(_HASH), cells, aggregates)


def states_of_cells(rows: DataFrame, node: Node, inside: Column | None = None) -> CellStates:
    """The states of the cells of stored or kept rows; without ``inside``, of all cells."""
    granularity = node.model.granularity
    time = F.lit(None).cast("timestamp")
    if granularity is not None:
        time = column(partition_column(node))
    states, beyond = {}, 0
    by = () if inside is None else (inside.alias("_asked"),)
    # At most two rows for each cell.
    for row in cell_stats(rows, time, granularity, by=by).collect():
        if inside is not None and not row["_asked"]:
            beyond += row["rows"]
            continue
        cell = cell_of(row["cell"], granularity)
        states[cell] = CellState(cell, row["rows"], content(row["hi"], row["lo"]), row["last"])
    return CellStates(states, beyond)


def _few_cells(node: Node, ranges: Ranges) -> list[Interval] | None:
    """The cells one by one; None if they are many."""
    granularity = node.model.granularity
    if granularity is None:
        return None
    each = (cell for part in granularity.cover(ranges) for cell in granularity.cells(part))
    few = list(islice(each, _FEW_CELLS + 1))
    return few if len(few) <= _FEW_CELLS else None


def _with_hash(rows: DataFrame) -> DataFrame:
    """The rows with their hash."""
    return rows.select("*", row_hash(rows.schema).alias(_HASH))


def _cell_sums(node: Node, cells: Sequence[Interval], ranges: Ranges, type_: str) -> list[Column]:
    """Aggregates over rows with their hash: those of all, and of what is asked of each cell."""
    name = partition_column(node)
    at = quoted(name)
    sums = ["count(1) AS rows"]
    for number, cell in enumerate(cells):
        test = range_predicate(name, type_, Ranges((cell,)) & ranges, exact=True)
        sums += [
            f"count_if({test}) AS rows_{number}",
            f"sum(if({test}, shiftright({_HASH}, 32), 0)) AS hi_{number}",
            f"sum(if({test}, {_HASH} & 4294967295, 0)) AS lo_{number}",
            f"max(if({test}, unix_micros(cast({at} AS timestamp)), NULL)) AS last_{number}",
        ]
    return list(map(F.expr, sums))


def _states_from_sums(sums: Mapping[str, Any], cells: Sequence[Interval]) -> CellStates:
    states = {}
    for number, cell in enumerate(cells):
        # Spark forgets what it observed in a plan that turned out to be empty.
        if count := sums.get(f"rows_{number}"):
            hash_ = content(sums[f"hi_{number}"], sums[f"lo_{number}"])
            states[cell] = CellState(cell, count, hash_, sums[f"last_{number}"])
    inside = sum(state.rows for state in states.values())
    return CellStates(states, int(sums.get("rows") or 0) - inside)
