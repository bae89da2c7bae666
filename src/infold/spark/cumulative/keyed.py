"""
What folds by key have in common: the keys of changed rows, the rows of these keys, and the commit.

A row follows from the input's rows of its own key. So only rows of the keys of added and removed
rows can change. What they are now is compared with the stored rows, and one commit removes the
stored rows that differ and adds the new ones.

Keys may be NULL, and MERGE matches no NULLs, so each row has a hash of its keys (``KEY``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import EVER
from infold.core.own_columns import KEY, STATE, VERSION
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import GroupedQuery
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, CellState, signed
from infold.spark import key_filter
from infold.spark.content import JSON, column, content, row_hash, user_columns
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.inputs.changed_keys import MOST_BROADCAST_KEYS
from infold.spark.inputs.feed import Feed, foldable
from infold.spark.observed import Aggregates, kept_and_observed, observed
from infold.spark.step_commit import Computed, RowChanges, commit_step
from infold.spark.step_context import Work
from infold.spark.stored_types import FLOATING, contains_type

NEW_HASH, OLD_HASH = "__new_hash", "__old_hash"
"""The hash of a row as it is now, and as it is stored; NULL where there is none."""
OLD_KEY, TOUCHED_KEY = "__old_key", "__touched_key"
"""The hash of a stored row's keys, and that of the keys of changed rows."""
ROWS_OF_KEY = "__rows_of_key"
"""How many changed rows have a key."""
OLD_STATE, NEW_STATE = "__old_state", "__new_state"
"""The hash of a row's state as it is stored, and as it is now, where rows have states."""

TABLE_ROWS = FrameSchema(
    "a row of the table",
    (
        FrameColumn(KEY, "string", "the MD5 of its keys, of NULLs too"),
        FrameColumn(VERSION, ANY, "the version of the table that wrote it"),
        FrameColumn(STATE, "struct<…", "its state", "models all of whose aggregates have one"),
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


def foldable_by_key(work: Work, node: Node, step: Step, names: Sequence[str]) -> bool:
    """Whether there is a table to fold into, changes can be found, and keys can be compared."""
    if not foldable(work, node, step):
        return False
    keys = work.tables.read(step.model).select(*map(column, names))
    return not any("map<" in type_ for _, type_ in keys.dtypes)


def key_hash(rows: DataFrame, keys: Sequence[str]) -> Column:
    """The MD5 of a text that differs for different keys; NULL is a key like others."""
    types = rows.select(*map(column, keys)).schema.fields
    texts = [_as_text(column(key), field.dataType) for key, field in zip(keys, types, strict=True)]
    measured = [F.concat(F.octet_length(text).cast("string"), F.lit(":"), text) for text in texts]
    return F.md5(F.concat(*(F.coalesce(text, F.lit("-")) for text in measured)).cast("binary"))


def _as_text(key: Column, type_: T.DataType) -> Column:
    """A key of any type as a text."""
    if isinstance(type_, T.BinaryType):
        return F.hex(key)
    if isinstance(type_, T.ArrayType | T.StructType):
        return F.to_json(_without_signs(key, type_), JSON)
    return _without_signs(key, type_).cast("string")


def _without_signs(key: Column, type_: T.DataType) -> Column:
    """A key whose zeros have no sign: GROUP BY does not tell them apart."""
    if isinstance(type_, FLOATING):
        return key + F.lit(0.0).cast(type_)
    if not contains_type(type_, *FLOATING):
        return key
    if isinstance(type_, T.ArrayType):
        return F.transform(key, lambda element: _without_signs(element, type_.elementType))
    assert isinstance(type_, T.StructType), "keys are not maps"
    fields = (
        _without_signs(key.getField(field.name), field.dataType).alias(field.name)
        for field in type_
    )
    return F.when(key.isNotNull(), F.struct(*fields))


@dataclass(frozen=True)
class Totals:
    """What differs, summed up: the rows to add and to remove, and the sums of their hashes."""

    added: int
    added_content: int
    removed: int
    removed_content: int
    stored: int
    """How many of the keys had a row."""
    restated: int = 0
    """Rows of which only the state differs."""
    removed_keys: tuple[int, ...] = ()
    """Hashes of the keys of removed and restated rows, where they were asked for."""

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class KeyCounts:
    """Rows added or removed, their keys, and for how many of these the input is scanned."""

    rows: int
    keys: int
    scanned_keys: int


class KeyedFold:
    """What a fold reads: the changed rows, their keys, and the rows of these keys."""

    scans_of_table = 1
    """How often the table's rows are scanned."""

    def __init__(self, work: Work, node: Node, step: Step, query: GroupedQuery) -> None:
        self.work, self.node, self.step, self.query = work, node, step, query
        self.feed = Feed(work, node, step, self.query.input)

    def compared(self, rows: DataFrame, touched: DataFrame) -> DataFrame:
        """What the table has of touched keys, and what it is to have by all ``rows`` of these."""
        raise NotImplementedError

    def carry_out(self) -> Outcome:
        """Evaluate the keys of changed rows, and commit what differs."""
        touched, counts = self.touched_keys()
        totals, different = None, None
        read, scanned = counts.rows, self.feed.rows_to_scan
        if counts.keys:
            rows, row_count = self.rows_of_keys(touched, counts)
            compared = self.compared(rows, touched)
            compared, totals, _ = kept_with_totals(compared, keys=self.few)
            different = compared.where(~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH)))
            stored = sum(state.rows for state in self.work.cells(self.step.model))
            read, scanned = read + totals.stored, scanned + self.scans_of_table * stored
            if row_count is not None:
                rows_of_keys, rows_of_input = self.scanned_for(row_count)
                read, scanned = read + rows_of_keys, scanned + rows_of_input
        return commit(self.work, self.step, totals, different, (read, scanned))

    def touched_keys(self) -> tuple[DataFrame, KeyCounts]:
        """The keys of changed rows, each beside the hash of its stored row, and their counts."""
        names = key_columns(self.query)
        removed = self.feed.removed()
        frames = [self.feed.added()] if removed is None else [self.feed.added(), removed]
        keyed = [with_keys(frame, self.query).select(*names) for frame in frames]
        rows = reduce(DataFrame.unionAll, keyed)
        keys = rows.groupBy(*names).agg(F.count(F.lit(1)).alias(ROWS_OF_KEY))
        keys = keys.withColumn(TOUCHED_KEY, key_hash(keys, names))
        # Few of them are computed where they are first read, not by a job of their own.
        keys = keys.localCheckpoint(eager=not self.few)
        with_stored, counts = kept_and_observed(
            self.beside_stored(keys),
            F.sum(ROWS_OF_KEY).alias("rows"),
            F.count(F.lit(1)).alias("keys"),
            F.count(F.lit(1) if self.query.having else OLD_KEY).alias("scanned_keys"),
        )
        # Spark forgets what it observed where there are none.
        numbers = (counts.get(name) or 0 for name in ("rows", "keys", "scanned_keys"))
        return with_stored, KeyCounts(*numbers)

    @returns(TOUCHED_KEYS)
    def beside_stored(self, keys: DataFrame) -> DataFrame:
        """Keys, each with the hash of its stored row."""
        table = self.work.tables.read(self.step.model)
        old = table.select(F.col(KEY).alias(OLD_KEY), row_hash(table.schema).alias(OLD_HASH))
        return keys.join(self.of_keys(old, keys), F.col(TOUCHED_KEY) == F.col(OLD_KEY), "left")

    @property
    def few(self) -> bool:
        """Whether the changed rows, and so their keys, are few enough to be anywhere at once."""
        return self.feed.rows <= MOST_BROADCAST_KEYS

    def of_keys(self, stored: DataFrame, keys: DataFrame) -> DataFrame:
        """Of stored rows with the hash of their key (``OLD_KEY``), those of some keys."""
        # At most a key for each changed row.
        sent = F.broadcast(keys) if self.few else keys
        same = F.col(OLD_KEY) == F.col(TOUCHED_KEY)
        return stored.join(sent.select(TOUCHED_KEY), same, "left_semi")

    def scanned_for(self, row_count: Aggregates) -> tuple[int, int]:
        """How many rows a scan of the input found, and how many it looked at."""
        # Spark forgets what it observed in a plan that turned out to be empty.
        return int(row_count.get.get("rows") or 0), sum(state.rows for state in self.feed.cells)

    def rows_of_keys(
        self, touched: DataFrame, counts: KeyCounts
    ) -> tuple[DataFrame, Aggregates | None]:
        """All rows of the touched keys, and how many were found by scanning the input."""
        stored = F.lit(True) if self.query.having else F.col(OLD_KEY).isNotNull()
        frames, row_count = [], None
        if counts.scanned_keys:
            scanned = self._rows_with(self.feed.current, touched.where(stored), counts)
            scanned, row_count = observed(scanned, F.count(F.lit(1)).alias("rows"))
            frames.append(scanned)
        if counts.scanned_keys < counts.keys:
            frames.append(self._rows_with(self.feed.added(), touched.where(~stored), counts))
        return reduce(DataFrame.unionByName, frames), row_count

    def _rows_with(self, rows: DataFrame, keys: DataFrame, counts: KeyCounts) -> DataFrame:
        """Of some rows those with these keys: the columns that the query reads."""
        query, names = self.query, key_columns(self.query)
        rows = with_keys(user_columns(rows), query)
        if query.columns is not None:
            rows = rows.select(*map(column, query.columns), *names)
        key_values = keys.select(*(F.col(name).alias(f"{name}_wanted") for name in names))
        # At most ``MOST_BROADCAST_KEYS`` keys.
        key_values = F.broadcast(key_values) if counts.keys <= MOST_BROADCAST_KEYS else key_values
        same = [F.col(name).eqNullSafe(F.col(f"{name}_wanted")) for name in names]
        return rows.join(key_values, reduce(and_, same), "left_semi").drop(*names)


def key_columns(query: GroupedQuery) -> list[str]:
    """The columns of an input row for the keys of GROUP BY."""
    return [f"__group_key{at}" for at in range(len(query.keys))]


@returns(KEYED_ROWS)
def with_keys(rows: DataFrame, query: GroupedQuery) -> DataFrame:
    """The rows that the query takes, with their keys."""
    taken = rows.where(query.where) if query.where else rows
    return taken.withColumns(
        {name: F.expr(key.sql) for name, key in zip(key_columns(query), query.keys, strict=True)}
    )


def kept_with_totals(
    compared: DataFrame, *beside: Column, of: Column | None = None, keys: bool = False
) -> tuple[DataFrame, Totals, Mapping[str, Any]]:
    """
    The rows, computed once, with sums over those that differ and for which ``of`` holds, and
    ``beside``, aggregates over all rows, by name: none where there are no rows.

    With ``keys``, which is for few rows, those of the rows to remove come to the driver too.
    """
    taken = F.lit(True) if of is None else of
    differs = taken & ~F.col(NEW_HASH).eqNullSafe(F.col(OLD_HASH))
    sums = []
    for name in (NEW_HASH, OLD_HASH):
        value = F.when(differs, F.col(name))
        sums += [
            F.count(value).alias(f"{name}_n"),
            F.sum(F.shiftright(value, 32)).alias(f"{name}_hi"),
            F.sum(value.bitwiseAND(F.lit(0xFFFFFFFF))).alias(f"{name}_lo"),
        ]
    restated = taken & is_restated() if NEW_STATE in compared.columns else F.lit(False)
    removed = F.when((differs | restated) & F.col(OLD_KEY).isNotNull(), F.xxhash64(OLD_KEY))
    if keys:
        sums.append(F.collect_list(removed).alias("removed_keys"))
    sums.append(F.count_if(taken & F.col(OLD_HASH).isNotNull()).alias("stored"))
    sums.append(F.count_if(restated).alias("restated"))
    # With ``keys`` a number for each changed row, at most ``MOST_BROADCAST_KEYS``.
    kept, counts = kept_and_observed(compared, *sums, *beside)
    plus, minus = (
        content(counts.get(f"{name}_hi") or 0, counts.get(f"{name}_lo") or 0)
        for name in (NEW_HASH, OLD_HASH)
    )
    totals = Totals(
        counts.get(f"{NEW_HASH}_n", 0),
        plus,
        counts.get(f"{OLD_HASH}_n", 0),
        minus,
        counts.get("stored", 0),
        counts.get("restated", 0),
        tuple(counts.get("removed_keys", ())),
    )
    return kept, totals, counts


def is_restated() -> Column:
    """Whether a row is as it was, and its state is not."""
    same = F.col(NEW_HASH).isNotNull() & (F.col(NEW_HASH) == F.col(OLD_HASH))
    return same & (F.col(NEW_STATE) != F.col(OLD_STATE))


def commit(
    work: Work,
    step: Step,
    totals: Totals | None,
    different: DataFrame | None,
    looked_at: tuple[int, int],
) -> Outcome:
    """Commit what differs of the rows that were ``looked_at``: read, and scanned."""
    changes = _cell_changes(work, step, totals)
    read, scanned = looked_at
    restated = totals.restated if totals else 0
    receipt = Receipt(read=read, scanned=scanned, written=restated, removed=restated)
    rows = None
    if totals is not None and different is not None and changes:
        rows = _row_changes(totals, different, changes[0].rows_before)
    return commit_step(work, step, rows, Computed(changes, receipt, cut_off=int(not changes)))


def _row_changes(totals: Totals, different: DataFrame, stored: int) -> RowChanges:
    """The rows to add, and the keys of those to remove; ``stored`` are in the table."""
    columns = [name for name in different.columns if not name.startswith("__")]
    insert = different.where(F.col(KEY).isNotNull()).select(*map(column, columns))
    removed = totals.removed + totals.restated
    if not removed:
        return RowChanges(insert, None, (KEY,))
    delete = different.where(F.col(OLD_KEY).isNotNull()).select(F.col(OLD_KEY).alias(KEY))
    if not key_filter.pays(removed, stored):
        return RowChanges(insert, delete, (KEY,), shuffled=stored + removed + totals.added)
    hashes: Collection[int] = totals.removed_keys
    if len(hashes) < removed:
        # At most ``key_filter.MOST_KEYS`` numbers.
        hashes = delete.select(F.xxhash64(KEY).alias("hash")).toArrow()["hash"].to_pylist()
    condition, passed = key_filter.may_have(hashes, KEY), key_filter.rows_passed(removed, stored)
    return RowChanges(insert, delete, (KEY,), condition, passed + removed + totals.added)


def _cell_changes(work: Work, step: Step, totals: Totals | None) -> tuple[CellChange, ...]:
    """The change of the table's one cell, if any row of it differs, or a state."""
    if totals is None or not (totals.added or totals.removed or totals.restated):
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
