"""
The rows of a table that sessions models leave out, found with Spark where that takes expressions.

For a model that reads the table, its own expressions decide for each row. A view hides which rows
of the table it was made of; but it makes each of its rows of one row, and equal rows of equal ones.
So rows that agree in all columns which the view passes on are given to it one at a time, and an
event that the model leaves out then identifies its row.

The frames have the table's columns and these:

| column         | type   | meaning                                                           |
|----------------|--------|-------------------------------------------------------------------|
| `_infold_hash` | bigint | the hash of the row                                               |
| `_infold_turn` | int    | its number among different rows that agree in the passed columns  |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.own_columns import FILE
from infold.core.project import Node
from infold.inspecting.left_out import BY
from infold.spark.content import column, row_hash, user_columns
from infold.spark.sessions.unassigned import unassigned_events
from infold.spark.step_context import Work

HASH, TURN = "_infold_hash", "_infold_turn"


def left_out(work: Work, table: str, nodes: Sequence[Node], limit: int | None) -> pa.Table:
    """At most ``limit`` of the rows of a table that models leave out, with the models' names."""
    stored = _newest_rows(work, table)
    hashed = stored.withColumn(HASH, row_hash(stored.schema))
    hashes_by_model = [
        _hashes_left_out(work, node, table, hashed).withColumn(BY, F.lit(node.name))
        for node in nodes
    ]
    by = reduce(DataFrame.unionAll, hashes_by_model).groupBy(HASH).agg(F.collect_set(BY).alias(BY))
    rows_left_out = hashed.join(by, HASH)
    columns = [*user_columns(stored).columns, *([FILE] if FILE in stored.columns else [])]
    shown = rows_left_out.select(*map(column, columns), BY)
    # At most the rows that somebody asks to see.
    return (shown if limit is None else shown.limit(limit)).toArrow()


def _newest_rows(work: Work, table: str) -> DataFrame:
    return work.frame(table, work.ledger.newest_versions()[table].number)


def _hashes_left_out(work: Work, node: Node, table: str, rows: DataFrame) -> DataFrame:
    """The hashes of the rows that a model leaves out."""
    query = node.query
    assert query is not None, "a sessions model has a compiled query"
    if query.input == table:
        return unassigned_events(rows, query).select(HASH)
    shown = [
        (view_column, table_column)
        for view_column, table_column in dict(query.passed_columns).get(table, ())
        if "map<" not in rows.select(column(table_column)).dtypes[0][1]
    ]
    left = unassigned_events(_through_view(work, node, table, rows), query)
    candidates = _rows_agreeing(rows, left, shown).dropDuplicates([HASH])
    turn = Window.partitionBy(*(column(name) for _, name in shown)).orderBy(HASH)
    turns = candidates.withColumn(TURN, F.row_number().over(turn)).localCheckpoint()
    # One row.
    [[most]] = turns.agg(F.max(TURN)).collect()
    parts = [rows.limit(0), *_left_out_by_turn(work, node, table, turns, shown, most or 0)]
    return reduce(DataFrame.unionAll, [part.select(HASH) for part in parts])


def _left_out_by_turn(
    work: Work,
    node: Node,
    table: str,
    turns: DataFrame,
    shown: Sequence[tuple[str, str]],
    most: int,
) -> Iterator[DataFrame]:
    """The rows that a model leaves out, for each turn."""
    assert node.query is not None
    for number in range(1, most + 1):
        turn_rows = turns.where(F.col(TURN) == number)
        yield _rows_agreeing(
            turn_rows,
            unassigned_events(_through_view(work, node, table, turn_rows), node.query),
            shown,
        )


def _rows_agreeing(rows: DataFrame, left: DataFrame, shown: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows that agree with a row of the view in all columns that it passes on."""
    names = [f"__{at}" for at, _ in enumerate(shown)]
    passed = left.select(
        *(column(shown_as).alias(name) for (shown_as, _), name in zip(shown, names, strict=True))
    )
    same: list[Column] = [
        column(own).eqNullSafe(F.col(name)) for (_, own), name in zip(shown, names, strict=True)
    ]
    return rows.join(passed.distinct(), reduce(and_, same), "left_semi")


def _through_view(work: Work, node: Node, table: str, rows: DataFrame) -> DataFrame:
    """Rows of a table as a model sees them, with lookups and without its other tables."""
    assert node.query is not None
    fed = {entry.name for entry in node.folded_inputs}
    frames = {
        entry.name: user_columns(_newest_rows(work, entry.name).where(F.lit(entry.name not in fed)))
        for entry in node.inputs
    }
    table_rows = user_columns(rows).drop(HASH, TURN)
    return work.sql(work.project[node.query.input], {**frames, table: table_rows})
