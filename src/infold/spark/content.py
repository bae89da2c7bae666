"""
Cells and content in Spark: which cell a row is in, the hash of a row, the additive hash of a cell.

The row hash is Spark's ``xxhash64``, made exact: rows that a query can tell apart have different
hashes. It skips NULLs, so a bit mask of the NULL columns is hashed too. To it 0.0 is -0.0, so there
is one of the negative zeros. It skips NULLs in arrays and structs, so these are hashed as JSON;
texts in it with bytes that are no UTF-8, for which JSON has one sign, are hashed once more. It
cannot hash maps, which are hashed as the list of their entries, in the order that they have. Texts
are hashed by their bytes, whatever their collation. Sums of hashes are kept in two halves of 32
bits, because a plain sum overflows under ANSI and a decimal sum is many times slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.interval import (
    DAY,
    HOUR,
    MAX,
    MIN,
    WEEK,
    Granularity,
    Interval,
    Ranges,
    datetime_of,
)
from infold.core.own_columns import FILE, KEY, STATE, VERSION
from infold.core.queries import quoted
from infold.core.trace import CellState, signed
from infold.spark.stored_types import FLOATING, contains_type

_MASK_BITS = 60
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What JSON has in place of bytes that are no UTF-8."""
LITERAL_RANGES = 24
"""
The most ranges in a filter of times. Files and their row groups are skipped by it: a year has a
few dozen of them, and Spark compiles and parses a longer filter for longer than it helps.
"""
_EARLIEST = -62_135_596_800_000_000
_LATEST = 253_402_300_799_999_999


def column(name: str) -> Column:
    """The column of exactly that name (dots and quotes are part of it)."""
    return F.col(quoted(name))


def is_technical(name: str) -> bool:
    """Whether a stored column is infold's own: those start with an underscore."""
    return name in (FILE, VERSION, STATE, KEY)


def user_columns(rows: DataFrame) -> DataFrame:
    """The rows as users see them, without technical columns."""
    technical = [name for name in rows.columns if is_technical(name)]
    return rows.drop(*technical) if technical else rows


def row_hash(schema: T.StructType) -> Column:
    """A 64-bit hash of a row's columns, technical ones left out; equal rows have equal hashes."""
    users = [field for field in schema.fields if not is_technical(field.name)]
    return _hash_of_values([(column(field.name), field.dataType) for field in users])


def state_hash(schema: T.StructType) -> Column:
    """The same of the parts of a row's state."""
    state = schema[STATE].dataType
    assert isinstance(state, T.StructType), "a state is a struct"
    return _hash_of_values([(F.col(STATE)[part.name], part.dataType) for part in state])


def _hash_of_values(values: Sequence[tuple[Column, T.DataType]]) -> Column:
    parts = [part for value, type_ in values for part in _hashed_columns(value, type_)]
    floats = [value for value, type_ in values if isinstance(type_, FLOATING)]
    signs = _bit_masks([_is_negative_zero(value) for value in floats])
    return F.xxhash64(
        *parts,
        *_bit_masks([value.isNull() for value, _ in values]),
        *(F.when(mask != F.lit(0), mask) for mask in signs),
    )


def _bit_masks(tests: Sequence[Column]) -> Iterator[Column]:
    """
    Numbers with a bit for each test, in order.

    Two by two, as a client of Spark Connect takes no expression of a hundred levels.
    """
    for at in range(0, len(tests), _MASK_BITS):
        numbered = enumerate(tests[at : at + _MASK_BITS])
        bits = [F.shiftleft(test.cast("bigint"), bit) for bit, test in numbered]
        while len(bits) > 1:
            bits = [reduce(add, bits[i : i + 2]) for i in range(0, len(bits), 2)]
        yield bits[0]


def _is_negative_zero(value: Column) -> Column:
    # Only texts differ: the functions that see a sign take it off first. Few values are zero, and
    # only these become texts.
    zero = F.lit(0.0).cast("double")
    return F.when(value == zero, value.cast("string") == F.lit("-0.0")).otherwise(F.lit(False))


def _hashed_columns(value: Column, type_: T.DataType) -> list[Column]:
    """What is hashed of a value."""
    if isinstance(type_, T.StringType) and type_ != T.StringType():
        return [value.cast("binary")]
    if isinstance(type_, T.VariantType):
        return [F.to_json(value, JSON)]
    if isinstance(type_, T.MapType | T.ArrayType | T.StructType):
        text = F.to_json(_without_maps(value, type_), JSON)
        if not contains_type(type_, T.StringType):
            return [text]
        return [text, F.when(F.contains(text, F.lit(_REPLACEMENT)), _text_bytes(value, type_))]
    return [value]


def _text_bytes(value: Column, type_: T.DataType) -> Column:
    """The texts in a value, by their bytes."""
    if isinstance(type_, T.MapType):
        return _text_bytes(F.map_entries(value), _entries(type_))
    if isinstance(type_, T.ArrayType):
        return F.transform(value, lambda element: _text_bytes(element, type_.elementType))
    if isinstance(type_, T.StructType):
        fields = [field for field in type_ if contains_type(field.dataType, T.StringType)]
        return F.struct(*(_text_bytes(value.getField(part.name), part.dataType) for part in fields))
    return value.cast("binary")


def _entries(type_: T.MapType) -> T.ArrayType:
    """The type of the list of a map's entries."""
    entry = T.StructType().add("key", type_.keyType).add("value", type_.valueType)
    return T.ArrayType(entry)


def _without_maps(value: Column, type_: T.DataType) -> Column:
    """A value in which each map is the list of its entries, in their order."""
    if not contains_type(type_, T.MapType):
        return value
    if isinstance(type_, T.MapType):
        return _without_maps(F.map_entries(value), _entries(type_))
    if isinstance(type_, T.ArrayType):
        return F.transform(value, lambda element: _without_maps(element, type_.elementType))
    assert isinstance(type_, T.StructType), "maps are in maps, arrays and structs alone"
    fields = [
        _without_maps(value.getField(field.name), field.dataType).alias(f"f{at}")
        for at, field in enumerate(type_)
    ]
    return F.when(value.isNotNull(), F.struct(*fields))


def has_alike_values(type_: T.DataType) -> bool:
    """Whether Spark takes values of a type for equal that a query tells apart, as 0.0 and -0.0."""
    return contains_type(type_, *FLOATING) or "collate" in type_.simpleString()


def rows_without(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The rows without the others, as multisets: those are alike that no query tells apart."""
    others = others.select(*map(column, rows.columns))
    if not has_alike_values(rows.schema):
        return rows.exceptAll(others)
    # By their hashes: Spark's own way gives a row with 0.0 for one with -0.0.
    numbered, other_hashes = (
        side.withColumn(_OF_ROW, row_hash(side.schema)).withColumn(
            _NTH, F.row_number().over(Window.partitionBy(_OF_ROW).orderBy(_OF_ROW))
        )
        for side in (rows, others)
    )
    matched = other_hashes.select(_OF_ROW, _NTH)
    return numbered.join(matched, [_OF_ROW, _NTH], "left_anti").select(*map(column, rows.columns))


_OF_ROW, _NTH = "_hash_of_row", "_nth"

JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How nested values are written for the hash: Spark's default leaves microseconds out."""


def micros(time: Column) -> Column:
    """The instant of a timestamp or date (its midnight, UTC), in microseconds."""
    return F.unix_micros(time.cast("timestamp"))


def cell_start(time: Column, granularity: Granularity | None) -> Column:
    """The start of a time's cell, in microseconds; MIN for the one cell of a table without time."""
    if granularity is None:
        return F.lit(MIN)
    at = micros(time)
    if granularity is Granularity.HOUR:
        return at - F.pmod(at, F.lit(HOUR))
    if granularity is Granularity.DAY:
        return at - F.pmod(at, F.lit(DAY))
    if granularity is Granularity.WEEK:
        return at - F.pmod(at + F.lit(3 * DAY), F.lit(WEEK))
    if granularity is Granularity.SUNDAY_WEEK:
        return at - F.pmod(at + F.lit(4 * DAY), F.lit(WEEK))
    return F.unix_micros(F.date_trunc(granularity.value, time.cast("timestamp")))


@lru_cache(4096)
def cell_of(start: int, granularity: Granularity | None) -> Interval:
    """The cell that starts at ``start``, as :func:`cell_start` counts."""
    if granularity is None:
        return Interval(MIN, MAX)
    return Interval(start, granularity.next(start))


def cell_stats(
    rows: DataFrame,
    time: Column,
    granularity: Granularity | None,
    *,
    last: Column | None = None,
    by: Sequence[Column] = (),
    total: Column | None = None,
) -> DataFrame:
    """
    One row for each cell, and for each value of ``by``.

    | column    | type   | meaning                                                      |
    |-----------|--------|--------------------------------------------------------------|
    | `cell`    | bigint | the start of the cell, microseconds since 1970 UTC           |
    | `rows`    | bigint | how many rows it has                                         |
    | `hi` `lo` | bigint | the halves of its content, see :func:`content`               |
    | `last`    | bigint | the greatest ``last`` in microseconds; by default of ``time``|
    | `total`   |        | the sum of ``total``, if it is given                         |
    """
    hashed = rows.select(
        cell_start(time, granularity).alias("cell"),
        row_hash(rows.schema).alias("_hash"),
        (F.lit(None).cast("bigint") if granularity is None else micros(time)).alias("_last")
        if last is None
        else last.alias("_last"),
        *([] if total is None else [total.alias("_total")]),
        *by,
    )
    keys = [name for name in hashed.columns if name not in ("_hash", "_last", "_total")]
    return hashed.groupBy(*map(column, keys)).agg(
        F.count(F.lit(1)).alias("rows"),
        *content_sums(F.col("_hash")),
        F.max("_last").alias("last"),
        *([] if total is None else [F.sum("_total").alias("total")]),
    )


def cell_states(
    rows: DataFrame, time: str | None, granularity: Granularity | None
) -> dict[Interval, CellState]:
    """Rows and content of each cell of a frame."""
    at = F.lit(None).cast("timestamp") if time is None else column(time)
    states = {}
    # At most a row for each cell.
    for row in cell_stats(rows, at, granularity).collect():
        cell = cell_of(row["cell"], granularity)
        states[cell] = CellState(cell, row["rows"], content(row["hi"], row["lo"]))
    return states


def content_sums(hashes: Column) -> tuple[Column, Column]:
    """``hi`` and ``lo``: the sums of the two halves of row hashes, see :func:`content`."""
    return (
        F.sum(F.shiftright(hashes, 32)).alias("hi"),
        F.sum(hashes.bitwiseAND(F.lit(0xFFFFFFFF))).alias("lo"),
    )


def content(hi: int, lo: int) -> int:
    """The additive content of a cell from its two halves: a signed 64-bit number."""
    return signed((hi << 32) + lo)


def timestamp_literal(at: int) -> str:
    """An instant as a Spark SQL timestamp literal."""
    text = datetime_of(min(max(at, _EARLIEST), _LATEST)).replace(tzinfo=None).isoformat(sep=" ")
    return f"TIMESTAMP '{text}+00:00'"


def range_predicate(name: str, type_: str, ranges: Ranges, *, exact: bool = False) -> str:
    """
    A SQL predicate on the column ``name``, of type ``timestamp`` or ``date``: it is in ``ranges``.

    Bounds are literals, so partitions and files are pruned. Of more than 24 ranges the nearest
    ones are joined, and the predicate is true for more times, unless it has to be ``exact``.
    """
    if not ranges:
        return "false"
    parts = ranges.parts if exact else _join_nearest(ranges, LITERAL_RANGES)
    tests = [_interval_predicate(quoted(name), type_, part) for part in parts]
    return "true" if "true" in tests else "(" + " OR ".join(tests) + ")"


def type_of(rows: DataFrame, name: str) -> T.DataType:
    """A column's type; the case of its name does not matter, as in SQL."""
    fields = [field for field in rows.schema.fields if field.name.lower() == name.lower()]
    if len(fields) != 1:  # Spark's own error explains it best
        fields = rows.select(column(name)).schema.fields
    return fields[0].dataType


def expression_types(rows: DataFrame, texts: Iterable[str]) -> Mapping[str, T.DataType]:
    """The types of expressions over rows: in one plan, as each is resolved in all columns."""
    distinct_texts = [*dict.fromkeys(texts)]
    fields = rows.select(*map(F.expr, distinct_texts)).schema.fields if distinct_texts else []
    return {text: field.dataType for text, field in zip(distinct_texts, fields, strict=True)}


def time_type(rows: DataFrame, name: str) -> str:
    """``date`` or ``timestamp``: what a time column of some rows is."""
    return "date" if isinstance(type_of(rows, name), T.DateType) else "timestamp"


def time_predicate(rows: DataFrame, name: str, ranges: Ranges, *, exact: bool = False) -> str:
    """As :func:`range_predicate`, for a column of some rows, of whichever type it is."""
    return range_predicate(name, time_type(rows, name), ranges, exact=exact)


def rows_in_cells(
    rows: DataFrame, name: str, cells: Sequence[Interval], granularity: Granularity | None
) -> DataFrame:
    """
    The rows whose time is in one of some cells, however many there are.

    Some may be of another granularity, as a table has had more than one.
    """
    ranges = Ranges.of(cells)
    candidates = rows.where(time_predicate(rows, name, ranges))
    if granularity is None or len(ranges.parts) <= LITERAL_RANGES:
        return candidates  # there is one cell, or the predicate is exact
    unit = next(each for each in (granularity, *_UNITS) if each.cover(ranges) == ranges)
    cells_of_unit = (cell for part in ranges for cell in unit.cells(part))
    starts = ", ".join(f"{cell.start}L" for cell in cells_of_unit)
    marked = candidates.withColumn(_CELL, cell_start(column(name), unit))
    return marked.where(F.expr(f"{_CELL} IN ({starts})")).drop(_CELL)


_CELL = "_infold_cell"
_UNITS = (Granularity.DAY, Granularity.HOUR)
"""Cells of every granularity consist of whole ones of these."""


def _interval_predicate(name: str, type_: str, part: Interval) -> str:
    literal = _date_literal if type_ == "date" else timestamp_literal
    tests = []
    if part.start > _EARLIEST:
        tests.append(f"{name} >= {literal(part.start)}")
    if part.end <= _LATEST:
        tests.append(f"{name} < {literal(part.end)}")
    return "(" + " AND ".join(tests) + ")" if tests else "true"


def _date_literal(at: int) -> str:
    # The first date not before the instant: a date d is in [start, end) iff its midnight is.
    return f"DATE '{datetime_of(-(-at // DAY) * DAY).date().isoformat()}'"


def _join_nearest(ranges: Ranges, most: int) -> Iterable[Interval]:
    parts = ranges.parts
    if len(parts) <= most:
        return parts
    gaps = sorted(range(1, len(parts)), key=lambda i: parts[i - 1].end - parts[i].start)
    keep = set(gaps[: most - 1])  # the widest gaps stay
    joined = [parts[0]]
    for i in range(1, len(parts)):
        if i in keep:
            joined.append(parts[i])
        else:
            joined[-1] = Interval(joined[-1].start, parts[i].end)
    return joined
