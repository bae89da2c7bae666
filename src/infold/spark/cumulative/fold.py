"""
Cumulative aggregates: one row for each key of GROUP BY, updated by the keys of changed rows.

Where all aggregates of the query have states, its rows follow from these. Else
the query is evaluated over all rows of the keys that changed rows have, and its rows are compared
with the stored ones. A row that comes out as it was is left alone, and when all do, nothing is
committed.

A key that has no row in the table had no rows in the input either (unless HAVING left it out), so
its rows are among those that were added. The input is scanned only for keys that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.own_columns import KEY, STATE, VERSION, state_mark
from infold.core.plan import Action, Step
from infold.core.project import Node
from infold.core.queries import Aggregate, GroupedQuery, Output, quoted
from infold.core.record import Outcome
from infold.spark.content import column, expression_types, row_hash, state_hash, user_columns
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
    foldable_by_key,
    is_restated,
    kept_with_totals,
    key_columns,
    key_hash,
    with_keys,
)
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.feed import Feed
from infold.spark.observed import Aggregates, observed
from infold.spark.sessions.aggregates import decimal_average
from infold.spark.step_context import Work
from infold.spark.stored_types import sql_type, stored_type
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
    stated = with_states(work, node, step)
    if step.action is Action.FOLD and foldable_by_key(work, node, step, names):
        if stated is None and not has_states(work, step):
            return _RowFold(work, node, step, query).carry_out()
        if stated is not None and stated.are_stored(work, step):
            return fold(work, stated, step)
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


# The input is not read, but for the keys that are in doubt (see `parts`): their rows are read as by
# a fold without states. A key that has no row any more leaves the table, which the count of its
# rows tells. Under HAVING a key without a row in the table may have rows in the input, so it is in
# doubt.
#
# A row of which only the state changed is written again under the version that it had: readers of
# the table see no change.

# - A **count** or **sum** after a change is the stored one, plus that of the rows that came, minus
#   that of the rows that went. Whole numbers and decimals add exactly in any order.
# - A **least value** is the lesser of the stored one and that of the rows that came, unless a row
#   with the stored one went. Then it is that of the rows that came if this is no greater, and else
#   it is *in doubt*: the rows of the key have to be read. The greatest value is the mirror image.
#
# A sum with too many digits for its type is NULL: what is computed from it is in doubt, so that the
# query itself decides whether that is an error.

SIGN = "__sign"
"""Of a changed row: 1 if it came, -1 if it went."""
ROWS = "_n"
"""The part that counts the rows of a key."""


class Merge(StrEnum):
    """How a part follows from the stored one and from changed rows."""

    COUNT = "count"
    SUM = "sum"
    LEAST = "min"
    GREATEST = "max"
    LEAST_BY = "min_by"
    GREATEST_BY = "max_by"


@dataclass(frozen=True, slots=True)
class Part:
    """
    One part of the state of a row.

    ``argument`` is SQL over a row of the input, NULL where the row takes no part; None for a count
    of rows. ``type`` is that of the part. ``of`` names another part: for a sum how many values it
    has, for a value that is chosen the least or greatest one that it is chosen by.
    """

    name: str
    merge: Merge
    argument: str | None
    type: str
    of: str = ""
    by: str | None = None
    """What a value is chosen by, as ``argument``."""
    shown: str | None = None
    """The column of the table that shows its value; None: ``_state`` keeps it."""

    @property
    def sql(self) -> str:
        """The aggregate over all rows of a key."""
        if self.merge is Merge.COUNT:
            return f"count({self.argument or 1})"
        if self.merge is Merge.SUM:
            return f"cast(try_sum({self.argument}) AS {self.type})"
        if self.by is not None:
            return f"{self.merge}({self.argument}, {self.by})"
        return f"{self.merge}({self.argument})"


@dataclass(frozen=True, slots=True)
class Value:
    """An aggregate's value, as SQL over parts, and when it is in doubt besides."""

    sql: str
    doubt: str = "false"


@dataclass(frozen=True)
class States:
    """The states of a model's rows: their parts, and what is computed from them."""

    parts: tuple[Part, ...]
    values: tuple[tuple[str, Value], ...]
    """The name of each aggregate, and its value."""
    outputs: tuple[Output, ...]
    """The columns of the table; that of a key has no SQL."""
    having: str | None
    items_end: int
    mark: str

    @property
    def stored(self) -> tuple[Part, ...]:
        """The parts that no column shows."""
        return tuple(part for part in self.parts if part.shown is None)

    @property
    def struct(self) -> str:
        """SQL for ``_state``, of columns that have the parts."""
        mark = f"'{self.mark}', cast(NULL AS boolean)"
        fields = [f"'{part.name}', cast({part.name} AS {part.type})" for part in self.stored]
        return f"named_struct({', '.join([mark, *fields])})"

    def restored(self, part: Part) -> str:
        """SQL for a part, over a row of the table."""
        where = quoted(part.shown) if part.shown else f"{STATE}.{quoted(part.name)}"
        return f"cast({where} AS {part.type})"


def changed_parts(parts: Sequence[Part]) -> dict[str, str]:
    """
    Aggregates over changed rows, which have a ``SIGN``, by the names of their columns.

    ``d_`` is what to add to a count or sum (NULL: too many digits), ``a_`` the end of the rows that
    came and ``r_`` that of the rows that went.
    """
    columns = {}
    for part in parts:
        name, argument = part.name, part.argument
        if part.merge is Merge.COUNT:
            sign = SIGN if argument is None else f"CASE WHEN {argument} IS NOT NULL THEN {SIGN} END"
            columns[f"d_{name}"] = f"cast(coalesce(sum({sign}), 0) AS bigint)"
        elif part.merge is Merge.SUM:
            signed = f"coalesce(CASE WHEN {SIGN} < 0 THEN -{argument} ELSE {argument} END, 0)"
            columns[f"d_{name}"] = f"try_cast(try_sum({signed}) AS {part.type})"
        else:
            by = f", {part.by}" if part.by is not None else ""
            end = f"{part.merge}({argument}{by}) FILTER (WHERE {SIGN}"
            columns[f"a_{name}"] = f"{end} > 0)"
            if part.by is None:
                columns[f"r_{name}"] = f"{end} < 0)"
    return columns


def merged_parts(parts: Sequence[Part]) -> dict[str, str]:
    """
    The parts after a change, by name: SQL over the columns of :func:`changed_parts` and ``s_``, the
    stored ones.
    """
    by_name = {part.name: part for part in parts}
    return {part.name: _merged_part(part, by_name.get(part.of)) for part in parts}


def _merged_part(part: Part, of: Part | None) -> str:
    stored, name = f"s_{part.name}", part.name
    if part.merge is Merge.COUNT:
        return f"coalesce({stored}, 0L) + d_{name}"
    if part.merge is Merge.SUM:
        assert of is not None, "a sum has the count of its values"
        before = f"CASE WHEN s_{of.name} > 0 THEN {stored} ELSE cast(0 AS {part.type}) END"
        total = f"try_cast(try_add({before}, d_{name}) AS {part.type})"
        return f"CASE WHEN {_merged_part(of, None)} > 0 THEN {total} END"
    end = part if of is None else of
    return f"CASE WHEN coalesce({_takes_over(end)}, false) THEN a_{name} ELSE {stored} END"


def _takes_over(end: Part) -> str:
    """Whether the end of the rows that came takes the place of the stored one."""
    came, stored = f"a_{end.name}", f"s_{end.name}"
    sign = "<=" if end.merge is Merge.LEAST else ">="
    return f"({came} IS NOT NULL AND ({stored} IS NULL OR {came} {sign} {stored}))"


def doubts(states: States) -> list[str]:
    """When the parts do not tell a row: SQL over all of these columns and the merged parts."""
    conditions = []
    for part in states.parts:
        name = part.name
        if part.merge is Merge.COUNT:
            conditions += [f"{name} < 0", f"{name} > {ROWS}"]  # the table was tampered with
        elif part.merge is not Merge.SUM and part.by is None:
            inside = "<" if part.merge is Merge.LEAST else ">"
            lost_end = f"r_{name} IS NOT NULL AND NOT coalesce(s_{name} {inside} r_{name}, false)"
            regained = f"a_{name} {inside}= s_{name}"
            conditions.append(f"{ROWS} > 0 AND {lost_end} AND NOT coalesce({regained}, false)")
    return [*conditions, *(value.doubt for _, value in states.values if value.doubt != "false")]


OLD_VERSION = "__old_version"
"""The version that wrote the stored row."""
DOUBT = "__doubt"
"""Whether the rows of the key have to be read."""
_ROW_FOLLOWS = "__there"

_STORED_COLUMNS = (
    FrameColumn(TOUCHED_KEY, "string", "the hash of the key"),
    FrameColumn(OLD_KEY, "string", "the same where the table has a row of it, else NULL"),
    FrameColumn(OLD_HASH, "bigint", "the hash of that row"),
    FrameColumn(OLD_STATE, "bigint", "the hash of its state"),
    FrameColumn(OLD_VERSION, ANY, "the version that wrote it"),
)

CHANGED_KEYS = FrameSchema(
    "a key that changed rows have, with its stored row",
    (*_STORED_COLUMNS, FrameColumn(ROWS_OF_KEY, "bigint", "how many changed rows have it")),
    "__group_key0 … with its values, what changed rows do to the parts of its state (d_, a_, r_),"
    " and its stored parts (s_)",
)

FOLLOWED_ROWS = FrameSchema(
    "a key that changed rows have, with its row as it is now",
    (
        *_STORED_COLUMNS,
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
        stored = {field.name: _type_text(field) for field in table if field.name in self.row.names}
        return stored == {field.name: _type_text(field) for field in self.row}


def _type_text(field: T.StructField) -> str:
    return stored_type(field.dataType).simpleString()


def has_states(work: Work, step: Step) -> bool:
    """Whether the table has states of any form."""
    return STATE in work.tables.read(step.model).columns


def with_states(work: Work, node: Node, step: Step) -> StatedModel | None:
    """The model with states; None if some aggregate has none that is exact for its types."""
    query = node.grouped
    if query is None or query.followed is None:
        return None
    rows = user_columns(Feed(work, node, step, query.input).current)
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
        replace(table, start=table.start + len(items), end=table.end + len(items))
        for table in node.references
    )
    model = replace(node.model, sql=f"{sql[:at]}{items}{sql[at:]}")
    return replace(node, model=model, references=references)


def _outputs_of_parts(rows: DataFrame, query: GroupedQuery, states: States) -> DataFrame:
    """The columns of the table as they follow from parts, of no rows: for their types."""
    keys = rows.select(
        *(F.expr(key.sql).alias(at) for key, at in zip(query.keys, key_columns(query), strict=True))
    )
    nothing = {part.name: F.expr(f"cast(NULL AS {part.type})") for part in states.parts}
    return _output_columns(keys.withColumns({**nothing, _ROW_FOLLOWS: F.lit(True)}), query, states)


def _output_columns(parts: DataFrame, query: GroupedQuery, states: States, *keep: str) -> DataFrame:
    """The columns of the table, of rows with merged parts, and the values of its aggregates."""
    key_column = dict(zip((key.name for key in query.keys), key_columns(query), strict=True))
    valued = parts.withColumns({name: F.expr(value.sql) for name, value in states.values})
    outputs = [
        F.expr(f"CASE WHEN {_ROW_FOLLOWS} THEN ({out.sql}\n) END")
        if out.sql
        else F.col(key_column[out.name])
        for out in states.outputs
    ]
    named = [value.alias(out.name) for value, out in zip(outputs, states.outputs, strict=True)]
    return valued.select(*keep, *named, *(name for name, _ in states.values))


def fold(work: Work, model: StatedModel, step: Step) -> Outcome:
    """Let the rows of changed keys follow, commit what differs."""
    folding = StateFold(work, model, step)
    counts = F.count_if(DOUBT).alias("doubts"), F.sum(ROWS_OF_KEY).alias("rows")
    rows = folding.followed(folding.changed_keys())
    rows, totals, seen = kept_with_totals(rows, *counts, of=~F.col(DOUBT), keys=folding.few)
    certain = rows.where(~F.col(DOUBT))
    read, scanned = (seen.get("rows") or 0) + totals.stored, folding.feed.rows_to_scan
    scanned += sum(state.rows for state in work.cells(step.model))
    if seen.get("doubts"):
        read_rows, rows_seen = folding.read_again(rows.where(DOUBT), seen["doubts"])
        read_rows, more, _ = kept_with_totals(read_rows, keys=folding.few)
        certain, totals = certain.select(*read_rows.columns).unionByName(read_rows), totals + more
        rows_read, looked_at_again = folding.scanned_for(rows_seen)
        read, scanned = read + rows_read + more.stored, scanned + looked_at_again
    differs = ~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH)) | F.coalesce(is_restated(), F.lit(False))
    return commit(work, step, totals, certain.where(differs), (read, scanned))


class StateFold(KeyedFold):
    """What a fold by states computes: changed keys, their rows, and those to be read again."""

    def __init__(self, work: Work, model: StatedModel, step: Step) -> None:
        super().__init__(work, model.node, step, model.query)
        self.model, self.states = model, model.states
        self.keys = key_columns(model.query)

    @returns(CHANGED_KEYS)
    def changed_keys(self) -> DataFrame:
        """The keys of changed rows, with what these do to parts, beside what is stored."""
        removed = self.feed.removed()
        frames = [(self.feed.added(), 1), *([] if removed is None else [(removed, -1)])]
        signed = [
            with_keys(user_columns(rows), self.query).withColumn(SIGN, F.lit(sign))
            for rows, sign in frames
        ]
        rows = reduce(DataFrame.unionByName, signed)
        sums = [F.expr(sql).alias(name) for name, sql in changed_parts(self.states.parts).items()]
        keys = rows.groupBy(*self.keys).agg(F.count(F.lit(1)).alias(ROWS_OF_KEY), *sums)
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
            {_ROW_FOLLOWS: ~F.col(DOUBT) & (F.col(ROWS) > 0), STATE: F.expr(self.states.struct)}
        )
        keep = [stored.name for stored in _STORED_COLUMNS]
        keep += [*self.keys, ROWS_OF_KEY, DOUBT, _ROW_FOLLOWS, STATE]
        rows = _output_columns(parts, self.query, self.states, *keep)
        has_row = F.col(_ROW_FOLLOWS)
        if self.states.having is not None:
            having = f"CASE WHEN {_ROW_FOLLOWS} THEN ({self.states.having}\n) END"
            has_row = F.coalesce(F.expr(having), F.lit(False))
        rows = rows.withColumn(KEY, F.when(has_row, F.col(TOUCHED_KEY)))
        return self._hashed(rows).drop(_ROW_FOLLOWS, *(name for name, _ in self.states.values))

    @returns(FOLLOWED_ROWS)
    def _hashed(self, rows: DataFrame) -> DataFrame:
        """The rows with their hashes; the version of one that did not change is the stored one."""
        names = [output.name for output in self.states.outputs]
        has_row = F.col(KEY).isNotNull()
        hash_ = row_hash(rows.select(*map(column, names)).schema)
        hashed = rows.withColumns(
            {NEW_HASH: F.when(has_row, hash_), NEW_STATE: F.when(has_row, state_hash(rows.schema))}
        )
        same = F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH))
        version = F.when(same, F.col(OLD_VERSION)).otherwise(F.lit(self.step.version))
        return hashed.withColumn(VERSION, version.cast("bigint"))

    def read_again(self, doubted: DataFrame, keys: int) -> tuple[DataFrame, Aggregates]:
        """The rows of keys in doubt by the query itself, and how many rows it was over."""
        rows = self._rows_with(self.feed.current, doubted, KeyCounts(0, keys, keys))
        rows, row_count = observed(rows, F.count(F.lit(1)).alias("rows"))
        query_rows = self.work.sql(self.model.node, {self.query.input: rows})
        new = self.model.table_rows(query_rows, self.step.version).drop(VERSION)
        stored = doubted.select(*(stored_column.name for stored_column in _STORED_COLUMNS))
        return self._hashed(stored.join(new, F.col(TOUCHED_KEY) == F.col(KEY), "left")), row_count


# Each aggregate is computed from *parts*: counts, exact sums, least and greatest values of its
# key's rows. A part that a column of the table shows is read from there, the others are in
# `_state`. A value is as Spark's own aggregate would have it; where that is not certain, it is in
# doubt.

_WHOLE_NUMBER = "decimal(38,0)"
_EXACT_DOUBLES = 2**53
"""Up to here every whole number is a double."""


def states_of(rows: DataFrame, query: GroupedQuery, fingerprint: str) -> States | None:
    """
    The states for a query over ``rows``; None if some aggregate has none that is exact.

    Keys with a collation have none: equal ones differ, and any of them is shown.
    """
    followed = query.followed
    if followed is None:
        return None
    keys = rows.select(*(F.expr(key.sql) for key in query.keys)).schema.fields
    if not all(_is_key(key.dataType) for key in keys):
        return None
    column_of = {output.sql.strip(): output.name for output in followed.outputs}
    arguments = [text for aggregate in followed.aggregates for text in _typed_arguments(aggregate)]
    collected = _Parts(expression_types(rows, arguments))
    collected.add(Merge.COUNT, None, "bigint", name=ROWS)
    values = []
    for aggregate in followed.aggregates:
        value = collected.value(aggregate, column_of.get(aggregate.name))
        if value is None:
            return None
        values.append((aggregate.name, value))
    mark = state_mark(fingerprint)
    parts, outputs = tuple(collected.parts.values()), followed.outputs
    return States(parts, tuple(values), outputs, followed.having, followed.items_end, mark)


@dataclass
class _Parts:
    """Collects the parts of aggregates; equal ones are one. ``types`` are those of arguments."""

    types: Mapping[str, T.DataType]
    parts: dict[tuple[Merge, str | None, str | None], Part] = field(default_factory=dict)

    def add(
        self,
        merge: Merge,
        argument: str | None,
        type_: str,
        *,
        of: str = "",
        by: str | None = None,
        shown: str | None = None,
        name: str | None = None,
    ) -> Part:
        """The part of that kind; ``shown`` is the column with its value, if there is one."""
        same_part = self.parts.get((merge, argument, by))
        name = same_part.name if same_part else name or f"_p{len(self.parts)}"
        shown = same_part.shown if same_part and same_part.shown else shown
        part = Part(name, merge, argument, type_, of, by, shown)
        self.parts[merge, argument, by] = part
        return part

    def value(self, call: Aggregate, shown: str | None) -> Value | None:
        """The value of an aggregate, with its parts added; None: it has no exact state."""
        if call.call in ("count", "count_if"):
            argument = call.argument
            if call.call == "count_if":
                argument = f"CASE WHEN ({call.argument}\n) THEN 1 END"
            counted = self._where(call, argument) if call.filter or argument else None
            part = self.add(Merge.COUNT, counted, "bigint", shown=shown)
            return Value(part.name)
        assert call.argument is not None, "only a count is of rows"
        return _VALUE_OF_CALL[call.call](self, call, self.types[call.argument], shown)

    def _where(self, call: Aggregate, sql: str | None) -> str:
        """SQL over a row, NULL where FILTER leaves it out: there it may raise."""
        inner = "1" if sql is None else f"({sql}\n)"
        return inner if call.filter is None else f"CASE WHEN ({call.filter}\n) THEN {inner} END"

    def total(self, aggregate: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """A sum of whole numbers or decimals; NULL without values, as a sum of none."""
        exact = _sum_types(type_)
        if exact is None:
            return None
        working, result = exact
        argument = self._where(aggregate, aggregate.argument)
        count = self.add(Merge.COUNT, argument, "bigint")
        whole = not isinstance(type_, T.DecimalType)
        summand = f"cast({argument} AS decimal(19,0))" if whole else argument
        part = self.add(Merge.SUM, summand, working, of=count.name, shown=shown)
        value = f"try_cast({part.name} AS {result})"
        return Value(value, f"{count.name} > 0 AND {value} IS NULL")

    def average(self, aggregate: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """
        An average, as Spark computes it.

        Of whole numbers it adds doubles: exact in any order as long as the sum of what they amount
        to is. That of decimals is rounded once.
        """
        del shown
        total = self.total(aggregate, type_, None)
        if total is None:
            return None
        argument = self._where(aggregate, aggregate.argument)
        count = self.add(Merge.COUNT, argument, "bigint").name
        if isinstance(type_, T.DecimalType):
            part = self.parts[Merge.SUM, argument, None]
            sql = decimal_average(part.name, count, type_)
            if sql is None:
                return None
            return Value(f"CASE WHEN {count} > 0 THEN {sql} END", total.doubt)
        whole = f"cast({argument} AS decimal(19,0))"
        part = self.parts[Merge.SUM, whole, None]
        size = self.add(Merge.SUM, f"abs({whole})", _WHOLE_NUMBER, of=count).name
        sql = f"cast({part.name} AS double) / cast({count} AS double)"
        doubt = f"{count} > 0 AND NOT coalesce({size} <= {_EXACT_DOUBLES}, false)"
        return Value(f"CASE WHEN {count} > 0 THEN {sql} END", doubt)

    def extreme(self, aggregate: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """A least or greatest value, of a type where equal ones are the same."""
        if not is_exact(type_):
            return None
        merge = Merge(aggregate.call)
        argument = self._where(aggregate, aggregate.argument)
        part = self.add(merge, argument, sql_type(type_), shown=shown)
        return Value(part.name)

    def boolean(self, aggregate: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """Whether some, or all, values are true: by how many are."""
        del shown
        if not isinstance(type_, T.BooleanType):
            return None
        argument = self._where(aggregate, aggregate.argument)
        count = self.add(Merge.COUNT, argument, "bigint").name
        true = self.add(Merge.COUNT, f"CASE WHEN {argument} THEN 1 END", "bigint").name
        test = f"{true} > 0" if aggregate.call == "bool_or" else f"{true} = {count}"
        return Value(f"CASE WHEN {count} > 0 THEN {test} END")

    def chosen(self, call: Aggregate, type_: T.DataType, shown: str | None) -> Value | None:
        """
        A value by the least or greatest of another.

        Rows of a key that agree in what it is chosen by agree in the value: the analysis refuses
        others.
        """
        assert call.order is not None, "it is chosen by something"
        of = self.types[call.order]
        if not is_exact(of) or not is_exact(type_):
            return None
        by, argument = self._where(call, call.order), self._where(call, call.argument)
        end = Merge.LEAST if call.call == "min_by" else Merge.GREATEST
        extreme = self.add(end, by, sql_type(of))
        merge = Merge(call.call)
        type_name = sql_type(type_)
        part = self.add(merge, argument, type_name, of=extreme.name, by=by, shown=shown)
        return Value(part.name)


_VALUE_OF_CALL: dict[str, Callable[[_Parts, Aggregate, T.DataType, str | None], Value | None]] = {
    "sum": _Parts.total,
    "avg": _Parts.average,
    "min": _Parts.extreme,
    "max": _Parts.extreme,
    "bool_and": _Parts.boolean,
    "bool_or": _Parts.boolean,
    "min_by": _Parts.chosen,
    "max_by": _Parts.chosen,
}


def _typed_arguments(aggregate: Aggregate) -> Iterator[str]:
    """The arguments of which the types decide whether there is a state."""
    if aggregate.call not in ("count", "count_if"):
        yield from filter(None, (aggregate.argument, aggregate.order))


def _sum_types(type_: T.DataType) -> tuple[str, str] | None:
    """
    The type in which values are summed exactly, and the type of Spark's own sum.

    Two sums of 38 digits are added without rounding only if at most 6 are behind the point.
    """
    if isinstance(type_, T.ByteType | T.ShortType | T.IntegerType | T.LongType):
        return _WHOLE_NUMBER, "bigint"
    if isinstance(type_, T.DecimalType):
        digits = min(38, type_.precision + 10)
        if digits == 38 and type_.scale > 6:
            return None
        result = f"decimal({digits},{type_.scale})"
        return result, result
    return None


_COMPARABLE_TYPES = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DecimalType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.BinaryType,
)


def is_exact(type_: T.DataType) -> bool:
    """Whether values can be compared, and equal ones are the same: no doubles, no collations."""
    if isinstance(type_, T.ArrayType):
        return is_exact(type_.elementType)
    if isinstance(type_, T.StructType):
        return all(f.name.isidentifier() and is_exact(f.dataType) for f in type_.fields)
    return isinstance(type_, _COMPARABLE_TYPES) or type_ == T.StringType()


def _is_key(type_: T.DataType) -> bool:
    """Whether equal keys are shown alike; GROUP BY makes equal doubles the same."""
    return is_exact(type_) or isinstance(type_, T.DoubleType | T.FloatType)
