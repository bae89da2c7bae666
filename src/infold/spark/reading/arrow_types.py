"""
Typed columns (Parquet, Iceberg) as declared ones: which types fit without loss, and how.

Wider is fine (``int32`` as ``bigint``, ``float`` as ``double``), narrower is drift, whatever the
values are. Timestamps without a zone are UTC. Text may be timestamps, and so may whole numbers if
``timestamp_format`` is an epoch; these are checked row by row.
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
    return _same_or_wider(found, wanted)


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
        # Read as a number of nanoseconds; one that is no whole microsecond does not fit.
        thousand = F.lit(1000)
        return TypeFit(
            T.LongType(),
            lambda value: F.when(
                value % thousand == 0,
                F.timestamp_micros(F.call_function("div", value, thousand)),
            ).cast(wanted),
            checked=True,
        )
    stored = T.TimestampNTZType() if found.tz is None else T.TimestampType()
    return TypeFit(stored, lambda value: value.cast(wanted))


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
