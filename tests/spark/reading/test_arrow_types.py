"""Which types of files fit declared ones, part by part; without a session."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from infold.spark.reading.arrow_types import type_fit

INT, LONG, DOUBLE, TEXT = T.IntegerType(), T.LongType(), T.DoubleType(), T.StringType()


def struct(**types: T.DataType) -> T.StructType:
    """An object of these fields."""
    return T.StructType([T.StructField(*one) for one in types.items()])


FITS = {
    "a list": (pa.list_(pa.int32()), T.ArrayType(LONG), T.ArrayType(INT)),
    "a map": (pa.map_(pa.string(), pa.int32()), T.MapType(TEXT, LONG), T.MapType(TEXT, INT)),
    "its keys": (pa.map_(pa.int32(), pa.string()), T.MapType(LONG, TEXT), T.MapType(INT, TEXT)),
    "an object": (
        pa.struct([("a", pa.float32()), ("b", pa.string())]),
        struct(a=DOUBLE, b=TEXT),
        struct(a=T.FloatType(), b=TEXT),
    ),
    "objects in lists in maps": (
        pa.map_(pa.string(), pa.list_(pa.struct([("a", pa.decimal128(9, 2))]))),
        T.MapType(TEXT, T.ArrayType(struct(a=T.DecimalType(18, 2)))),
        T.MapType(TEXT, T.ArrayType(struct(a=T.DecimalType(9, 2)))),
    ),
    "no sign": (pa.list_(pa.uint16()), T.ArrayType(LONG), T.ArrayType(INT)),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_narrower_parts_are_read_as_they_are_stored(name: str) -> None:
    """A cast from the stored type makes the declared one."""
    found, wanted, stored = FITS[name]
    entry = type_fit(found, wanted, "iso")
    assert entry is not None
    assert (entry.stored, entry.checked) == (stored, False)


DRIFTS = {
    "a wider part": (pa.list_(pa.int64()), T.ArrayType(INT)),
    "another kind": (pa.list_(pa.string()), T.ArrayType(LONG)),
    "another order of fields": (
        pa.struct([("b", pa.int64()), ("a", pa.int64())]),
        struct(a=LONG, b=LONG),
    ),
    "a field more": (pa.struct([("a", pa.int64()), ("b", pa.int64())]), struct(a=LONG)),
    "no field": (pa.struct([]), struct()),
    "a time that would be checked": (pa.list_(pa.timestamp("ns")), T.ArrayType(T.TimestampType())),
    "text that would be parsed": (pa.list_(pa.string()), T.ArrayType(T.TimestampType())),
    "a map as a list": (pa.map_(pa.string(), pa.int64()), T.ArrayType(LONG)),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_parts_that_do_not_fit_are_drift(name: str) -> None:
    """Narrower, other, or only fitting value by value."""
    assert type_fit(*DRIFTS[name], "iso") is None


SIMPLE: dict[T.DataType, pa.DataType] = {
    T.ByteType(): pa.int8(),
    T.ShortType(): pa.int32(),
    T.IntegerType(): pa.int32(),
    LONG: pa.int64(),
    T.FloatType(): pa.float32(),
    DOUBLE: pa.float64(),
    T.DecimalType(9, 2): pa.decimal128(9, 2),
    T.DecimalType(18, 2): pa.decimal128(18, 2),
    T.DecimalType(20, 0): pa.decimal128(20, 0),
    T.BooleanType(): pa.bool_(),
    T.DateType(): pa.date32(),
    T.TimestampType(): pa.timestamp("us", "UTC"),
    T.TimestampNTZType(): pa.timestamp("us"),
    T.BinaryType(): pa.binary(),
}


@pytest.mark.parametrize(
    "nest",
    [
        (pa.list_, T.ArrayType),
        (lambda of: pa.map_(pa.string(), of), lambda of: T.MapType(TEXT, of)),
        (lambda of: pa.struct([("a", of)]), lambda of: struct(a=of)),
    ],
    ids=["list", "map", "object"],
)
def test_what_fits_as_a_column_fits_as_a_part(
    nest: tuple[Callable[[pa.DataType], pa.DataType], Callable[[T.DataType], T.DataType]],
) -> None:
    """Of each pair of types, unless its values are checked one by one."""
    for old, new in itertools.product(SIMPLE, repeat=2):
        alone = type_fit(SIMPLE[old], new, "iso")
        within = type_fit(nest[0](SIMPLE[old]), nest[1](new), "iso")
        assert (within is None) == (alone is None or alone.checked), (old, new)
