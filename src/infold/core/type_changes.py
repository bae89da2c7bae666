"""
Which changes of a column's type lose nothing: that of two types, the new one has all old values.

A type is a text, as Spark names it (``bigint``, ``decimal(18,2)``), or a mapping, as Spark writes
arrays, maps and structs in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import accumulate
from typing import Any

Type = str | Mapping[str, Any]

_SPARK_NAMES = {
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
_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_WHOLE_TYPES = ("byte", "short", "integer", "long")
_FLOATING_TYPES = ("float", "double")
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\Z")


def holds_all_values(old: str, new: str) -> bool:
    """
    Whether a simple type has every value of another one, of the same kind.

    Whole numbers with more digits, ``double`` in place of ``float``, decimals with more digits and
    as many after the point: what Iceberg widens too.
    """
    old, new = _normal(old), _normal(new)
    for rising in (_WHOLE_TYPES, _FLOATING_TYPES):
        if old in rising and new in rising:
            return rising.index(old) <= rising.index(new)
    digits = _DECIMAL.match(old), _DECIMAL.match(new)
    if digits[0] and digits[1]:
        (before, scale), (after, other) = (
            (int(match[1]), int(match[2] or 0)) for match in digits if match
        )
        return scale == other and before <= after
    return old == new


def is_exact_number(type_: str) -> bool:
    """Whether it is a type of whole numbers or decimals."""
    normal = _normal(type_)
    return normal in _WHOLE_TYPES or _DECIMAL.match(normal) is not None


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
        fields = {field["name"].lower(): field["type"] for field in new["fields"]}
        for field in old["fields"]:
            key = field["name"].lower()
            within = f"{name}.{field['name']}" if name else field["name"]
            if key in fields:
                yield from type_losses(field["type"], fields[key], within)
            else:
                yield within, shown(field["type"]), ""
    elif old["type"] == "array":
        yield from type_losses(old["elementType"], new["elementType"], f"{name}[]")
    else:
        yield from type_losses(old["keyType"], new["keyType"], f"{name} (keys)")
        yield from type_losses(old["valueType"], new["valueType"], f"{name} (values)")


def shown(type_: Type) -> str:
    """A type as Spark SQL writes it."""
    if isinstance(type_, str):
        return _SQL_NAMES.get(type_, type_)
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
    return _SPARK_NAMES.get(lower, lower)


# A declared type is a text; it is read into the mapping that `type_changes` has for nested types.

FIELD = re.compile(r"\s*(`(?:[^`]|``)+`|\w+)\s*(?::\s*|\s+)(.+)\Z", re.DOTALL)
"""A field of a struct, as Spark SQL writes it: its name, maybe in backticks, and its type."""
_DECIMAL_TEXT = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*\d+\s*)?\))?\Z")
_LONG_DIGITS = 18
"""Up to so many digits Spark hashes a decimal as a whole number, and else as bytes."""
_HASHED_AS_INT = ("tinyint", "byte", "smallint", "short", "int", "integer")
"""Whole numbers that are stored and hashed as ``int``."""


@dataclass(frozen=True, slots=True)
class Retyping:
    """
    A column, or a part of it, with its type before and after.

    ``path`` has the column and what is inside it as Iceberg names parts: fields by their names,
    ``element`` of an array, ``key`` and ``value`` of a map.
    """

    path: tuple[str, ...]
    before: str
    after: str

    @property
    def is_stored_alike(self) -> bool:
        """Whether a table has the same type for both."""
        return self.before in _HASHED_AS_INT and self.after in _HASHED_AS_INT

    @property
    def is_in_a_key(self) -> bool:
        """Whether it is in the key of a map, which Iceberg does not change."""
        return "key" in self.path[1:]

    @property
    def keeps_hash(self) -> bool:
        """
        Whether a value of the new type hashes like the same value of the old one.

        Values in arrays, maps and structs are hashed as JSON, in which a number has no width.
        """
        if self.is_stored_alike:
            return True
        if len(self.path) > 1:
            return is_exact_number(self.before)
        digits = [_DECIMAL_TEXT.match(one) for one in (self.before, self.after)]
        wide = {int(match[1] or 10) > _LONG_DIGITS for match in digits if match}
        return all(digits) and len(wide) == 1


def type_of_text(text: str) -> Type:
    """A type of Spark SQL as ``type_changes`` has types; names of simple types as written."""
    text = text.strip()
    outer, _, rest = text.partition("<")
    if not rest:
        return text.lower()
    parts = type_parts(rest.rstrip()[:-1])
    outer = outer.strip().lower()
    if outer == "array":
        return {"type": "array", "elementType": type_of_text(parts[0])}
    if outer == "map":
        key, value = map(type_of_text, parts)
        return {"type": "map", "keyType": key, "valueType": value}
    matches = [match for part in parts if (match := FIELD.match(part))]
    named = [{"name": _unquoted(match[1]), "type": type_of_text(match[2])} for match in matches]
    return {"type": "struct", "fields": named}


def widenings(old: Type, new: Type, path: tuple[str, ...]) -> Iterator[Retyping | None]:
    """The parts of a type that are wider in a new one; None for any other difference."""
    if isinstance(old, str) and isinstance(new, str):
        if old != new:
            yield Retyping(path, old, new) if holds_all_values(old, new) else None
    elif isinstance(old, str) or isinstance(new, str) or old["type"] != new["type"]:
        yield None
    elif old["type"] == "array":
        yield from widenings(old["elementType"], new["elementType"], (*path, "element"))
    elif old["type"] == "map":
        yield from widenings(old["keyType"], new["keyType"], (*path, "key"))
        yield from widenings(old["valueType"], new["valueType"], (*path, "value"))
    elif [one["name"] for one in old["fields"]] != [one["name"] for one in new["fields"]]:
        yield None
    else:
        for before, after in zip(old["fields"], new["fields"], strict=True):
            yield from widenings(before["type"], after["type"], (*path, before["name"]))


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def type_parts(text: str) -> list[str]:
    """The text split at the commas outside all brackets, and outside names in backticks."""
    parts, depth, at, quoted = [], 0, 0, False
    for i, letter in enumerate(text):
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0 and not quoted:
            parts.append(text[at:i])
            at = i + 1
    return [*parts, text[at:]]


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
