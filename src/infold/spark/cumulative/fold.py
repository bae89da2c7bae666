"""
Cumulative aggregates: one row for each key of GROUP BY, updated by the keys of changed rows.

A row follows from the input's rows of its own key. So only rows of the keys of added and removed
rows can change: the query is evaluated over just the rows of these keys, its rows are compared with
the stored ones, and one commit removes the stored rows that differ and adds the new ones. A row
that comes out as it was is left alone, and when all do, nothing is committed.

A key that has no row in the table had no rows in the input either (unless HAVING left it out), so
its rows are among those that were added. The input is scanned only for keys that are there already.

Keys may be NULL, and MERGE matches no NULLs, so each row has a hash of its keys (``KEY``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import EVER
from infold.core.own_columns import KEY, VERSION
from infold.core.plan import Action, Step
from infold.core.ports import Prepared
from infold.core.project import Node
from infold.core.queries import GroupedQuery
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, signed
from infold.spark.content import JSON, column, content, row_hash, user_columns
from infold.spark.fold_commit import RowChanges, announce_and_commit
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.changed_keys import SMALL
from infold.spark.inputs.feed import Feed, foldable
from infold.spark.step_context import Work
from infold.spark.time_range import recompute

NEW_HASH, OLD_HASH = "__new_hash", "__old_hash"
"""The hash of a row as it is now, and as it is stored; NULL where there is none."""
OLD_KEY, TOUCHED_KEY = "__old_key", "__touched_key"
"""The hash of a stored row's keys, and that of the keys of changed rows."""
ROWS_OF_KEY = "__rows_of_key"
"""How many changed rows have a key."""

TABLE_ROWS = FrameSchema(
    "a row of the table",
    (
        FrameColumn(KEY, "string", "the MD5 of its keys, of NULLs too"),
        FrameColumn(VERSION, ANY, "the version of the table that wrote it"),
    ),
    "the columns of the query",
)

KEYED_ROWS = FrameSchema(
    "a row of the input that the query takes",
    (),
    "the columns that the query reads, and __group_key0 … with its keys",
)

TOUCHED_KEYS = FrameSchema(
    "a key that changed rows have",
    (
        FrameColumn(ROWS_OF_KEY, "bigint", "how many changed rows have it"),
        FrameColumn(TOUCHED_KEY, "string", "its hash"),
        FrameColumn(OLD_KEY, "string", "the same where the table has a row of it, else NULL"),
        FrameColumn(OLD_HASH, "bigint", "the hash of that row"),
    ),
    "__group_key0 …, its values",
)

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


def carry_out(work: Work, step: Step, announce: Prepared) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    names = [key.name for key in _query(node).keys]
    if step.action is Action.FOLD and foldable_by_key(work, node, step, names):
        return _fold(work, node, step, announce)
    rows = recompute.definition(work, node, step)
    return recompute.build(work, node, step, _table_rows(rows, _query(node), step.version))


def foldable_by_key(work: Work, node: Node, step: Step, names: Sequence[str]) -> bool:
    """Whether there is a table to fold into, changes can be found, and keys can be compared."""
    if not foldable(work, node, step):
        return False
    keys = work.tables.read(step.model).select(*map(column, names))
    return not any("map<" in type_ for _, type_ in keys.dtypes)


def _query(node: Node) -> GroupedQuery:
    """The model's compiled query."""
    assert node.grouped is not None, "a cumulative aggregate has a compiled query"
    return node.grouped


@returns(TABLE_ROWS)
def _table_rows(rows: DataFrame, query: GroupedQuery, version: int) -> DataFrame:
    """Rows of the query as the table keeps them."""
    keys = [key.name for key in query.keys]
    return rows.withColumns({KEY: key_hash(rows, keys), VERSION: F.lit(version).cast("bigint")})


def key_hash(rows: DataFrame, keys: Sequence[str]) -> Column:
    """The MD5 of a text that differs for different keys; NULL is a key like others."""
    types = rows.select(*map(column, keys)).schema.fields
    texts = [_as_text(column(key), field.dataType) for key, field in zip(keys, types, strict=True)]
    known = [F.concat(F.octet_length(text).cast("string"), F.lit(":"), text) for text in texts]
    return F.md5(F.concat(*(F.coalesce(text, F.lit("-")) for text in known)).cast("binary"))


def _as_text(key: Column, type_: T.DataType) -> Column:
    """A key of any type as a text."""
    if isinstance(type_, T.BinaryType):
        return F.hex(key)
    if isinstance(type_, T.ArrayType | T.StructType):
        return F.to_json(key, JSON)
    return key.cast("string")


@dataclass(frozen=True)
class Totals:
    """What differs, summed up: the rows to add and to remove, and the sums of their hashes."""

    added: int
    added_content: int
    removed: int
    removed_content: int
    stored: int
    """How many of the keys had a row."""


def _fold(work: Work, node: Node, step: Step, announce: Prepared) -> Outcome:
    """Evaluate the keys of changed rows, announce the outcome, commit what differs."""
    fold = KeyedFold(work, node, step, _query(node))
    touched, counts = fold.touched_keys()
    totals, different = None, None
    read, scanned = counts.rows, fold.feed.rows_to_scan
    if counts.keys:
        rows, seen = fold.rows_of_keys(touched, counts)
        new = _table_rows(work.sql(node, {fold.query.input: rows}), fold.query, step.version)
        compared = _compared(new, touched).localCheckpoint()
        totals = totals_of(compared)
        different = compared.where(~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH)))
        read += totals.stored
        scanned += sum(state.rows for state in work.cells(step.model))
        if seen is not None:
            # Spark forgets what it observed in a plan that turned out to be empty.
            read += int(seen.get.get("rows") or 0)
            scanned += sum(state.rows for state in fold.feed.cells)
    return commit(work, step, totals, different, (read, scanned), announce)


@dataclass(frozen=True)
class KeyCounts:
    """Rows added or removed, their keys, and for how many of these the input is scanned."""

    rows: int
    keys: int
    scanned_keys: int


class KeyedFold:
    """What a fold reads: the changed rows, their keys, and the rows of these keys."""

    def __init__(self, work: Work, node: Node, step: Step, query: GroupedQuery) -> None:
        self.work, self.step, self.query = work, step, query
        self.feed = Feed(work, node, step, self.query.input)

    def touched_keys(self) -> tuple[DataFrame, KeyCounts]:
        """The keys of changed rows, each beside the hash of its stored row, and their counts."""
        names = key_columns(self.query)
        removed = self.feed.gone()
        frames = [self.feed.added()] if removed is None else [self.feed.added(), removed]
        keyed = [_with_keys(frame, self.query).select(*names) for frame in frames]
        rows = reduce(DataFrame.unionAll, keyed)
        keys = rows.groupBy(*names).agg(F.count(F.lit(1)).alias(ROWS_OF_KEY))
        keys = keys.withColumn(TOUCHED_KEY, key_hash(keys, names)).localCheckpoint()
        found = self.beside_stored(keys).localCheckpoint()
        to_scan = F.count(F.lit(1)) if self.query.having else F.count(OLD_KEY)
        row = found.agg(
            F.sum(ROWS_OF_KEY).alias("rows"),
            F.count(F.lit(1)).alias("keys"),
            to_scan.alias("scanned_keys"),
        ).collect()[0]
        counts = KeyCounts(row["rows"] or 0, row["keys"], row["scanned_keys"])
        return found, counts

    @returns(TOUCHED_KEYS)
    def beside_stored(self, keys: DataFrame) -> DataFrame:
        """Keys, each with the hash of its stored row."""
        table = self.work.tables.read(self.step.model)
        old = table.select(F.col(KEY).alias(OLD_KEY), row_hash(table.schema).alias(OLD_HASH))
        sent = F.broadcast(keys) if self.feed.rows <= SMALL else keys
        old = old.join(sent.select(TOUCHED_KEY), F.col(OLD_KEY) == F.col(TOUCHED_KEY), "left_semi")
        return keys.join(old, F.col(TOUCHED_KEY) == F.col(OLD_KEY), "left")

    def rows_of_keys(
        self, touched: DataFrame, counts: KeyCounts
    ) -> tuple[DataFrame, Observation | None]:
        """All rows of the touched keys, and how many were found by scanning the input."""
        known = F.lit(True) if self.query.having else F.col(OLD_KEY).isNotNull()
        frames, seen = [], None
        if counts.scanned_keys:
            found = self._rows_with(self.feed.now, touched.where(known), counts)
            seen = Observation()
            frames.append(found.observe(seen, F.count(F.lit(1)).alias("rows")))
        if counts.scanned_keys < counts.keys:
            frames.append(self._rows_with(self.feed.added(), touched.where(~known), counts))
        return reduce(DataFrame.unionByName, frames), seen

    def _rows_with(self, rows: DataFrame, keys: DataFrame, counts: KeyCounts) -> DataFrame:
        """Of some rows those with these keys: the columns that the query reads."""
        query, names = self.query, key_columns(self.query)
        rows = _with_keys(user_columns(rows), query)
        if query.columns is not None:
            rows = rows.select(*map(column, query.columns), *names)
        wanted = keys.select(*(F.col(name).alias(f"{name}_wanted") for name in names))
        wanted = F.broadcast(wanted) if counts.keys <= SMALL else wanted
        same = [F.col(name).eqNullSafe(F.col(f"{name}_wanted")) for name in names]
        return rows.join(wanted, reduce(and_, same), "left_semi").drop(*names)


def key_columns(query: GroupedQuery) -> list[str]:
    """The columns of an input row for the keys of GROUP BY."""
    return [f"__group_key{at}" for at in range(len(query.keys))]


@returns(KEYED_ROWS)
def _with_keys(rows: DataFrame, query: GroupedQuery) -> DataFrame:
    """The rows that the query takes, with their keys."""
    taken = rows.where(query.where) if query.where else rows
    return taken.withColumns(
        {name: F.expr(key.sql) for name, key in zip(key_columns(query), query.keys, strict=True)}
    )


@returns(COMPARED_ROWS)
def _compared(new: DataFrame, touched: DataFrame) -> DataFrame:
    """The rows of the keys as they are now, beside the hashes of those that are stored."""
    hashed = new.withColumn(NEW_HASH, row_hash(new.schema))
    stored = touched.select(TOUCHED_KEY, OLD_KEY, OLD_HASH)
    return stored.join(hashed, F.col(TOUCHED_KEY) == F.col(KEY), "left").drop(TOUCHED_KEY)


def totals_of(compared: DataFrame) -> Totals:
    """Sums over the rows that differ."""
    differs = ~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH))
    sums = []
    for name in (NEW_HASH, OLD_HASH):
        value = F.when(differs, F.col(name))
        sums += [
            F.count(value).alias(f"{name}_n"),
            F.sum(F.shiftright(value, 32)).alias(f"{name}_hi"),
            F.sum(value.bitwiseAND(F.lit(0xFFFFFFFF))).alias(f"{name}_lo"),
        ]
    row = compared.agg(*sums, F.count(OLD_HASH).alias("stored")).collect()[0]
    plus, minus = (content(row[f"{n}_hi"] or 0, row[f"{n}_lo"] or 0) for n in (NEW_HASH, OLD_HASH))
    return Totals(row[f"{NEW_HASH}_n"], plus, row[f"{OLD_HASH}_n"], minus, row["stored"])


def commit(
    work: Work,
    step: Step,
    totals: Totals | None,
    different: DataFrame | None,
    looked_at: tuple[int, int],
    announce: Prepared,
) -> Outcome:
    """Announce the outcome, and commit what differs."""
    assert step.trace is not None, "a planned step has its trace"
    changes = _cell_changes(work, step, totals)
    read, scanned = looked_at
    outcome = Outcome(
        model=step.model,
        version=step.version,
        trace=step.trace,
        changes=changes,
        committed=bool(changes),
        receipt=Receipt(
            read=read,
            scanned=scanned,
            written=sum(change.added for change in changes),
            removed=sum(change.removed for change in changes),
            cells_built=1,
            cells_cut_off=1 - len(changes),
            commits=len(changes),
        ),
    )
    rows = None
    if totals is not None and different is not None and changes:
        rows = _row_changes(totals, different)
    return announce_and_commit(work, step, outcome, rows, announce)


def _row_changes(totals: Totals, different: DataFrame) -> RowChanges:
    """The rows to add, and the keys of those to remove."""
    insert = different.where(F.col(KEY).isNotNull()).drop(NEW_HASH, OLD_HASH, OLD_KEY)
    if not totals.removed:
        return RowChanges(insert, None, (KEY,))
    delete = different.where(F.col(OLD_KEY).isNotNull()).select(F.col(OLD_KEY).alias(KEY))
    return RowChanges(insert, delete, (KEY,))


def _cell_changes(work: Work, step: Step, totals: Totals | None) -> tuple[CellChange, ...]:
    """The change of the table's one cell, if any row of it differs."""
    if totals is None or not (totals.added or totals.removed):
        return ()
    before = next(iter(work.cells(step.model)), CellState(EVER, 0, 0))
    change = CellChange(
        cell=EVER,
        added=totals.added,
        removed=totals.removed,
        rows_before=before.rows,
        rows_after=before.rows + totals.added - totals.removed,
        content_before=before.content,
        content_after=signed(before.content + totals.added_content - totals.removed_content),
    )
    return (change,)
