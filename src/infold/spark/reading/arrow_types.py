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


def type_fit(found: pa.DataType, wanted: T.DataType, timestamp_format: str) -> TypeFit | None:
    """How a column of a plain type of Arrow is read as a declared one; None: it does not fit."""
    if pa.types.is_null(found):
        return TypeFit(None, lambda _: F.lit(None).cast(wanted))
    if pa.types.is_integer(found):
        return _integer(found, wanted, timestamp_format)
    if pa.types.is_timestamp(found):
        return _timestamp(found, wanted)
    if pa.types.is_date(found):
        fits = isinstance(wanted, (T.DateType, *_TIMES))
        return TypeFit(T.DateType(), lambda value: value.cast(wanted)) if fits else None
    if pa.types.is_string(found):
        return _text(wanted, timestamp_format)
    if pa.types.is_nested(found):
        stored = _stored_parts(found, wanted)
        return None if stored is None else TypeFit(stored, lambda value: value.cast(wanted))
    return _same_or_wider(found, wanted)


def _stored_parts(found: pa.DataType, wanted: T.DataType) -> T.DataType | None:
    """
    The type to read a list, a map or an object as, so that a cast makes it the declared one.

    Each part is as declared or narrower. None where one is not, or would have to be checked.
    """
    pairs: list[tuple[pa.DataType, T.DataType]] = []
    if isinstance(wanted, T.ArrayType) and _is_list(found):
        pairs = [(found.value_type, wanted.elementType)]
    elif isinstance(wanted, T.MapType) and pa.types.is_map(found):
        pairs = [(found.key_type, wanted.keyType), (found.item_type, wanted.valueType)]
    elif isinstance(wanted, T.StructType) and pa.types.is_struct(found):
        fields = [found.field(at) for at in range(found.num_fields)]
        if [one.name for one in fields] == wanted.names:
            pairs = [(one.type, own.dataType) for one, own in zip(fields, wanted, strict=True)]
    stored = [part for pair in pairs if (part := _stored_part(*pair)) is not None]
    if not pairs or len(stored) < len(pairs):
        return None
    if isinstance(wanted, T.ArrayType):
        return T.ArrayType(stored[0])
    if isinstance(wanted, T.MapType):
        return T.MapType(stored[0], stored[1])
    assert isinstance(wanted, T.StructType)
    return T.StructType([T.StructField(*pair) for pair in zip(wanted.names, stored, strict=True)])


def _stored_part(found: pa.DataType, wanted: T.DataType) -> T.DataType | None:
    if (same := _same_or_wider(found, wanted)) is not None:
        return same.stored
    entry = type_fit(found, wanted, "iso")
    return None if entry is None or entry.checked else entry.stored


def _is_list(found: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_(found) for is_ in kinds)


def _integer(found: pa.DataType, wanted: T.DataType, timestamp_format: str) -> TypeFit | None:
    signed = pa.types.is_signed_integer(found)
    # Spark has no unsigned types: it reads them as the next wider one.
    bits = found.bit_width if signed else found.bit_width * 2
    if bits > 64:
        fits = isinstance(wanted, T.DecimalType) and wanted.precision - wanted.scale >= 20
        stored: T.DataType = T.DecimalType(20, 0)
        return TypeFit(stored, lambda value: value.cast(wanted)) if fits else None
    stored = next(type_() for type_, width in _BITS.items() if width == bits)
    if isinstance(wanted, _TIMES) and fit.is_epoch(timestamp_format):
        return TypeFit(
            stored,
            lambda value: fit.fitted(value.cast("string"), wanted, timestamp_format),
            checked=True,
        )
    fits = (
        bits <= _BITS.get(type(wanted), 0)
        or bits <= _EXACT_IN.get(type(wanted), 0)
        or (isinstance(wanted, T.DecimalType) and wanted.precision - wanted.scale >= _DIGITS[bits])
    )
    return TypeFit(stored, lambda value: value.cast(wanted)) if fits else None


def _timestamp(found: pa.DataType, wanted: T.DataType) -> TypeFit | None:
    if not isinstance(wanted, _TIMES):
        return None
    if found.unit == "ns":
        return TypeFit(T.LongType(), lambda value: _whole_micros(value).cast(wanted), checked=True)
    stored = T.TimestampNTZType() if found.tz is None else T.TimestampType()
    return TypeFit(stored, lambda value: value.cast(wanted))


def _whole_micros(nanos: Column) -> Column:
    """The time of a number of nanoseconds; NULL for one that is no whole microsecond."""
    thousand = F.lit(1000)
    whole = F.timestamp_micros(F.call_function("div", nanos, thousand))
    return F.when(nanos % thousand == 0, whole)


def _text(wanted: T.DataType, timestamp_format: str) -> TypeFit | None:
    if isinstance(wanted, T.StringType) and not isinstance(wanted, T.VarcharType | T.CharType):
        # A file can declare bytes as text that are none.
        return TypeFit(
            T.StringType(), lambda value: F.when(F.is_valid_utf8(value), value), checked=True
        )
    if isinstance(wanted, (T.VarcharType, T.CharType, T.DateType, *_TIMES)):
        return TypeFit(
            T.StringType(),
            lambda value: fit.fitted(value, wanted, timestamp_format),
            checked=True,
        )
    return None


def _same_or_wider(found: pa.DataType, wanted: T.DataType) -> TypeFit | None:
    stored = _spark_type(found)
    if stored is None:
        return None
    fits = stored.simpleString() == wanted.simpleString()
    if isinstance(stored, T.DecimalType) and isinstance(wanted, T.DecimalType):
        fits = (
            wanted.scale >= stored.scale
            and wanted.precision - wanted.scale >= stored.precision - stored.scale
        )
    if isinstance(stored, T.FloatType) and isinstance(wanted, T.DoubleType):
        fits = True
    return TypeFit(stored, lambda value: value.cast(wanted)) if fits else None


def _spark_type(found: pa.DataType) -> T.DataType | None:
    if _has_nanos(found):
        return None
    try:
        return from_arrow_type(found)
    except PySparkException:
        return None


def _has_nanos(found: pa.DataType) -> bool:
    """Whether a list or an object contains nanoseconds, which are not checked there."""
    if pa.types.is_timestamp(found):
        return bool(found.unit == "ns")
    if not pa.types.is_nested(found):
        return False
    return any(_has_nanos(found.field(i).type) for i in range(found.num_fields))


def readable_type(found: pa.DataType) -> T.DataType | None:
    """A Spark type to read a column as, whatever was declared; None when there is none."""
    if pa.types.is_timestamp(found):
        if found.unit == "ns":
            return T.LongType()
        return T.TimestampNTZType() if found.tz is None else T.TimestampType()
    if pa.types.is_unsigned_integer(found):
        wider = {8: T.ShortType(), 16: T.IntegerType(), 32: T.LongType()}
        return wider.get(found.bit_width, T.DecimalType(20, 0))
    return _spark_type(found)
