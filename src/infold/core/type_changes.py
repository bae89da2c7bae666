"""
Which changes of a column's type lose nothing: that of two types, the new one has all old values.

A type is a text, as Spark names it (``bigint``, ``decimal(18,2)``), or a mapping, as Spark writes
arrays, maps and structs in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Type = str | Mapping[str, Any]

_NAMES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)",
    "decimal": "decimal(10,0)",
    "timestamp_ltz": "timestamp",
}
"""Spark's several names of one type; that in JSON is used here."""
_SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_WHOLE = ("byte", "short", "integer", "long")
_FLOATING = ("float", "double")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\Z")


def holds_all_values(old: str, new: str) -> bool:
    """
    Whether a simple type has every value of another one, of the same kind.

    Whole numbers with more digits, ``double`` in place of ``float``, decimals with more digits and
    as many after the point: what Iceberg widens too.
    """
    old, new = _normal(old), _normal(new)
    for rising in (_WHOLE, _FLOATING):
        if old in rising and new in rising:
            return rising.index(old) <= rising.index(new)
    digits = _DECIMAL.match(old), _DECIMAL.match(new)
    if digits[0] and digits[1]:
        (before, scale), (after, other) = (
            (int(found[1]), int(found[2] or 0)) for found in digits if found
        )
        return scale == other and before <= after
    return old == new


def is_exact_number(type_: str) -> bool:
    """Whether it is a type of whole numbers or decimals."""
    normal = _normal(type_)
    return normal in _WHOLE or _DECIMAL.match(normal) is not None


def type_losses(old: Type, new: Type, name: str) -> Iterator[tuple[str, str, str]]:
    """
    What a new type has not of an old one: the column or field (``a.b``), its old type, the new.

    The new type is empty where the field is gone. Fields may be added, and change places.
    """
    if isinstance(old, str) and isinstance(new, str):
        if not holds_all_values(old, new):
            yield name, shown(old), shown(new)
    elif isinstance(old, str) or isinstance(new, str) or old["type"] != new["type"]:
        yield name, shown(old), shown(new)
    elif old["type"] == "struct":
        fields = {one["name"].lower(): one["type"] for one in new["fields"]}
        for one in old["fields"]:
            field, within = one["name"].lower(), f"{name}.{one['name']}" if name else one["name"]
            if field in fields:
                yield from type_losses(one["type"], fields[field], within)
            else:
                yield within, shown(one["type"]), ""
    elif old["type"] == "array":
        yield from type_losses(old["elementType"], new["elementType"], f"{name}[]")
    else:
        yield from type_losses(old["keyType"], new["keyType"], f"{name} (keys)")
        yield from type_losses(old["valueType"], new["valueType"], f"{name} (values)")


def shown(type_: Type) -> str:
    """A type as Spark SQL writes it."""
    if isinstance(type_, str):
        return _SQL.get(type_, type_)
    if type_["type"] == "array":
        return f"array<{shown(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{shown(type_['keyType'])},{shown(type_['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{shown(f['type'])}" for f in type_["fields"]) + ">"


def is_simple(type_: str) -> bool:
    """Whether a type has no other types in it."""
    return "<" not in type_


def _normal(type_: str) -> str:
    lower = " ".join(type_.lower().split())
    return _NAMES.get(lower, lower)
