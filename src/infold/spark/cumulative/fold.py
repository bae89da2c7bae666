"""
Cumulative aggregates: one row for each key of GROUP BY, updated by the keys of changed rows.

Where all aggregates of the query have states, its rows follow from these (``fold_states``). Else
the query is evaluated over all rows of the keys that changed rows have, and its rows are compared
with the stored ones. A row that comes out as it was is left alone, and when all do, nothing is
committed.

A key that has no row in the table had no rows in the input either (unless HAVING left it out), so
its rows are among those that were added. The input is scanned only for keys that are there already.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.own_columns import KEY, VERSION
from infold.core.plan import Action, Step
from infold.core.project import Node
from infold.core.queries import GroupedQuery
from infold.core.record import Outcome
from infold.spark.content import row_hash
from infold.spark.cumulative import fold_states
from infold.spark.cumulative.keyed import (
    NEW_HASH,
    OLD_HASH,
    OLD_KEY,
    TABLE_ROWS,
    TOUCHED_KEY,
    KeyedFold,
    foldable_by_key,
    key_hash,
)
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.step_context import Work
from infold.spark.time_range import recompute

COMPARED_ROWS = FrameSchema(
    "a touched key with its row as it is now, and the hash of the stored one",
    (
        FrameColumn(OLD_KEY, "string", "the hash of the key, if the table has a row of it"),
        FrameColumn(OLD_HASH, "bigint", "the hash of that row"),
        FrameColumn(NEW_HASH, "bigint", "the hash of its row now; NULL: there is none any more"),
        FrameColumn(KEY, "string", "the hash of the key, if it has a row now"),
        FrameColumn(VERSION, "bigint", "the version that is being built"),
    ),
    "the columns of the query",
)


def carry_out(work: Work, step: Step) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    query = _query(node)
    names = [key.name for key in query.keys]
    stated = fold_states.with_states(work, node, step)
    if step.action is Action.FOLD and foldable_by_key(work, node, step, names):
        if stated is None and not fold_states.has_states(work, step):
            return _RowFold(work, node, step, query).carry_out()
        if stated is not None and stated.are_stored(work, step):
            return fold_states.fold(work, stated, step)
    if stated is not None:
        rows = stated.table_rows(recompute.definition(work, stated.node, step), step.version)
    else:
        rows = _table_rows(recompute.definition(work, node, step), query, step.version)
    return recompute.build(work, node, step, rows)


def _query(node: Node) -> GroupedQuery:
    """The model's compiled query."""
    assert node.grouped is not None, "a cumulative aggregate has a compiled query"
    return node.grouped


@returns(TABLE_ROWS)
def _table_rows(rows: DataFrame, query: GroupedQuery, version: int) -> DataFrame:
    """Rows of the query as the table keeps them."""
    keys = [key.name for key in query.keys]
    return rows.withColumns({KEY: key_hash(rows, keys), VERSION: F.lit(version).cast("bigint")})


class _RowFold(KeyedFold):
    """A fold that evaluates the query over all rows of the keys of changed rows."""

    @returns(COMPARED_ROWS)
    def compared(self, rows: DataFrame, touched: DataFrame) -> DataFrame:
        """The rows of the keys as they are now, beside the hashes of those that are stored."""
        rows = self.work.sql(self.node, {self.query.input: rows})
        new = _table_rows(rows, self.query, self.step.version)
        hashed = new.withColumn(NEW_HASH, row_hash(new.schema))
        stored = touched.select(TOUCHED_KEY, OLD_KEY, OLD_HASH)
        return stored.join(hashed, F.col(TOUCHED_KEY) == F.col(KEY), "left").drop(TOUCHED_KEY)
