"""
Typed columns (Parquet, Iceberg) as declared ones: which types fit without loss, and how.

Wider is fine (``int32`` as ``bigint``, ``float`` as ``double``), also in lists, maps and objects;
narrower is drift, whatever the values are. Timestamps without a zone are UTC. Text may be
timestamps, and so may whole numbers if ``timestamp_format`` is an epoch; these are checked row by
row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from infold.spark.reading import fit

Convert = Callable[[Column], Column]

_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
_MOST_DIGITS = 38
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_EXACT_IN: dict[type[T.DataType], int] = {T.FloatType: 16, T.DoubleType: 32}
_TIMES = (T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True, slots=True)
class TypeFit:
    """
    How a stored column is read as a declared one.

    ``stored`` is the Spark type to read it as, None when it has nothing but NULLs. ``checked``
    means that a value may turn out not to fit, which shows as NULL after ``convert``.
    """

    stored: T.DataType | None
    convert: Convert
    checked: bool = False


def type_fit(arrow: pa.DataType, target: T.DataType, timestamp_format: str) -> TypeFit | None:
    """How a column of a plain type of Arrow is read as a declared one; None: it does not fit."""
    if pa.types.is_null(arrow):
        return TypeFit(None, lambda _: F.lit(None).cast(target))
    if pa.types.is_integer(arrow):
        return _integer_fit(arrow, target, timestamp_format)
    if pa.types.is_timestamp(arrow):
        return _timestamp_fit(arrow, target)
    if pa.types.is_date(arrow):
        fits = isinstance(target, (T.DateType, *_TIMES))
        return TypeFit(T.DateType(), lambda value: value.cast(target)) if fits else None
    if pa.types.is_string(arrow):
        return _text_fit(target, timestamp_format)
    if pa.types.is_nested(arrow):
        stored = _stored_parts(arrow, target)
        return None if stored is None else TypeFit(stored, lambda value: value.cast(target))
    return _same_or_wider_fit(arrow, target)


def _stored_parts(arrow: pa.DataType, target: T.DataType) -> T.DataType | None:
    """
    The type to read a list, a map or an object as, so that a cast makes it the declared one.

    Each part is as declared or narrower. None where one is not, or would have to be checked.
    """
    pairs: list[tuple[pa.DataType, T.DataType]] = []
    if isinstance(target, T.ArrayType) and _is_list(arrow):
        pairs = [(arrow.value_type, target.elementType)]
    elif isinstance(target, T.MapType) and pa.types.is_map(arrow):
        pairs = [(arrow.key_type, target.keyType), (arrow.item_type, target.valueType)]
    elif isinstance(target, T.StructType) and pa.types.is_struct(arrow):
        fields = [arrow.field(at) for at in range(arrow.num_fields)]
        if [field.name for field in fields] == target.names:
            pairs = [
                (field.type, part.dataType) for field, part in zip(fields, target, strict=True)
            ]
    stored = [part for pair in pairs if (part := _stored_part(*pair)) is not None]
    if not pairs or len(stored) < len(pairs):
        return None
    if isinstance(target, T.ArrayType):
        return T.ArrayType(stored[0])
    if isinstance(target, T.MapType):
        return T.MapType(stored[0], stored[1])
    assert isinstance(target, T.StructType)
    return T.StructType([T.StructField(*pair) for pair in zip(target.names, stored, strict=True)])


def _stored_part(arrow: pa.DataType, target: T.DataType) -> T.DataType | None:
    if (same := _same_or_wider_fit(arrow, target)) is not None:
        return same.stored
    entry = type_fit(arrow, target, "iso")
    return None if entry is None or entry.checked else entry.stored


def _is_list(arrow: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_(arrow) for is_ in kinds)


def _integer_fit(arrow: pa.DataType, target: T.DataType, timestamp_format: str) -> TypeFit | None:
    signed = pa.types.is_signed_integer(arrow)
    # Spark has no unsigned types: it reads them as the next wider one.
    bits = arrow.bit_width if signed else arrow.bit_width * 2
    if bits > 64:
        fits = isinstance(target, T.DecimalType) and target.precision - target.scale >= 20
        stored: T.DataType = T.DecimalType(20, 0)
        return TypeFit(stored, lambda value: value.cast(target)) if fits else None
    stored = next(type_() for type_, width in _BITS.items() if width == bits)
    if isinstance(target, _TIMES) and fit.is_epoch(timestamp_format):
        return TypeFit(
            stored,
            lambda value: fit.fitted(value.cast("string"), target, timestamp_format),
            checked=True,
        )
    fits = (
        bits <= _BITS.get(type(target), 0)
        or bits <= _EXACT_IN.get(type(target), 0)
        or (isinstance(target, T.DecimalType) and target.precision - target.scale >= _DIGITS[bits])
    )
    return TypeFit(stored, lambda value: value.cast(target)) if fits else None


def _timestamp_fit(arrow: pa.DataType, target: T.DataType) -> TypeFit | None:
    if not isinstance(target, _TIMES):
        return None
    if arrow.unit == "ns":
        return TypeFit(T.LongType(), lambda value: _whole_micros(value).cast(target), checked=True)
    stored = T.TimestampNTZType() if arrow.tz is None else T.TimestampType()
    return TypeFit(stored, lambda value: value.cast(target))


def _whole_micros(nanos: Column) -> Column:
    """The time of a number of nanoseconds; NULL for one that is no whole microsecond."""
    thousand = F.lit(1000)
    whole = F.timestamp_micros(F.call_function("div", nanos, thousand))
    return F.when(nanos % thousand == 0, whole)


def _text_fit(target: T.DataType, timestamp_format: str) -> TypeFit | None:
    if isinstance(target, T.StringType) and not isinstance(target, T.VarcharType | T.CharType):
        # A file can declare bytes as text that are none.
        return TypeFit(
            T.StringType(), lambda value: F.when(F.is_valid_utf8(value), value), checked=True
        )
    if isinstance(target, (T.VarcharType, T.CharType, T.DateType, *_TIMES)):
        return TypeFit(
            T.StringType(),
            lambda value: fit.fitted(value, target, timestamp_format),
            checked=True,
        )
    return None


def _same_or_wider_fit(arrow: pa.DataType, target: T.DataType) -> TypeFit | None:
    stored = _spark_type(arrow)
    if stored is None:
        return None
    fits = stored.simpleString() == target.simpleString()
    if isinstance(stored, T.DecimalType) and isinstance(target, T.DecimalType):
        fits = (
            target.scale >= stored.scale
            and target.precision - target.scale >= stored.precision - stored.scale
        )
    if isinstance(stored, T.FloatType) and isinstance(target, T.DoubleType):
        fits = True
    return TypeFit(stored, lambda value: value.cast(target)) if fits else None


def _spark_type(arrow: pa.DataType) -> T.DataType | None:
    if _is_unread(arrow):
        return None
    try:
        return from_arrow_type(arrow)
    except PySparkException:
        return None


def _is_unread(arrow: pa.DataType) -> bool:
    """
    Whether Spark does not read a type that it has a name for: times of a day, long decimals.

    Nanoseconds in a list or an object it reads, and nothing checks them there.
    """
    if pa.types.is_nested(arrow):
        return any(_is_unread(arrow.field(i).type) for i in range(arrow.num_fields))
    if pa.types.is_decimal(arrow):
        return bool(arrow.precision > _MOST_DIGITS)
    is_nanos = pa.types.is_timestamp(arrow) and arrow.unit == "ns"
    return bool(is_nanos or pa.types.is_time(arrow))


def readable_type(arrow: pa.DataType) -> T.DataType | None:
    """A Spark type to read a column as, whatever was declared; None when there is none."""
    if pa.types.is_timestamp(arrow):
        if arrow.unit == "ns":
            return T.LongType()
        return T.TimestampNTZType() if arrow.tz is None else T.TimestampType()
    if pa.types.is_unsigned_integer(arrow):
        wider = {8: T.ShortType(), 16: T.IntegerType(), 32: T.LongType()}
        return wider.get(arrow.bit_width, T.DecimalType(20, 0))
    return _spark_type(arrow)
