"""
First and last values as 64-bit words, for aggregation in buffers of a fixed width.

The distinct values of a column are found beforehand (the *dictionary*, if they are few; the files
of a column that is stored as it is list them at once). Each is hashed to 32 bits such that no two
have the same hash, and never to 0. An event becomes two *words*:

    bit   63   62 ............... 32   31 ................ 0
    low    0   offset in its bucket    hash of the value (0 for NULL)
    high   0   offset in its bucket    2^32 - 1 - that hash

The offset is in microseconds; a bucket of time is at most 2^31 of them long. The least words of an
island (for a last value, the greatest) are those of events at its first (last) instant. If both
have one value, all events at that instant have it, and the dictionary gives it back. If not, the
order of keys decides, and the island is *tied*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.quoting import quoted
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.sessions.aggregate_state import FirstOrLast, StateColumn
from infold.spark.sessions.aggregates import CompiledAggregates
from infold.spark.sessions.frames import END, EVENTS, OWNER, START, TIME

BUCKET = "__bucket"
"""Of an event: the start of its bucket, in microseconds."""
_HASH, _VALUE = "hash", "value"
"""The columns of a dictionary."""

DICTIONARY = FrameSchema(
    "a distinct value of a column",
    (
        FrameColumn(_HASH, "bigint", "32 bits, not 0, that no other value of the column has"),
        FrameColumn(_VALUE, ANY, "the value"),
    ),
)

LONGEST_BUCKET = 2**31
"""The longest bucket, in microseconds: offsets in it have 31 bits."""

_VALUE_BITS = 2**32 - 1
"""The bits of a word that are a value."""

VALUES = 50_000
"""The most distinct values for which 32 bits can be expected to tell all of them apart."""

_SEEDS = 8
"""How many ways of hashing are tried until no two values have the same hash."""


ColumnValues = Callable[[str], "pa.Array | None"]
"""From SQL over the input to all values it can have there (and others, maybe), if known."""


def no_column_values(_: str) -> pa.Array | None:
    """Nothing is known."""
    return None


def offset_in_bucket(bucket: int) -> Column:
    """How far into its bucket an event is, in microseconds."""
    return F.pmod(F.col(TIME), F.lit(bucket).cast("bigint"))


@dataclass(frozen=True)
class _Dictionary:
    """The distinct values of a column of prepared events, and a hash that is different for each."""

    argument: str
    seed: int
    values: DataFrame
    """A frame of the schema ``DICTIONARY``."""

    def hashed(self) -> Column:
        """The 32 bits of the column's value; 0 for NULL."""
        value = F.col(self.argument)
        return F.when(value.isNull(), F.lit(0).cast("bigint")).otherwise(_hash(value, self.seed))


@dataclass(frozen=True)
class Words:
    """Aggregates whose first and last values are words, and the way back to values."""

    plain: CompiledAggregates
    compiled: CompiledAggregates
    dictionaries: Mapping[str, _Dictionary]

    def columns(self, bucket: int) -> Sequence[Column]:
        """The words of an event's values."""
        offset = F.shiftleft(offset_in_bucket(bucket), 32)
        words = []
        for name, dictionary in self.dictionaries.items():
            words.append(offset.bitwiseOR(dictionary.hashed()).alias(f"{name}_low"))
            flipped = F.lit(_VALUE_BITS) - dictionary.hashed()
            words.append(offset.bitwiseOR(flipped).alias(f"{name}_high"))
        return words

    def is_tied(self) -> Column:
        """Whether events at the instant of a pick have different values."""
        found = F.lit(False)
        for pick in self.plain.picks:
            low, high = (F.col(f"{pick.value}_{end}") for end in ("low", "high"))
            bits = F.lit(_VALUE_BITS)
            same = low.bitwiseAND(bits) == bits - high.bitwiseAND(bits)
            found = found | ~F.coalesce(same, F.lit(True))
        return found

    def with_values(self, found: DataFrame) -> DataFrame:
        """Words turned back into times and values."""
        times: dict[str, Column] = {}
        for number, pick in enumerate(self.plain.picks):
            word = F.col(f"{pick.value}_low")
            if pick.edge:
                times[pick.at] = F.col(END if pick.last else START)
            else:
                times[pick.at] = F.col(f"{pick.value}_bucket") + F.shiftright(word, 32)
            values = self.dictionaries[pick.argument].values
            hashed = F.col(_HASH).alias(f"__hash{number}")
            named = values.select(hashed, F.col(_VALUE).alias(pick.value))
            found = found.join(
                # At most ``VALUES`` rows.
                F.broadcast(named),
                word.bitwiseAND(F.lit(_VALUE_BITS)) == F.col(f"__hash{number}"),
                "left",
            )
        parts = (
            times[part.name].alias(part.name) if part.name in times else F.col(part.name)
            for part in self.plain.parts
        )
        return found.select(OWNER, START, END, EVENTS, *parts)


def _fixed_but_picks(events: DataFrame, compiled: CompiledAggregates) -> bool:
    """Whether all buffers but those of first and last values have a fixed width."""
    if not compiled.picks:
        return False
    picks = {name for pick in compiled.picks for name in (pick.at, pick.value)}
    others = [part for part in compiled.parts if part.name not in picks]
    schema = (
        events.groupBy(OWNER)
        .agg(
            F.count(F.lit(1)),
            *(F.expr(compiled.events_sql(part)).alias(part.name) for part in others),
        )
        .schema
    )
    return all(isinstance(schema[part.name].dataType, _FIXED) for part in others)


_FIXED = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
_READABLE = (T.StringType, T.IntegralType, T.DecimalType, T.DateType, T.TimestampType)


def words_of(events: DataFrame, compiled: CompiledAggregates, values: ColumnValues) -> Words | None:
    """Words for all first and last values, or None where they would not be quick."""
    if not _fixed_but_picks(events, compiled):
        return None
    arguments = list(dict.fromkeys(pick.argument for pick in compiled.picks))
    if any(name not in events.columns for name in arguments):
        return None  # first(1)
    if not all(isinstance(events.schema[name].dataType, _READABLE) for name in arguments):
        return None
    dictionaries = {}
    sql = dict(compiled.arguments)
    for name in arguments:
        dictionary = _dictionary(events, name, values(sql[name]))
        if dictionary is None:
            return None
        dictionaries[name] = dictionary
    picks = {name for pick in compiled.picks for name in (pick.at, pick.value)}
    parts = [part for part in compiled.parts if part.name not in picks]
    parts += [part for pick in compiled.picks for part in _word_parts(pick)]
    return Words(compiled, replace(compiled, parts=tuple(parts), picks=()), dictionaries)


def _word_parts(pick: FirstOrLast) -> Sequence[StateColumn]:
    end = "max" if pick.last else "min"
    parts = [
        StateColumn(
            f"{pick.value}_{side}",
            f"{end}({pick.argument}_{side}){pick.where}",
            f"{end}_by({pick.value}_{side}, CASE WHEN {pick.value}_{side} IS NOT NULL"
            f" THEN {START} END)",
        )
        for side in ("low", "high")
    ]
    if not pick.edge:
        # Where in time the word's bucket is; at a session's edge its ends are enough.
        at = f"{pick.value}_bucket"
        parts.append(StateColumn(at, f"min({BUCKET}){pick.where}", f"{end}({at})"))
    return parts


def _dictionary(events: DataFrame, name: str, known: pa.Array | None) -> _Dictionary | None:
    """
    All values of a column with a hash that is different for each; None when they are too many.

    ``known`` are the values, where the input's files list them.
    """
    if known is not None:
        values = events.sparkSession.createDataFrame(pa.table({_VALUE: known[: VALUES + 1]}))
    else:
        value = F.col(quoted(name))
        there = events.where(value.isNotNull()).select(value.alias(_VALUE))
        values = there.distinct().limit(VALUES + 1)
    # At most ``VALUES`` rows and one.
    hashed = values.select(
        _VALUE, *(_hash(F.col(_VALUE), seed).alias(f"{_HASH}{seed}") for seed in range(_SEEDS))
    ).toArrow()
    if hashed.num_rows > VALUES:
        return None
    for seed in range(_SEEDS):
        hashes = set(hashed.column(f"{_HASH}{seed}").to_pylist())
        if len(hashes) == hashed.num_rows and 0 not in hashes:
            chosen = hashed.select([f"{_HASH}{seed}", _VALUE]).rename_columns([_HASH, _VALUE])
            return _Dictionary(name, seed, _dictionary_rows(events, name, chosen))
    return None


@returns(DICTIONARY)
def _dictionary_rows(events: DataFrame, name: str, values: pa.Table) -> DataFrame:
    """The dictionary of a column, its values of the type that they have in events."""
    frame = events.sparkSession.createDataFrame(values)
    return frame.select(_HASH, F.col(_VALUE).cast(events.schema[name].dataType).alias(_VALUE))


def _hash(value: Column, seed: int) -> Column:
    """The 32 bits of a value, with one of the ways of hashing."""
    return F.xxhash64(value, F.lit(seed)).bitwiseAND(F.lit(_VALUE_BITS))
