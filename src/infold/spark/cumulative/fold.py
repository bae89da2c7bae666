"""
Cumulative aggregates: one row for each key of GROUP BY, kept by the keys of changed rows.

A row follows from the input's rows of its own key. So the keys of the rows that came and of those
that are gone are all that can be different: the query is evaluated over just the rows of these
keys, the outcome is compared with what is stored, and one commit removes the rows that are no
longer right and adds those that are. A key whose row comes out as it was is left alone, and when
all do, nothing is committed.

A key that has no row in the table had no rows in the input either (unless HAVING left it out), so
its rows are those that came. The input is looked through only for keys that are there already.

Keys may be NULL, and MERGE matches no NULLs, so each row carries a text of its keys, hashed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import EVER
from infold.core.plan import Action, Step
from infold.core.ports import Prepared
from infold.core.project import GroupedQuery, Node
from infold.core.record import Outcome, Receipt
from infold.core.session_columns import VERSION
from infold.core.trace import CellChange, CellState, signed
from infold.spark.content import JSON, column, content, row_hash, user_columns
from infold.spark.inputs.changed_rows import KEY
from infold.spark.inputs.feed import Feed, foldable
from infold.spark.sessions.components import SMALL
from infold.spark.step_context import Work
from infold.spark.time_range import recompute

_NEW, _OLD, _OLD_KEY, _OF = "__new", "__old", "__old_key", "__of"


def carry_out(work: Work, step: Step, announce: Prepared) -> Outcome:
    """Build the table, or fold in what changed in its input since the step's trace."""
    node = work.project[step.model]
    if step.action is Action.FOLD and _foldable(work, node, step):
        return _fold(work, node, step, announce)
    rows = recompute.definition(work, node, step)
    return recompute.build(work, node, step, _stored(rows, _query(node), step.version))


def _foldable(work: Work, node: Node, step: Step) -> bool:
    """Whether there is a table to fold into, changes can be found, and keys can be compared."""
    if not foldable(work, node, step):
        return False
    keys = work.tables.read(step.model).select(*(column(key.name) for key in _query(node).keys))
    return not any("map<" in type_ for _, type_ in keys.dtypes)


def _query(node: Node) -> GroupedQuery:
    assert node.grouped is not None, "a cumulative aggregate has a compiled query"
    return node.grouped


def _stored(rows: DataFrame, query: GroupedQuery, version: int) -> DataFrame:
    """Rows of the query as the table keeps them."""
    keys = [key.name for key in query.keys]
    return rows.withColumns({KEY: _hashed(rows, keys), VERSION: F.lit(version).cast("bigint")})


def _hashed(rows: DataFrame, keys: list[str]) -> Column:
    """The MD5 of a text that is another one for any other keys; NULL is a key like others."""
    types = rows.select(*map(column, keys)).schema.fields
    texts = [_text(column(key), field.dataType) for key, field in zip(keys, types, strict=True)]
    known = [F.concat(F.octet_length(text).cast("string"), F.lit(":"), text) for text in texts]
    return F.md5(F.concat(*(F.coalesce(text, F.lit("-")) for text in known)).cast("binary"))


def _text(key: Column, type_: T.DataType) -> Column:
    if isinstance(type_, T.BinaryType):
        return F.hex(key)
    if isinstance(type_, T.ArrayType | T.StructType):
        return F.to_json(key, JSON)
    return key.cast("string")


@dataclass(frozen=True)
class _Totals:
    """What is different, summed up: rows and additive content that come and go."""

    added: int
    plus: int
    removed: int
    minus: int
    stored: int
    """How many of the keys had a row."""


def _fold(work: Work, node: Node, step: Step, announce: Prepared) -> Outcome:
    fold = _Fold(work, node, step)
    touched, counts = fold.touched()
    totals, different = None, None
    read, scanned = counts.rows, fold.feed.rows_to_scan
    if counts.keys:
        rows, seen = fold.rows(touched, counts)
        new = _stored(work.sql(node, {fold.query.input: rows}), fold.query, step.version)
        compared = _compared(new, touched).localCheckpoint()
        totals = _totals(compared)
        different = compared.where(~F.col(_NEW).eqNullSafe(F.col(_OLD)))
        read += totals.stored
        scanned += sum(state.rows for state in work.cells(step.model))
        if seen is not None:
            # Spark forgets what it observed in a plan that turned out to be empty.
            read += int(seen.get.get("rows") or 0)
            scanned += sum(state.rows for state in fold.feed.cells)
    return _commit(work, step, totals, different, (read, scanned), announce)


@dataclass(frozen=True)
class _Counts:
    """Rows that came or are gone, keys that they have, and how many of these are to be read."""

    rows: int
    keys: int
    again: int


class _Fold:
    """What a fold reads: the changed rows, their keys, and the rows of these keys."""

    def __init__(self, work: Work, node: Node, step: Step) -> None:
        self.work, self.step, self.query = work, step, _query(node)
        self.feed = Feed(work, node, step, self.query.input)

    def touched(self) -> tuple[DataFrame, _Counts]:
        """The keys of changed rows, each beside the hash of its stored row, and their counts."""
        names = _columns(self.query)
        gone = self.feed.gone()
        frames = [self.feed.added()] if gone is None else [self.feed.added(), gone]
        keyed = [_keyed(frame, self.query).select(*names) for frame in frames]
        rows = reduce(DataFrame.unionAll, keyed)
        keys = rows.groupBy(*names).agg(F.count(F.lit(1)).alias("__n"))
        keys = keys.withColumn(_OF, _hashed(keys, names)).localCheckpoint()
        table = self.work.tables.read(self.step.model)
        old = table.select(F.col(KEY).alias(_OLD_KEY), row_hash(table.schema).alias(_OLD))
        sent = F.broadcast(keys) if self.feed.rows <= SMALL else keys
        old = old.join(sent.select(_OF), F.col(_OLD_KEY) == F.col(_OF), "left_semi")
        found = keys.join(old, F.col(_OF) == F.col(_OLD_KEY), "left").localCheckpoint()
        again = F.count(F.lit(1)) if self.query.having else F.count(_OLD_KEY)
        row = found.agg(
            F.sum("__n").alias("rows"), F.count(F.lit(1)).alias("keys"), again.alias("again")
        ).collect()[0]
        counts = _Counts(row["rows"] or 0, row["keys"], row["again"])
        return found, counts

    def rows(self, touched: DataFrame, counts: _Counts) -> tuple[DataFrame, Observation | None]:
        """All rows of the touched keys; what is looked through for some of them is counted."""
        known = F.lit(True) if self.query.having else F.col(_OLD_KEY).isNotNull()
        frames, seen = [], None
        if counts.again:
            found = self._of(self.feed.now, touched.where(known), counts)
            seen = Observation()
            frames.append(found.observe(seen, F.count(F.lit(1)).alias("rows")))
        if counts.again < counts.keys:
            frames.append(self._of(self.feed.added(), touched.where(~known), counts))
        return reduce(DataFrame.unionByName, frames), seen

    def _of(self, seen: DataFrame, keys: DataFrame, counts: _Counts) -> DataFrame:
        """The rows with these keys, as the query wants them."""
        query, names = self.query, _columns(self.query)
        rows = _keyed(user_columns(seen), query)
        if query.columns is not None:
            rows = rows.select(*map(column, query.columns), *names)
        others = keys.select(*(F.col(name).alias(f"{name}_of") for name in names))
        others = F.broadcast(others) if counts.keys <= SMALL else others
        same = [F.col(name).eqNullSafe(F.col(f"{name}_of")) for name in names]
        return rows.join(others, reduce(and_, same), "left_semi").drop(*names)


def _columns(query: GroupedQuery) -> list[str]:
    return [f"__key{at}" for at in range(len(query.keys))]


def _keyed(rows: DataFrame, query: GroupedQuery) -> DataFrame:
    """The rows that the query takes, with their keys."""
    taken = rows.where(query.where) if query.where else rows
    return taken.withColumns(
        {name: F.expr(key.sql) for name, key in zip(_columns(query), query.keys, strict=True)}
    )


def _compared(new: DataFrame, touched: DataFrame) -> DataFrame:
    """The rows of the keys as they are now, beside the hashes of those that are stored."""
    hashed = new.withColumn(_NEW, row_hash(new.schema))
    stored = touched.select(_OF, _OLD_KEY, _OLD)
    return stored.join(hashed, F.col(_OF) == F.col(KEY), "left").drop(_OF)


def _totals(compared: DataFrame) -> _Totals:
    differs = ~F.col(_NEW).eqNullSafe(F.col(_OLD))
    sums = []
    for name in (_NEW, _OLD):
        value = F.when(differs, F.col(name))
        sums += [
            F.count(value).alias(f"{name}_n"),
            F.sum(F.shiftright(value, 32)).alias(f"{name}_hi"),
            F.sum(value.bitwiseAND(F.lit(0xFFFFFFFF))).alias(f"{name}_lo"),
        ]
    row = compared.agg(*sums, F.count(_OLD).alias("stored")).collect()[0]
    plus, minus = (content(row[f"{n}_hi"] or 0, row[f"{n}_lo"] or 0) for n in (_NEW, _OLD))
    return _Totals(row[f"{_NEW}_n"], plus, row[f"{_OLD}_n"], minus, row["stored"])


def _commit(
    work: Work,
    step: Step,
    totals: _Totals | None,
    different: DataFrame | None,
    looked_at: tuple[int, int],
    announce: Prepared,
) -> Outcome:
    """Announce what will hold, and make it so."""
    assert step.trace is not None, "a planned step says what will hold"
    changes = _changes(work, step, totals)
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
    announce(outcome)
    if totals is None or different is None or not changes:
        return outcome
    insert = different.where(F.col(KEY).isNotNull()).drop(_NEW, _OLD, _OLD_KEY)
    if not totals.removed:
        return replace(outcome, snapshot=work.tables.append(step.model, insert, work.stamp(step)))
    delete = different.where(F.col(_OLD_KEY).isNotNull()).select(F.col(_OLD_KEY).alias(KEY))
    snapshot = work.tables.merge(
        step.model,
        insert=insert,
        delete=delete,
        on=(KEY,),
        within="true",
        stamp=work.stamp(step),
    )
    return replace(outcome, snapshot=snapshot)


def _changes(work: Work, step: Step, totals: _Totals | None) -> tuple[CellChange, ...]:
    """The one cell, if it is another one now."""
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
        content_after=signed(before.content + totals.plus - totals.minus),
    )
    return (change,)
