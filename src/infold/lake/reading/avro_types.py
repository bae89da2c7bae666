"""The types of Avro as those of Arrow, by which they are compared with what is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
"""Unions that Spark reads as the wider one of their types."""

_DIGITS = 38


def arrow_type(schema: Any, *, is_column: bool = False) -> pa.DataType:
    """
    The type of Arrow that has the values of one of Avro's.

    A union of Arrow's is what Spark reads as no type that can be declared. Of a whole column, and
    not of a part of one, any decimals can be read: their digits are looked at one by one.
    """
    if isinstance(schema, list):
        return _union([one for one in schema if one != "null"], is_column=is_column)
    if isinstance(schema, str):
        return _PLAIN.get(schema, pa.dense_union([]))  # the name of a type that has itself in it
    kind = schema["type"]
    if not isinstance(kind, str):
        return arrow_type(kind, is_column=is_column)
    nested = _NESTED.get(kind)
    if nested is not None:
        return nested(schema)
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = schema["precision"], schema.get("scale", 0)
        if digits <= _DIGITS or (is_column and scale <= _DIGITS):
            return pa.decimal128(min(digits, _DIGITS), scale)
        return _OTHER
    return _LOGICAL.get((kind, str(logical)), _PLAIN.get(kind, _OTHER))


def is_long_decimal(field: Any) -> bool:
    """Whether a column is a decimal of more digits than Spark has."""
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return any(isinstance(one, Mapping) and one.get("precision", 0) > _DIGITS for one in kinds)


_OTHER = pa.dense_union([])


def _union(types: list[Any], *, is_column: bool) -> pa.DataType:
    if len(types) == 1:
        return arrow_type(types[0], is_column=is_column)
    names = frozenset(one for one in types if isinstance(one, str))
    if len(names) == len(types) and names in _WIDER:
        return _PLAIN[_WIDER[names]]
    return pa.dense_union([pa.field(str(at), arrow_type(one)) for at, one in enumerate(types)])


_NESTED: Mapping[str, Callable[[Any], pa.DataType]] = {
    "array": lambda schema: pa.list_(arrow_type(schema["items"])),
    "map": lambda schema: pa.map_(pa.string(), arrow_type(schema["values"])),
    "record": lambda schema: pa.struct(
        [pa.field(one["name"], arrow_type(one["type"])) for one in schema["fields"]]
    ),
}
