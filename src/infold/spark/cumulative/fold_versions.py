"""
Versions of keys (``scd_type_2``), folded by the keys of changed rows.

The versions of a key follow from the input's rows of that key, wherever in time these are. So the
versions of the keys of added and removed rows are made again from all of their rows, compared with
the stored ones, and one commit removes those that differ and adds the new ones: a late row divides
one version, a removed row joins two, and all others stay as they are.

A key has several rows in the table. ``KEY`` is the hash of a key with the instant of the version,
which tells them apart.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.own_columns import KEY, VERSION
from infold.core.plan import Action, Step
from infold.core.project import Node
from infold.core.queries import VALID_FROM, VersionedQuery
from infold.core.record import Outcome
from infold.spark.content import row_hash
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
from infold.spark.versions import instants_without_rows, versions_of

TOUCHED_KEYS = FrameSchema(
    "a key that changed rows have",
    (
        FrameColumn(TOUCHED_KEY, "string", "its hash"),
        FrameColumn(OLD_KEY, "string", "the same where the table has a row of it, else NULL"),
    ),
    "its values, and how many changed rows have it",
)

COMPARED_ROWS = FrameSchema(
    "a version of a touched key, stored or new, or both",
    (
        FrameColumn(OLD_KEY, "string", "the hash of key and instant, if it is stored"),
        FrameColumn(OLD_HASH, "bigint", "the hash of the stored row"),
        FrameColumn(NEW_HASH, "bigint", "the hash of the row now; NULL: there is none any more"),
        FrameColumn(KEY, "string", "the hash of key and instant, if it is a version now"),
        FrameColumn(VERSION, "bigint", "the version of the table that is being built"),
    ),
    "the columns of the table",
)


def carry_out(work: Work, step: Step) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    query = _query(node)
    folds = step.action is Action.FOLD and not query.snapshots  # then others decide about a key
    if folds and foldable_by_key(work, node, step, query.keys):
        return _VersionFold(work, node, step, query.grouped).carry_out()
    without_rows = instants_without_rows(work.spark, query, step.snapshots)
    rows = versions_of(recompute.definition(work, node, step), query, without_rows)
    outcome = recompute.build(work, node, step, _table_rows(rows, query, step.version))
    return replace(outcome, files=step.snapshots_read(query, work.ledger.files(step.model)))


def _query(node: Node) -> VersionedQuery:
    """The model's compiled query."""
    assert node.versions is not None, "an scd_type_2 model has a compiled query"
    return node.versions


@returns(TABLE_ROWS)
def _table_rows(rows: DataFrame, query: VersionedQuery, version: int) -> DataFrame:
    """Versions as the table keeps them."""
    key = key_hash(rows, (*query.keys, VALID_FROM))
    return rows.withColumns({KEY: key, VERSION: F.lit(version).cast("bigint")})


class _VersionFold(KeyedFold):
    """What a fold reads: the changed rows, their keys, and the rows of these keys."""

    scans_of_table = 2  # for the keys that it has, and for their versions

    @returns(TOUCHED_KEYS)
    def beside_stored(self, keys: DataFrame) -> DataFrame:
        """Keys, each with whether the table has a row of it."""
        stored = self.stored_of(keys).select(F.col(OLD_KEY)).distinct()
        return keys.join(stored, F.col(TOUCHED_KEY) == F.col(OLD_KEY), "left")

    def stored_of(self, keys: DataFrame) -> DataFrame:
        """The stored rows of some keys, each with the hash of its key (``OLD_KEY``)."""
        table = self.work.tables.read(self.step.model)
        names = [key.name for key in self.query.keys]
        return self.of_keys(table.withColumn(OLD_KEY, key_hash(table, names)), keys)

    @returns(COMPARED_ROWS)
    def compared(self, rows: DataFrame, touched: DataFrame) -> DataFrame:
        """The versions as they are now, beside the hashes of those that are stored."""
        query, stored = _query(self.node), self.stored_of(touched).drop(OLD_KEY)
        new_versions = versions_of(self.work.sql(self.node, {self.query.input: rows}), query)
        new = _table_rows(new_versions, query, self.step.version)
        old = stored.select(F.col(KEY).alias(OLD_KEY), row_hash(stored.schema).alias(OLD_HASH))
        hashed = new.withColumn(NEW_HASH, row_hash(new.schema))
        return old.join(hashed, F.col(OLD_KEY) == F.col(KEY), "full_outer")
