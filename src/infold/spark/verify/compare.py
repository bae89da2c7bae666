"""
Two sets of rows compared: by content for each cell, then row by row where that differs.

A query's sums of doubles differ a little when rows come in another order. So rows whose hashes
differ count as equal when they pair up with every double within one part in 10^9. Where large terms
cancel a sum differs more. Nothing here tells that from a wrong one: they differ, by doubles alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import Granularity, Interval
from infold.core.project import ALL_COLUMNS
from infold.core.trace import CellState, signed
from infold.spark.content import (
    cell_of,
    cell_start,
    cell_states,
    column,
    row_hash,
)
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns

TOLERANCE = 1e-9
_SAMPLE = 5

ROWS_OF_A_SIDE = FrameSchema(
    "a row of a cell that differs",
    (
        FrameColumn("_cell", "bigint", "the start of the row's cell, microseconds since 1970 UTC"),
        FrameColumn("_hash", "bigint", "the hash of all columns but floating-point ones"),
        FrameColumn("_nth", "int", "its number among rows of equal cell and hash, by its floats"),
        FrameColumn("_side", "string", "stored or rebuilt"),
    ),
    "the columns of the table",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    How stored and rebuilt rows compare.

    ``differing`` are (cell, rows stored, rows rebuilt) of cells whose rows differ; ``sample`` are
    a few rows that only one side has; ``rounded`` counts cells equal but for the last digits of
    doubles. With ``by_doubles`` all rows pair up but for their doubles. ``rows``, ``cells`` and
    ``content`` are those stored.
    """

    rows: int
    cells: int
    content: int
    stored: Mapping[Interval, CellState]
    differing: tuple[tuple[Interval, int, int], ...] = ()
    sample: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    rounded: int = 0
    by_doubles: bool = False


def compare(
    stored: DataFrame,
    rebuilt: DataFrame,
    time: str | None,
    granularity: Granularity | None,
    key: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Comparison:
    """
    Compare two frames of the same columns, cell by cell of the column ``time``.

    ``key`` are the columns that identify a row, if they are known: the sample then has the rows of
    both sides for a few keys. Columns that are ``left_out`` are not compared, though they count in
    what is known of the stored rows.
    """
    rebuilt = rebuilt.select(*(column(name) for name in stored.columns))
    whole = left = cell_states(stored, time, granularity)
    if left_out:
        out = {name.lower() for name in left_out}
        compared_names = [name for name in stored.columns if name.lower() not in out]
        if tuple(left_out) == ALL_COLUMNS or not compared_names:
            return _comparison(whole)
        stored, rebuilt = (rows.select(*map(column, compared_names)) for rows in (stored, rebuilt))
        key = key if out.isdisjoint(map(str.lower, key)) else ()
        left = cell_states(stored, time, granularity)
    right = cell_states(rebuilt, time, granularity)
    suspects = [
        cell
        for cell in sorted(set(left) | set(right))
        if _rows_and_content(left.get(cell)) != _rows_and_content(right.get(cell))
    ]
    differing: list[tuple[Interval, int, int]] = []
    sample: list[tuple[str, Mapping[str, Any]]] = []
    by_doubles = False
    if suspects:
        unequal, by_doubles = _row_by_row(stored, rebuilt, time, granularity, suspects, key)
        bad = {cell_of(row["_cell"], granularity) for row in unequal}
        differing = [
            (cell, _row_count(left.get(cell)), _row_count(right.get(cell)))
            for cell in suspects
            if cell in bad
        ]
        sample = [(row["_side"], _in_utc(row, stored.schema)) for row in unequal[: 2 * _SAMPLE]]
    return replace(
        _comparison(whole),
        differing=tuple(differing),
        sample=tuple(sample),
        rounded=len(suspects) - len(differing),
        by_doubles=by_doubles,
    )


def _comparison(stored: Mapping[Interval, CellState]) -> Comparison:
    """What is known of stored rows by themselves."""
    return Comparison(
        rows=sum(state.rows for state in stored.values()),
        cells=len(stored),
        content=signed(sum(state.content for state in stored.values())),
        stored=stored,
    )


def _rows_and_content(state: CellState | None) -> tuple[int, int]:
    return (state.rows, state.content) if state else (0, 0)


def _row_count(state: CellState | None) -> int:
    return state.rows if state else 0


def _row_by_row(
    stored: DataFrame,
    rebuilt: DataFrame,
    time: str | None,
    granularity: Granularity | None,
    suspects: list[Interval],
    key: Sequence[str],
) -> tuple[list[Any], bool]:
    """
    Rows of the suspect cells that have no equal row on the other side, some of each cell.

    And whether each of them has one there that is equal but for its doubles.
    """
    at = F.lit(None).cast("timestamp") if time is None else column(time)
    floats = [
        field.name
        for field in stored.schema.fields
        if isinstance(field.dataType, T.DoubleType | T.FloatType)
    ]
    exact = T.StructType([field for field in stored.schema.fields if field.name not in floats])
    sides = [
        _rows_of_a_side(
            side,
            rows.withColumn("_cell", cell_start(at, granularity)).where(
                F.col("_cell").isin([cell.start for cell in suspects])
            ),
            exact,
            floats,
        )
        for side, rows in (("stored", stored), ("rebuilt", rebuilt))
    ]
    names = ["_cell", "_hash", "_nth"]
    right = sides[1].select(*names, *(column(name).alias(f"_other_{name}") for name in floats))
    left = sides[0].select(*names, *(column(name).alias(f"_other_{name}") for name in floats))
    alone, odd = (
        _without_partner(sides[0], right, close).unionByName(
            _without_partner(sides[1], left, close)
        )
        for close in (floats, [])
    )
    differing_rows = (
        alone.withColumn("_rank", _place_in_cell(stored.schema, key))
        .where(F.col("_rank") <= _SAMPLE)
        .orderBy("_cell", "_rank", F.desc("_side"), "_hash", "_nth")
        .drop("_rank", "_hash", "_nth")
        # At most ``_SAMPLE`` rows of each suspect cell.
        .collect()
    )
    return differing_rows, bool(differing_rows and floats) and odd.isEmpty()


@returns(ROWS_OF_A_SIDE)
def _rows_of_a_side(
    side: str, rows: DataFrame, exact: T.StructType, floats: Sequence[str]
) -> DataFrame:
    """Rows with their cell, numbered among those that may equal the same row of the other side."""
    hashed = rows.withColumn("_hash", row_hash(exact)).withColumn("_side", F.lit(side))
    window = Window.partitionBy("_cell", "_hash").orderBy(*map(column, floats), F.lit(1))
    return hashed.withColumn("_nth", F.row_number().over(window))


def _place_in_cell(schema: T.StructType, key: Sequence[str]) -> Column:
    """The place of a row in its cell: the same for both sides of a key, else by its columns."""
    if key:
        by_key = Window.partitionBy("_cell").orderBy(F.xxhash64(*map(column, key)))
        return F.dense_rank().over(by_key)
    atomic = [field.name for field in schema.fields if isinstance(field.dataType, T.AtomicType)]
    by_columns = Window.partitionBy("_cell", "_side").orderBy(*map(column, atomic), "_hash")
    return F.row_number().over(by_columns)


@returns(ROWS_OF_A_SIDE)
def _without_partner(rows: DataFrame, other: DataFrame, floats: list[str]) -> DataFrame:
    """The rows of one side that have no equal row on the other side."""
    close: Column = F.lit(True)
    for name in floats:
        a, b = column(name), column(f"_other_{name}")
        scale = F.greatest(F.abs(a), F.abs(b))
        close = close & (a.eqNullSafe(b) | (F.abs(a - b) <= scale * TOLERANCE))
    return rows.join(
        other.withColumnsRenamed({"_cell": "_c", "_hash": "_h", "_nth": "_n"}),
        (F.col("_cell") == F.col("_c"))
        & (F.col("_hash") == F.col("_h"))
        & (F.col("_nth") == F.col("_n"))
        & close,
        "left_anti",
    )


def _in_utc(row: Any, schema: T.StructType) -> Mapping[str, Any]:
    """A row of a side, its instants in UTC: Spark gives them in the time zone of the machine."""
    instants = {field.name for field in schema if isinstance(field.dataType, T.TimestampType)}
    return {
        name: value.astimezone(UTC) if name in instants and value is not None else value
        for name, value in row.asDict().items()
        if name not in ("_cell", "_side")
    }
