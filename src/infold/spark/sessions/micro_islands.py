"""
The first build of a large table: micro-islands, and strings as numbers while they are aggregated.

Events of one user in one *bucket* of time no longer than the gap always lie in one island. So a
plain hash aggregation by user and bucket does most of the work, and only its result is sorted to
find the islands. That is quick as long as the aggregates' buffers have a fixed width: one string
among them makes Spark sort everything. A long history is cut into *stretches* of time, each
aggregated and sorted by a task of its own (see ``stretches``).

First and last values of strings are therefore looked for as numbers. The distinct values of such a
column are found beforehand (the *dictionary*, when they are few; where the column is stored as it
is, its files tell them, which takes no time), each is hashed to 32 bits such that no two share a
hash, and an event becomes a *word*: its offset in the bucket, 31 bits, before the 32 bits of its
value. The least word is that of the earliest event; the least word with all bits of the value
flipped is, too. If both show the same value, all events at the earliest instant have it, and the
dictionary gives it back. If not, the order of keys decides, and the island is *tied*: its events
are read again, which is rare.

Everything here is exact whatever the data are; what is measured beforehand decides about speed
alone (see ``bench/sessions_kernel.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.project import SessionsQuery
from infold.spark.content import quoted
from infold.spark.jvm.session import settings_for_union
from infold.spark.sessions.aggregate_state import TIME, FirstOrLast, StateColumn
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.islands import (
    END,
    EVENTS,
    START,
    USER,
    apart,
    islands,
    local_day,
    spans,
    within_spans,
)
from infold.spark.sessions.stretches import Stretches

BUCKET = "__m"
"""The start of a bucket, in microseconds."""

ALL = "count(1)"
"""A part that counts an island's events."""

OFFSET = 2**31
"""The longest bucket: offsets in it have 31 bits."""

VALUE = 2**32 - 1
"""The bits of a word that stand for a value."""

VALUES = 50_000
"""The most distinct values for which 32 bits can be expected to tell all of them apart."""

SEEDS = 8

TIES = 200_000
"""The most tied islands that are read again; with more of them, words do not pay."""


Told = Callable[[str], "pa.Array | None"]
"""Given SQL over the input: all values it can have there (and others, maybe), if that is known."""


def untold(_: str) -> pa.Array | None:
    """Nothing is known."""
    return None


def quick_islands(
    events: DataFrame,
    query: SessionsQuery,
    over: CompiledAggregates,
    told: Told,
    stretches: Stretches,
) -> DataFrame:
    """
    The islands of prepared events, for mergeable aggregates.

    ``stretches`` are the same events cut by time, or none of them.
    """
    words = _words(events, over, told) if _fixed_but_picks(events, over) else None
    if words is None:
        return _islands(events, query, over, stretches)
    way = _Way(query, words.over, words.columns(_bucket(query)))
    if stretches.borders:
        found, ties = _across(way, stretches, words.tied())
    else:
        found, ties = _kept(way.told(way.linked(way.micro(events))), words.tied())
    if ties == 0:
        return words.read(found)
    if ties > TIES:
        return _islands(events, query, over, stretches)
    plain = words.read(found.where(~words.tied()))
    tied = found.where(words.tied())
    read_again = within_spans(events, F.broadcast(spans(tied)))
    return plain.unionByName(islands(read_again, query, over))


def _islands(
    events: DataFrame, query: SessionsQuery, over: CompiledAggregates, stretches: Stretches
) -> DataFrame:
    """Islands of values as they are."""
    way = _Way(query, over)
    if stretches.borders:
        return _across(way, stretches, F.lit(False))[0].drop(_HASH)
    return way.told(way.linked(way.micro(events))).drop(_HASH)


def _across(way: _Way, stretches: Stretches, tied: Column) -> tuple[DataFrame, int]:
    """Islands of each stretch by itself, then those near a border put together; and the tied."""
    near = stretches.near(way.query)
    own = [way.linked(way.micro(events)) for events in stretches.frames]
    with settings_for_union(own[0].sparkSession):
        found, ties = _kept(way.told(reduce(DataFrame.unionAll, own)), tied & ~near)
    joined, more = _kept(way.told(way.linked(found.where(near))), tied)
    return found.where(~near).unionByName(joined), ties + more


def _kept(found: DataFrame, tied: Column) -> tuple[DataFrame, int]:
    """Islands on disk, which are smaller than events; and how many of them are tied."""
    seen = Observation()
    found = found.observe(seen, F.count_if(tied).alias("ties"))
    found = found.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    return found, seen.get.get("ties") or 0


class _Way:
    """From prepared events to islands: columns made once, for however many stretches of them."""

    def __init__(
        self, query: SessionsQuery, over: CompiledAggregates, words: Sequence[Column] = ()
    ) -> None:
        self.query = query
        zone = query.cuts.midnight
        self._given = [*words, (F.col(TIME) - _offset(_bucket(query))).alias(BUCKET)]
        self._bucket = [USER, BUCKET]
        if zone is not None:  # a bucket may lie around midnight
            self._given.append(local_day(F.col(TIME), zone).alias("__day"))
            self._bucket.append("__day")
        # A count of all events is an island's own, and need not travel beside it.
        parts = [part for part in over.parts if part.events != ALL]
        self._first = [
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.count(F.lit(1)).alias(EVENTS),
            *(F.expr(over.over(part)).alias(part.name) for part in parts),
            # Most comparisons of a sort end at its first eight bytes; ids often begin alike.
            F.xxhash64(USER).alias(_HASH),
        ]
        self._merged = [
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            *(F.expr(str(part.merge)).alias(part.name) for part in parts),
        ]
        self._told = [
            *map(F.col, (USER, _HASH, START, END, EVENTS)),
            *(
                F.col(part.name if part.events != ALL else EVENTS).alias(part.name)
                for part in over.parts
            ),
        ]
        by_time = Window.partitionBy(_HASH, USER).orderBy(START)
        before = F.lag(END).over(by_time)
        far = apart(query, before, F.col(START))
        self._begins = F.when(before.isNull() | far, 1).otherwise(0)
        self._number = F.sum("__b").over(by_time.rowsBetween(Window.unboundedPreceding, 0))
        self._ends = query.gap is not None or query.fallback is not None or zone is not None

    def micro(self, events: DataFrame) -> DataFrame:
        """Micro-islands: islands of the events of a bucket."""
        return events.select("*", *self._given).groupBy(*self._bucket).agg(*self._first)

    def linked(self, found: DataFrame) -> DataFrame:
        """
        Islands, from such as may go on in the next one of their user.

        None of these overlap, so the one before is enough to look at.
        """
        keys = [_HASH, USER]
        if self._ends:
            found = found.withColumn("__b", self._begins).withColumn("__i", self._number)
            keys.append("__i")
        return found.groupBy(*keys).agg(*self._merged)

    def told(self, found: DataFrame) -> DataFrame:
        """Islands with all of their columns."""
        return found.select(*self._told)


_HASH = "__h"


def _bucket(query: SessionsQuery) -> int:
    """How long buckets are: no longer than any silence that ends a session."""
    gaps = [query.gap, query.fallback.gap if query.fallback else None]
    return max(1, min((gap for gap in gaps if gap is not None and gap < OFFSET), default=OFFSET))


def _offset(bucket: int) -> Column:
    return F.pmod(F.col(TIME), F.lit(bucket).cast("bigint"))


# -- words ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Dictionary:
    """The distinct values of a column of prepared events, and a hash that tells them apart."""

    argument: str
    seed: int
    values: DataFrame
    """``h`` and ``v``."""

    def hashed(self) -> Column:
        """The 32 bits that stand for the column's value; 0 for NULL."""
        value = F.col(self.argument)
        return F.when(value.isNull(), F.lit(0).cast("bigint")).otherwise(_hash(value, self.seed))


@dataclass(frozen=True)
class _Words:
    """Measures in which picks are words, and the way back."""

    plain: CompiledAggregates
    over: CompiledAggregates
    dictionaries: Mapping[str, _Dictionary]

    def columns(self, bucket: int) -> Sequence[Column]:
        """The words of an event's values."""
        offset = F.shiftleft(_offset(bucket), 32)
        words = []
        for name, dictionary in self.dictionaries.items():
            words.append(offset.bitwiseOR(dictionary.hashed()).alias(f"{name}_lo"))
            flipped = F.lit(VALUE) - dictionary.hashed()
            words.append(offset.bitwiseOR(flipped).alias(f"{name}_hi"))
        return words

    def tied(self) -> Column:
        """Whether events at the instant of a pick have different values."""
        found = F.lit(False)
        for pick in self.plain.picks:
            lo, hi = (F.col(f"{pick.value}_{end}") for end in ("lo", "hi"))
            same = lo.bitwiseAND(F.lit(VALUE)) == F.lit(VALUE) - hi.bitwiseAND(F.lit(VALUE))
            found = found | ~F.coalesce(same, F.lit(True))
        return found

    def read(self, found: DataFrame) -> DataFrame:
        """Words turned back into times and values."""
        times: dict[str, Column] = {}
        for number, pick in enumerate(self.plain.picks):
            word = F.col(f"{pick.value}_lo")
            if pick.edge:
                times[pick.at] = F.col(END if pick.last else START)
            else:
                times[pick.at] = F.col(f"{pick.value}_m") + F.shiftright(word, 32)
            values = self.dictionaries[pick.argument].values
            named = values.select(F.col("h").alias(f"__h{number}"), F.col("v").alias(pick.value))
            found = found.join(
                F.broadcast(named),
                word.bitwiseAND(F.lit(VALUE)) == F.col(f"__h{number}"),
                "left",
            )
        parts = (
            times[part.name].alias(part.name) if part.name in times else F.col(part.name)
            for part in self.plain.parts
        )
        return found.select(USER, START, END, EVENTS, *parts)


def _fixed_but_picks(events: DataFrame, over: CompiledAggregates) -> bool:
    """Whether all buffers but those of first and last values have a fixed width."""
    if not over.picks:
        return False
    picks = {name for pick in over.picks for name in (pick.at, pick.value)}
    others = [part for part in over.parts if part.name not in picks]
    schema = (
        events.groupBy(USER)
        .agg(F.count(F.lit(1)), *(F.expr(over.over(part)).alias(part.name) for part in others))
        .schema
    )
    return all(isinstance(schema[part.name].dataType, _FIXED) for part in others)


_FIXED = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
_READABLE = (T.StringType, T.IntegralType, T.DecimalType, T.DateType, T.TimestampType)


def _words(events: DataFrame, over: CompiledAggregates, told: Told) -> _Words | None:
    """Words for all picks, or None where they would not be quick."""
    arguments = list(dict.fromkeys(pick.argument for pick in over.picks))
    if any(name not in events.columns for name in arguments):
        return None  # first(1)
    if not all(isinstance(events.schema[name].dataType, _READABLE) for name in arguments):
        return None
    dictionaries = {}
    sql = dict(over.arguments)
    for name in arguments:
        dictionary = _dictionary(events, name, told(sql[name]))
        if dictionary is None:
            return None
        dictionaries[name] = dictionary
    picks = {name for pick in over.picks for name in (pick.at, pick.value)}
    parts = [part for part in over.parts if part.name not in picks]
    parts += [part for pick in over.picks for part in _word_parts(pick)]
    return _Words(over, replace(over, parts=tuple(parts), picks=()), dictionaries)


def _word_parts(pick: FirstOrLast) -> Sequence[StateColumn]:
    end = "max" if pick.last else "min"
    parts = [
        StateColumn(
            f"{pick.value}_{side}",
            f"{end}({pick.argument}_{side}){pick.where}",
            f"{end}_by({pick.value}_{side}, CASE WHEN {pick.value}_{side} IS NOT NULL"
            f" THEN {START} END)",
        )
        for side in ("lo", "hi")
    ]
    if not pick.edge:
        # Where in time the word's bucket is; at a session's edge its own start or end says that.
        at = f"{pick.value}_m"
        parts.append(StateColumn(at, f"min({BUCKET}){pick.where}", f"{end}({at})"))
    return parts


def _dictionary(events: DataFrame, name: str, told: pa.Array | None) -> _Dictionary | None:
    """All values of a column with a hash that tells them apart; None when they are too many."""
    if told is not None:
        values = events.sparkSession.createDataFrame(pa.table({"v": told[: VALUES + 1]}))
    else:
        value = F.col(quoted(name))
        known = events.where(value.isNotNull()).select(value.alias("v"))
        values = known.distinct().limit(VALUES + 1)
    hashed = values.select(
        "v", *(_hash(F.col("v"), seed).alias(f"h{seed}") for seed in range(SEEDS))
    ).toArrow()
    if hashed.num_rows > VALUES:
        return None
    for seed in range(SEEDS):
        hashes = set(hashed.column(f"h{seed}").to_pylist())
        if len(hashes) == hashed.num_rows and 0 not in hashes:
            kept = hashed.select([f"h{seed}", "v"]).rename_columns(["h", "v"])
            frame = events.sparkSession.createDataFrame(kept)
            typed = F.col("v").cast(events.schema[name].dataType).alias("v")
            return _Dictionary(name, seed, frame.select("h", typed))
    return None


def _hash(value: Column, seed: int) -> Column:
    return F.xxhash64(value, F.lit(seed)).bitwiseAND(F.lit(VALUE))
