"""
The first build of a large table: micro-islands, and strings as numbers while they are aggregated.

Events of one owner in one *bucket* of time no longer than the gap always lie in one island. So a
plain hash aggregation by owner and bucket does most of the work, and only its result is sorted to
find the islands. That is quick as long as the aggregates' buffers have a fixed width: one string
among them makes Spark sort everything. A long history comes in slices of time, each aggregated and
sorted by a task of its own (see ``time_slices``).

First and last values are therefore looked for as numbers (see ``packed_values``). Where the order
of keys decides between events of one instant, the island is *tied*: its events are read again,
which is rare.

Everything here is exact whatever the data are; what is measured beforehand decides about speed
alone (see ``bench/sessions_kernel.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import DAY, MAX, MIN, Granularity, Interval, Ranges
from infold.core.queries import SessionsQuery, quoted
from infold.core.trace import CellState
from infold.spark.content import time_predicate
from infold.spark.frame_schema import ANY, FrameColumn, FrameSchema, returns
from infold.spark.jvm.session_settings import settings_for_union
from infold.spark.observed import kept_and_observed
from infold.spark.sessions.aggregates import CompiledAggregates, FirstOrLast, StateColumn
from infold.spark.sessions.cuts import cuts_of
from infold.spark.sessions.cuts.base import (
    longest_silence,
    silence_between_slots,
    slots_with_events,
)
from infold.spark.sessions.frames import END, EVENTS, ISLANDS, OWNER, QUIET, SILENCE, START, TIME
from infold.spark.sessions.islands import (
    are_parted,
    events_within,
    islands_of,
    prepared_events,
    quiet_before,
    spans_of,
)

_OWNER_HASH = "__owner_hash"
"""Of a micro-island: 64 bits of its owner. Rows are sorted by them first."""
_BEGINS, _NUMBER = "__begins_island", "__island"
"""Of a micro-island: 1 if it begins an island, and the island's number for its owner."""

MICRO_ISLANDS = ISLANDS.plus(
    "a part of an island: the events of a bucket, or those of a slice of time",
    FrameColumn(_OWNER_HASH, "bigint", "64 bits of its owner"),
)

_COUNT_ALL = "count(1)"
"""A state column that counts an island's events."""

MOST_TIES = 200_000
"""The most tied islands that are read again; with more of them, words do not pay."""


@returns(ISLANDS)
def quick_islands(
    events: DataFrame,
    query: SessionsQuery,
    compiled: CompiledAggregates,
    values: ColumnValues,
    slices: TimeSlices,
) -> DataFrame:
    """
    The islands of prepared events, for mergeable aggregates.

    ``slices`` are the same events by time, or none of them.
    """
    in_buckets = _in_buckets(compiled, query)
    words = words_of(events, in_buckets, values)
    if words is None:
        return _islands_of_plain_values(events, query, in_buckets, slices)
    plan = _Aggregation(query, words.compiled, words.columns(_bucket_length(query)))
    if slices.borders:
        islands, ties = _islands_across_slices(plan, slices, words.is_tied())
    else:
        islands, ties = _stored_islands(
            plan.all_columns(plan.merged_islands(plan.micro_islands(events))), words.is_tied()
        )
    if ties == 0:
        return words.with_values(islands)
    if ties > MOST_TIES:
        return _islands_of_plain_values(events, query, in_buckets, slices)
    plain = words.with_values(islands.where(~words.is_tied()))
    tied = islands.where(words.is_tied())
    # At most ``MOST_TIES`` rows.
    read_again = events_within(events, F.broadcast(spans_of(tied)))
    return plain.unionByName(islands_of(read_again, query, compiled))


def _in_buckets(compiled: CompiledAggregates, query: SessionsQuery) -> CompiledAggregates:
    """The aggregates of events in buckets: for the silence, which slots of a bucket have some."""
    sql = slots_with_events(_bucket_length(query))
    parts = (replace(part, events=sql) if part.name == SILENCE else part for part in compiled.parts)
    return replace(compiled, parts=tuple(parts))


@returns(ISLANDS)
def _islands_of_plain_values(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates, slices: TimeSlices
) -> DataFrame:
    """Islands, their first and last values aggregated as they are."""
    plan = _Aggregation(query, compiled)
    if slices.borders:
        return _islands_across_slices(plan, slices, F.lit(False))[0].drop(_OWNER_HASH)
    return plan.all_columns(plan.merged_islands(plan.micro_islands(events))).drop(_OWNER_HASH)


def _islands_across_slices(
    plan: _Aggregation, slices: TimeSlices, tied: Column
) -> tuple[DataFrame, int]:
    """Islands of each slice by itself, those near a border merged; and how many are tied."""
    near = slices.near_border(plan.query)
    by_slice = [plan.merged_islands(plan.micro_islands(events)) for events in slices.frames]
    with settings_for_union(by_slice[0].sparkSession):
        islands, ties = _stored_islands(
            plan.all_columns(reduce(DataFrame.unionAll, by_slice)), tied & ~near
        )
    joined, more_ties = _stored_islands(
        plan.all_columns(plan.merged_islands(islands.where(near))), tied
    )
    return islands.where(~near).unionByName(joined), ties + more_ties


def _stored_islands(islands: DataFrame, tied: Column) -> tuple[DataFrame, int]:
    """Islands on disk, which are smaller than events; and how many of them are tied."""
    ties = F.count_if(tied).alias("ties")
    stored_islands, counts = kept_and_observed(islands, ties, level=StorageLevel.DISK_ONLY)
    return stored_islands, counts.get("ties") or 0


class _Aggregation:
    """From prepared events to islands: columns made once, for all slices of the events."""

    def __init__(
        self, query: SessionsQuery, compiled: CompiledAggregates, words: Sequence[Column] = ()
    ) -> None:
        self.query = query
        pairwise = cuts_of(query).pairwise
        self._event_columns = [
            *words,
            (F.col(TIME) - offset_in_bucket(_bucket_length(query))).alias(BUCKET),
        ]
        self._keys = [OWNER, BUCKET]
        for column in (column for cut in pairwise for column in cut.bucket_columns()):
            name = f"__bucket_key{len(self._keys)}"
            self._event_columns.append(column.alias(name))
            self._keys.append(name)
        # A count of all events is an island's own, and need not travel beside it.
        parts = [part for part in compiled.parts if part.events != _COUNT_ALL]
        self._bucket_aggregates = [
            F.min(TIME).alias(START),
            F.max(TIME).alias(END),
            F.count(F.lit(1)).alias(EVENTS),
            *(F.expr(compiled.events_sql(part)).alias(part.name) for part in parts),
            # Most comparisons of a sort end at its first eight bytes; ids often begin alike.
            F.xxhash64(OWNER).alias(_OWNER_HASH),
        ]
        self._island_aggregates = [
            F.min(START).alias(START),
            F.max(END).alias(END),
            F.sum(EVENTS).alias(EVENTS),
            *(F.expr(str(part.merge)).alias(part.name) for part in parts),
        ]
        self._columns = [
            *map(F.col, (OWNER, _OWNER_HASH, START, END, EVENTS)),
            *(
                F.col(part.name if part.events != _COUNT_ALL else EVENTS).alias(part.name)
                for part in compiled.parts
            ),
        ]
        by_time = Window.partitionBy(_OWNER_HASH, OWNER).orderBy(START)
        before = F.lag(END).over(by_time)
        parted = are_parted(query, before, F.col(START))
        self._begins = F.when(before.isNull() | parted, 1).otherwise(0)
        self._quiet = quiet_before(F.col(_BEGINS), before, F.col(START))
        self._number = F.sum(_BEGINS).over(by_time.rowsBetween(Window.unboundedPreceding, 0))
        self._has_pairwise_cuts = bool(pairwise)

    @returns(MICRO_ISLANDS)
    def micro_islands(self, events: DataFrame) -> DataFrame:
        """Micro-islands: islands of the events of a bucket."""
        bucketed = events.select("*", *self._event_columns)
        islands = bucketed.groupBy(*self._keys).agg(*self._bucket_aggregates).drop(*self._keys[1:])
        if SILENCE not in islands.columns:
            return islands
        # The bits of slots become a silence.
        silence = silence_between_slots(SILENCE, _bucket_length(self.query))
        others = [name for name in islands.columns if name != SILENCE]
        return islands.select(*others, *map(F.expr, silence)).select(*others, SILENCE)

    @returns(MICRO_ISLANDS)
    def merged_islands(self, islands: DataFrame) -> DataFrame:
        """
        Islands, from such as may go on in the next one of their owner.

        None of these overlap, so the one before is enough to look at.
        """
        keys = [_OWNER_HASH, OWNER]
        if self._has_pairwise_cuts:
            islands = islands.withColumn(_BEGINS, self._begins)
            islands = islands.withColumns({QUIET: self._quiet, _NUMBER: self._number})
            keys.append(_NUMBER)
        return islands.groupBy(*keys).agg(*self._island_aggregates).drop(_NUMBER)

    @returns(MICRO_ISLANDS)
    def all_columns(self, islands: DataFrame) -> DataFrame:
        """Islands with all of their columns."""
        return islands.select(*self._columns)


def _bucket_length(query: SessionsQuery) -> int:
    """How long buckets are: no longer than any silence that ends a session."""
    lengths = [cut.never_parts_within for cut in cuts_of(query).pairwise]
    short = (length for length in lengths if length is not None and length < LONGEST_BUCKET)
    return max(1, min(short, default=LONGEST_BUCKET))


# The distinct values of a column are found beforehand (the *dictionary*, if they are few; the files
# of a column that is stored as it is list them at once). Each is hashed to 32 bits such that no two
# have the same hash, and never to 0. An event becomes two *words*:
#
#     bit   63   62 ............... 32   31 ................ 0
#     low    0   offset in its bucket    hash of the value (0 for NULL)
#     high   0   offset in its bucket    2^32 - 1 - that hash
#
# The offset is in microseconds; a bucket of time is at most 2^31 of them long. The least words of
# an island (for a last value, the greatest) are those of events at its first (last) instant. If
# both have one value, all events at that instant have it, and the dictionary gives it back. If not,
# the order of keys decides, and the island is *tied*.

BUCKET = "__bucket"
"""Of an event: the start of its bucket, in microseconds."""
_HASH, _VALUE = "hash", "value"
"""The columns of a dictionary: 32 bits, and the value that they stand for."""

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

MOST_VALUES = 50_000
"""The most distinct values for which 32 bits can be expected to tell all of them apart."""

_HASH_SEEDS = 8
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
        return F.when(value.isNull(), F.lit(0).cast("bigint")).otherwise(_hash32(value, self.seed))


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
        tied = F.lit(False)
        for pick in self.plain.picks:
            low, high = (F.col(f"{pick.value}_{end}") for end in ("low", "high"))
            bits = F.lit(_VALUE_BITS)
            same = low.bitwiseAND(bits) == bits - high.bitwiseAND(bits)
            tied = tied | ~F.coalesce(same, F.lit(True))
        return tied

    def with_values(self, islands: DataFrame) -> DataFrame:
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
            islands = islands.join(
                # At most ``MOST_VALUES`` rows.
                F.broadcast(named),
                word.bitwiseAND(F.lit(_VALUE_BITS)) == F.col(f"__hash{number}"),
                "left",
            )
        parts = (
            times[part.name].alias(part.name) if part.name in times else F.col(part.name)
            for part in self.plain.parts
        )
        return islands.select(OWNER, START, END, EVENTS, *parts)


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
    types = {field.name: field.dataType for field in events.schema}
    if not all(isinstance(types[name], _READABLE) for name in arguments):
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
        values = events.sparkSession.createDataFrame(pa.table({_VALUE: known[: MOST_VALUES + 1]}))
    else:
        value = F.col(quoted(name))
        known_values = events.where(value.isNotNull()).select(value.alias(_VALUE))
        values = known_values.distinct().limit(MOST_VALUES + 1)
    # At most ``MOST_VALUES`` rows and one.
    hashed = values.select(
        _VALUE,
        *(_hash32(F.col(_VALUE), seed).alias(f"{_HASH}{seed}") for seed in range(_HASH_SEEDS)),
    ).toArrow()
    if hashed.num_rows > MOST_VALUES:
        return None
    for seed in range(_HASH_SEEDS):
        hashes = set(hashed.column(f"{_HASH}{seed}").to_pylist())
        if len(hashes) == hashed.num_rows and 0 not in hashes:
            pairs = hashed.select([f"{_HASH}{seed}", _VALUE]).rename_columns([_HASH, _VALUE])
            return _Dictionary(name, seed, _dictionary_rows(events, name, pairs))
    return None


@returns(DICTIONARY)
def _dictionary_rows(events: DataFrame, name: str, values: pa.Table) -> DataFrame:
    """The dictionary of a column, its values of the type that they have in events."""
    frame = events.sparkSession.createDataFrame(values)
    return frame.select(_HASH, F.col(_VALUE).cast(events.schema[name].dataType).alias(_VALUE))


def _hash32(value: Column, seed: int) -> Column:
    """The 32 bits of a value, with one of the ways of hashing."""
    return F.xxhash64(value, F.lit(seed)).bitwiseAND(F.lit(_VALUE_BITS))


# Where a large table lies in partitions of time, a task that reads a whole one needs nothing from
# the others: no row is shuffled. Only islands that come within a gap of a border may go on beyond
# it. They are few, and are merged in a second step.

SLICE_ROWS = 4_000_000
"""About the rows of a slice, as long as there are no more than ``MOST_SLICES`` of them."""

MOST_SLICES = 24
"""About the most slices: planning each takes Spark as long as a hundred thousand rows do."""

LEAST_SLICE_GAPS = 10
"""A slice is at least so many gaps long, or too many islands come near a border."""


@dataclass(frozen=True)
class TimeSlices:
    """Prepared events between ``borders`` (microseconds): a frame of one partition for each."""

    borders: tuple[int, ...] = ()
    frames: tuple[DataFrame, ...] = ()

    def near_border(self, query: SessionsQuery) -> Column:
        """Whether an island may go on beyond a border."""
        far = longest_silence(query)
        return reduce(
            Column.__or__,
            ((F.col(START) <= at + far) & (F.col(END) >= at - far) for at in self.borders),
            F.lit(False),
        )


def sliced_events(
    events: DataFrame, query: SessionsQuery, compiled: CompiledAggregates, borders: Sequence[int]
) -> TimeSlices:
    """Prepared events of each slice by themselves; no slice without a border."""
    if not borders:
        return TimeSlices()
    frames = (
        prepared_events(
            events.where(time_predicate(events, query.time_column, Ranges((part,)))),
            query,
            compiled,
        )
        for part in (Interval(*ends) for ends in pairwise((MIN, *borders, MAX)))
    )
    return TimeSlices(tuple(borders), tuple(frame.coalesce(1) for frame in frames))


def slice_borders(
    cells: Iterable[CellState], partition: Granularity | None, far: int, tasks: int
) -> tuple[int, ...]:
    """
    Where the slices of some cells begin so that ``tasks`` tasks at a time have enough to do.

    ``partition`` is how the table lies on disk: slices are whole partitions, so that every file
    is read once and no row of it is looked at for its time. ``far`` is the longest gap, in
    microseconds. Empty where slices do not pay: without partitions, where they are too short for
    the gap, or where one has more rows than a task's share.
    """
    if partition is None:
        return ()
    rows: dict[int, int] = {}
    for cell_state in cells:
        start = partition.floor(cell_state.cell.start)
        rows[start] = rows.get(start, 0) + cell_state.rows
    total = sum(rows.values())
    number = max(6 * tasks, min(MOST_SLICES, total // SLICE_ROWS))
    borders: list[int] = []
    sizes = [0]
    for start, added in sorted(rows.items()):
        if sizes[-1] and 2 * number * (sizes[-1] + added) > 3 * total:  # more than 1.5 shares
            borders.append(start)
            sizes.append(0)
        sizes[-1] += added
    if (
        len(sizes) < 2 * tasks
        or max(sizes) * tasks > total
        or _shortest_length(partition) < LEAST_SLICE_GAPS * far
    ):
        return ()
    return tuple(borders)


def _shortest_length(partition: Granularity) -> int:
    """The length of the shortest partition; 0 for those that are too short anyway."""
    return {Granularity.YEAR: 365 * DAY, Granularity.MONTH: 28 * DAY}.get(partition, 0)
