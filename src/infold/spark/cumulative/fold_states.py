"""
Folding a cumulative aggregate by states: rows follow from changed rows and from what is stored.

The input is not read, but for the keys that are in doubt (see ``parts``): their rows are read as
by a fold without states. A key that has no row any more leaves the table, which the count of its
rows tells. Under HAVING a key without a row in the table may have rows in the input, so it is in
doubt.

A row of which only the state changed is written again under the version that it had: readers of the
table see no change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import KEY, VERSION
from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.project import Node
from infold.core.queries import GroupedQuery
from infold.core.record import Outcome
from infold.core.session_columns import STATE
from infold.spark.content import column, row_hash, state_hash, user_columns
from infold.spark.cumulative.keyed import (
    NEW_HASH,
    NEW_STATE,
    OLD_HASH,
    OLD_KEY,
    OLD_STATE,
    ROWS_OF_KEY,
    TABLE_ROWS,
    TOUCHED_KEY,
    KeyCounts,
    KeyedFold,
    commit,
    is_restated,
    key_columns,
    key_hash,
    totals_of,
    with_keys,
)
from infold.spark.cumulative.parts import (
    ROWS,
    SIGN,
    States,
    changed_parts,
    doubts,
    merged_parts,
)
from infold.spark.cumulative.states import states_of
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.feed import Feed
from infold.spark.observed import Seen, observed
from infold.spark.step_context import Work
from infold.spark.time_range.types import stored_type

OLD_VERSION = "__old_version"
"""The version that wrote the stored row."""
DOUBT = "__doubt"
"""Whether the rows of the key have to be read."""
_THERE = "__there"

_STORED = (
    FrameColumn(TOUCHED_KEY, "string", "the hash of the key"),
    FrameColumn(OLD_KEY, "string", "the same where the table has a row of it, else NULL"),
    FrameColumn(OLD_HASH, "bigint", "the hash of that row"),
    FrameColumn(OLD_STATE, "bigint", "the hash of its state"),
    FrameColumn(OLD_VERSION, ANY, "the version that wrote it"),
)

CHANGED_KEYS = FrameSchema(
    "a key that changed rows have, with its stored row",
    (*_STORED, FrameColumn(ROWS_OF_KEY, "bigint", "how many changed rows have it")),
    "__group_key0 … with its values, what changed rows do to the parts of its state (d_, a_, r_),"
    " and its stored parts (s_)",
)

FOLLOWED_ROWS = FrameSchema(
    "a key that changed rows have, with its row as it is now",
    (
        *_STORED,
        FrameColumn(ROWS_OF_KEY, "bigint", "how many changed rows have it", "not read again"),
        FrameColumn(DOUBT, "boolean", "whether its rows have to be read", "not read again"),
        FrameColumn(KEY, "string", "its hash, if it has a row now"),
        FrameColumn(VERSION, "bigint", "the version that wrote that row"),
        FrameColumn(STATE, "struct<…", "its state"),
        FrameColumn(NEW_HASH, "bigint", "the hash of the row now; NULL: there is none any more"),
        FrameColumn(NEW_STATE, "bigint", "the hash of its state"),
    ),
    "the columns of the query, and, where rows are not read again, __group_key0 …",
)


@dataclass(frozen=True)
class StatedModel:
    """A model all of whose aggregates have states; the query of ``node`` gives these too."""

    node: Node
    query: GroupedQuery
    states: States
    row: T.StructType
    """What the query gives, and ``_state``."""

    @returns(TABLE_ROWS)
    def table_rows(self, rows: DataFrame, version: int) -> DataFrame:
        """Rows of the query as the table keeps them."""
        outputs = [column(output.name) for output in self.states.outputs]
        stated = rows.select(*outputs, F.expr(self.states.struct).alias(STATE))
        keys = [key.name for key in self.query.keys]
        return stated.withColumns(
            {KEY: key_hash(stated, keys), VERSION: F.lit(version).cast("bigint")}
        )

    def are_stored(self, work: Work, step: Step) -> bool:
        """Whether the table has these states, and columns of the types that it would have."""
        table = work.tables.read(step.model).schema
        stored = {field.name: _described(field) for field in table if field.name in self.row.names}
        return stored == {field.name: _described(field) for field in self.row}


def _described(field: T.StructField) -> str:
    return stored_type(field.dataType).simpleString()


def has_states(work: Work, step: Step) -> bool:
    """Whether the table has states of any form."""
    return STATE in work.tables.read(step.model).columns


def with_states(work: Work, node: Node, step: Step) -> StatedModel | None:
    """The model with states; None if some aggregate has none that is exact for its types."""
    query = node.grouped
    if query is None or query.followed is None:
        return None
    rows = user_columns(Feed(work, node, step, query.input).now)
    states = states_of(rows, query, node.fingerprint)
    if states is None:
        return None
    stated = _with_parts(node, states)
    given = work.sql(stated, {query.input: rows})
    names = [output.name for output in states.outputs]
    by_parts, by_query = (
        frame.select(*map(column, names)).dtypes
        for frame in (_outputs_of_parts(rows, query, states), given)
    )
    if by_parts != by_query:
        return None
    row = given.select(*map(column, names), F.expr(states.struct).alias(STATE)).schema
    return StatedModel(stated, query, states, row)


def _with_parts(node: Node, states: States) -> Node:
    """The model with the parts of states as further items of its SELECT."""
    at, sql = states.items_end, node.model.sql
    items = "".join(f", {part.sql} AS {part.name}" for part in states.stored) + " "
    references = tuple(
        replace(one, start=one.start + len(items), end=one.end + len(items))
        for one in node.references
    )
    model = replace(node.model, sql=f"{sql[:at]}{items}{sql[at:]}")
    return replace(node, model=model, references=references)


def _outputs_of_parts(rows: DataFrame, query: GroupedQuery, states: States) -> DataFrame:
    """The columns of the table as they follow from parts, of no rows: for their types."""
    keys = rows.select(
        *(F.expr(key.sql).alias(at) for key, at in zip(query.keys, key_columns(query), strict=True))
    )
    nothing = {part.name: F.expr(f"cast(NULL AS {part.type})") for part in states.parts}
    return _outputs(keys.withColumns({**nothing, _THERE: F.lit(True)}), query, states)


def _outputs(parts: DataFrame, query: GroupedQuery, states: States, *keep: str) -> DataFrame:
    """The columns of the table, of rows with merged parts, and the values of its aggregates."""
    own = dict(zip((key.name for key in query.keys), key_columns(query), strict=True))
    valued = parts.withColumns({name: F.expr(value.sql) for name, value in states.values})
    outputs = [
        F.expr(f"CASE WHEN {_THERE} THEN ({one.sql}\n) END") if one.sql else F.col(own[one.name])
        for one in states.outputs
    ]
    named = [one.alias(out.name) for one, out in zip(outputs, states.outputs, strict=True)]
    return valued.select(*keep, *named, *(name for name, _ in states.values))


def fold(work: Work, model: StatedModel, step: Step, announce: Prepared) -> Outcome:
    """Let the rows of changed keys follow, announce the outcome, commit what differs."""
    folding = StateFold(work, model, step)
    few, counts = folding.few, (F.count_if(DOUBT).alias("doubts"), F.sum(ROWS_OF_KEY).alias("rows"))
    # Few of them are computed where they are first read, not by a job of their own.
    rows = folding.followed(folding.changed_keys()).localCheckpoint(eager=not few)
    known = rows.where(~F.col(DOUBT))
    totals, looked_at = totals_of(rows, *counts, of=~F.col(DOUBT), keys=few)
    read, scanned = (looked_at["rows"] or 0) + totals.stored, folding.feed.rows_to_scan
    scanned += sum(state.rows for state in work.cells(step.model))
    if looked_at["doubts"]:
        found, seen = folding.read_again(rows.where(DOUBT), looked_at["doubts"])
        found = found.localCheckpoint()
        again, _ = totals_of(found, keys=few)
        known, totals = known.select(*found.columns).unionByName(found), totals + again
        more, looked_at_again = folding.scanned_for(seen)
        read, scanned = read + more + again.stored, scanned + looked_at_again
    differs = ~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH)) | F.coalesce(is_restated(), F.lit(False))
    return commit(work, step, totals, known.where(differs), (read, scanned), announce)


class StateFold(KeyedFold):
    """What a fold by states computes: changed keys, their rows, and those to be read again."""

    def __init__(self, work: Work, model: StatedModel, step: Step) -> None:
        super().__init__(work, model.node, step, model.query)
        self.model, self.states = model, model.states
        self.keys = key_columns(model.query)

    @returns(CHANGED_KEYS)
    def changed_keys(self) -> DataFrame:
        """The keys of changed rows, with what these do to parts, beside what is stored."""
        gone = self.feed.gone()
        frames = [(self.feed.added(), 1), *([] if gone is None else [(gone, -1)])]
        signed = [
            with_keys(user_columns(rows), self.query).withColumn(SIGN, F.lit(sign))
            for rows, sign in frames
        ]
        rows = reduce(DataFrame.unionByName, signed)
        made = [F.expr(sql).alias(name) for name, sql in changed_parts(self.states.parts).items()]
        keys = rows.groupBy(*self.keys).agg(F.count(F.lit(1)).alias(ROWS_OF_KEY), *made)
        keys = keys.withColumn(TOUCHED_KEY, key_hash(keys, self.keys))
        keys = keys.localCheckpoint(eager=not self.few)
        table = self.work.tables.read(self.step.model)
        old = table.select(
            F.col(KEY).alias(OLD_KEY),
            row_hash(table.schema).alias(OLD_HASH),
            state_hash(table.schema).alias(OLD_STATE),
            F.col(VERSION).alias(OLD_VERSION),
            *(
                F.expr(self.states.restored(part)).alias(f"s_{part.name}")
                for part in self.states.parts
            ),
        )
        return keys.join(self.of_keys(old, keys), F.col(TOUCHED_KEY) == F.col(OLD_KEY), "left")

    @returns(FOLLOWED_ROWS)
    def followed(self, keys: DataFrame) -> DataFrame:
        """The rows of changed keys as they follow from parts."""
        parts = keys.withColumns(
            {name: F.expr(sql) for name, sql in merged_parts(self.states.parts).items()}
        )
        unknown = [F.coalesce(F.expr(sql), F.lit(False)) for sql in doubts(self.states)]
        if self.states.having is not None:
            unknown.append(F.col(OLD_KEY).isNull())
        parts = parts.withColumn(DOUBT, reduce(or_, unknown))
        parts = parts.withColumns(
            {_THERE: ~F.col(DOUBT) & (F.col(ROWS) > 0), STATE: F.expr(self.states.struct)}
        )
        keep = [one.name for one in _STORED]
        keep += [*self.keys, ROWS_OF_KEY, DOUBT, _THERE, STATE]
        rows = _outputs(parts, self.query, self.states, *keep)
        there = F.col(_THERE)
        if self.states.having is not None:
            having = f"CASE WHEN {_THERE} THEN ({self.states.having}\n) END"
            there = F.coalesce(F.expr(having), F.lit(False))
        rows = rows.withColumn(KEY, F.when(there, F.col(TOUCHED_KEY)))
        return self._hashed(rows).drop(_THERE, *(name for name, _ in self.states.values))

    @returns(FOLLOWED_ROWS)
    def _hashed(self, rows: DataFrame) -> DataFrame:
        """The rows with their hashes; the version of one that did not change is the stored one."""
        names = [output.name for output in self.states.outputs]
        there = F.col(KEY).isNotNull()
        own = row_hash(rows.select(*map(column, names)).schema)
        hashed = rows.withColumns(
            {NEW_HASH: F.when(there, own), NEW_STATE: F.when(there, state_hash(rows.schema))}
        )
        same = F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH))
        version = F.when(same, F.col(OLD_VERSION)).otherwise(F.lit(self.step.version))
        return hashed.withColumn(VERSION, version.cast("bigint"))

    def read_again(self, doubted: DataFrame, keys: int) -> tuple[DataFrame, Seen]:
        """The rows of keys in doubt by the query itself, and how many rows it was over."""
        rows = self._rows_with(self.feed.now, doubted, KeyCounts(0, keys, keys))
        rows, seen = observed(rows, F.count(F.lit(1)).alias("rows"))
        made = self.work.sql(self.model.node, {self.query.input: rows})
        new = self.model.table_rows(made, self.step.version).drop(VERSION)
        stored = doubted.select(*(one.name for one in _STORED))
        return self._hashed(stored.join(new, F.col(TOUCHED_KEY) == F.col(KEY), "left")), seen
