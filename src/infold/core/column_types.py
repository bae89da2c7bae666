"""The types of Spark SQL that a column can be declared with."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from itertools import accumulate

from infold.core.type_changes import FIELD, type_parts

SIMPLE = (
    "string", "boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint",
    "long", "float", "real", "double", "date", "timestamp", "timestamp_ltz", "timestamp_ntz",
    "binary", "decimal", "dec", "numeric",
)  # fmt: skip
"""Types without parameters; a bare decimal is decimal(10,0), as in Spark."""

ALIKE = {
    "bool": "boolean",
    "datetime": "timestamp",
    "float64": "double",
    "int32": "int",
    "int64": "bigint",
    "json": "string",
    "number": "decimal(18,2)",
    "object": "string",
    "str": "string",
    "text": "string",
    "time": "timestamp",
    "timestamptz": "timestamp",
    "uuid": "string",
    "varchar": "string",
}
"""What other systems call a type -> Spark's name."""

TIMES = ("timestamp", "timestamp_ltz", "timestamp_ntz", "date")
"""Those that can be an event time."""

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\Z")
_MOST_NESTED = 50
"""No type in a type in a type … is that deep."""
_SIZED_TEXT = re.compile(r"(?:varchar|char|character)\(\s*\d+\s*\)\Z")


@cache
def is_type(text: str) -> bool:
    """Whether a text is a type, such as ``decimal(18,2)`` or ``array<struct<a: int>>``."""
    text = text.strip()
    lower = text.lower()
    if max(accumulate((sign == "<") - (sign == ">") for sign in text), default=0) > _MOST_NESTED:
        return False
    if lower in SIMPLE or _SIZED_TEXT.match(lower):
        return True
    if match := _DECIMAL.match(lower):
        precision, scale = int(match[1]), int(match[2] or 0)
        return 1 <= precision <= 38 and scale <= precision
    outer, _, rest = text.partition("<")
    if not rest.endswith(">"):
        return False
    parts = type_parts(rest[:-1])
    outer = outer.strip().lower()
    if outer == "array":
        return len(parts) == 1 and is_type(parts[0])
    if outer == "map":
        return len(parts) == 2 and all(is_type(part) for part in parts)
    if outer == "struct":
        fields = [FIELD.match(part) for part in parts]
        return all(match is not None and is_type(match[2]) for match in fields)
    return False


def has_timestamps(type_: str) -> bool:
    """Whether a type is one of timestamps, or has one in it."""
    outer, _, rest = type_.strip().partition("<")
    if not rest:
        return outer.lower().startswith("timestamp")
    parts = type_parts(rest.rstrip()[:-1])
    if outer.strip().lower() == "struct":
        parts = [field[2] for part in parts if (field := FIELD.match(part))]
    return any(map(has_timestamps, parts))


_BITS_OF_WHOLE = {
    "tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64,
    "long": 64,
}  # fmt: skip
_TEXT = re.compile(r"(?:string|(?:varchar|char|character)\(\s*(\d+)\s*\))\Z")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)\Z")


def is_value(text: str, type_: str) -> bool:
    """Whether a text is exactly a value of a type; always false for some types."""
    lower = type_.strip().lower()
    if match := _TEXT.match(lower):
        return match[1] is None or len(text) <= int(match[1])
    if lower == "boolean":
        return text.lower() in ("true", "false")
    if lower == "date":
        return _is_date(text)
    if not _NUMBER.match(text):
        return False
    if lower in _BITS_OF_WHOLE:
        half = 1 << (_BITS_OF_WHOLE[lower] - 1)
        return text.lstrip("+-").isdigit() and -half <= int(text) < half
    if lower in ("double", "float", "real"):
        return True
    match = _DECIMAL.match("decimal(10,0)" if lower in ("decimal", "dec", "numeric") else lower)
    if match is None:
        return False
    scale = int(match[2] or 0)
    whole, _, fraction = text.lstrip("+-").partition(".")
    return len(fraction.rstrip("0")) <= scale and len(whole.lstrip("0")) <= int(match[1]) - scale


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
