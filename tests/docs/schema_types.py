"""JSON Schema for the types of keys, by the words of docs/reference/keys.md, and for audits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from infold.core import interval
from infold.core.audits import Severity, Within
from infold.declare import audits
from infold.declare.keys import NAME

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "pattern": r"\S"}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
NAME_PATTERN = "^" + NAME.pattern.replace(r"\Z", "$")
GROUP_NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_]*\.[A-Za-z][A-Za-z0-9_]*$"


def _any_case(word: str) -> str:
    """A pattern for a word in small and large letters: JSON Schema has no flag for it."""
    return "".join(f"[{letter}{letter.upper()}]" for letter in word)


_UNIT = "|".join(map(_any_case, interval._UNITS))
LENGTH: Schema = {
    "type": "string",
    "pattern": rf"^\s*(\d+\s*({_UNIT})[sS]?\s*)+$",
    "patternErrorMessage": "A length of time with its unit: 30 minutes, 1 hour 30 minutes, 2 days.",
}
FLAG: Schema = {
    "anyOf": [
        {"type": "boolean"},
        # What YAML 1.1, which infold reads, takes for a flag, and YAML 1.2 for a text.
        {"type": "string", "pattern": "^([Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF)$"},
    ]
}
INSTANT: Schema = {
    "type": "string",
    "pattern": r"^\s*\d{4}-?(\d{2}-?\d{2}|W\d{2}(-?\d)?)(\D.*)?$",
    "patternErrorMessage": "A date or a time: 2024-01-31, 2024-01-31T09:00.",
}
TEXTS: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}

_CALLED: tuple[tuple[Schema, tuple[str, ...]], ...] = (
    (
        TEXT,
        (
            *("text", "column", "name", "name of a target", "folder or URL", "URL", "file", "glob"),
            *("secret", "`ID:SECRET`", "event SQL", "a call", "zone", "cron expression"),
        ),
    ),
    (
        TEXTS,
        ("list", "list of columns", "list of `column` or `column desc`", "event SQL, or a list"),
    ),
    (FLAG, ("flag",)),
    (LENGTH, ("length", "duration")),
    (INSTANT, ("instant",)),
)
"""The types, each with what the page calls it."""

_BY_WORDS: dict[str, Schema] = {
    "percent": {"type": "string", "pattern": r"^\d+(\.\d+)?\s*%$"},
    "one character": {"type": "string", "minLength": 1, "maxLength": 1},
    "number": {"type": "integer", "minimum": 1},
    "duration, `never`": {"anyOf": [{"const": "never"}, LENGTH]},
    "`none`, `reread 3 days` (any length)": {
        "type": "string",
        "pattern": LENGTH["pattern"]
        .replace(r"^\s*", r"^\s*(none|reread\s+")
        .replace(")+$", ")+)\\s*$"),
    },
    "mapping of new to earlier names": {"type": "object", "additionalProperties": TEXT},
    **{words: schema for schema, all_words in _CALLED for words in all_words},
}


def of_type(words: str) -> Schema:
    """The schema of what the page calls so."""
    if words in _BY_WORDS:
        return dict(_BY_WORDS[words])
    values = re.findall(r"`([^`]+)`", words)
    if words == ", ".join(f"`{value}`" for value in values):
        return {"enum": values}
    if words.endswith(", or a length"):
        return {"anyOf": [{"enum": values}, LENGTH]}
    if words.endswith(", or a Spark pattern"):
        return {"anyOf": [{"enum": values}, TEXT]}
    raise ValueError(f"{words!r} has no schema: add it to _BY_WORDS of {__name__}")


def mapping(properties: Schema, **more: Any) -> Schema:
    """A mapping with these keys and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def mapping_of(values: Schema, **more: Any) -> Schema:
    """A mapping of names that its author chooses."""
    return {"type": "object", "additionalProperties": values, **more}


def only_where(key: str, value: str, known: Iterable[str], **more: Any) -> Schema:
    """Which keys there may be where a key beside them has a value."""
    then = {"propertyNames": {"enum": list(known)}, **more}
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


# -- audits

_WITHIN: Schema = {"enum": list(Within)}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_ARGUMENTS: dict[str, Schema] = {
    "not_null": TEXTS,
    "unique": {
        "anyOf": [TEXTS, mapping({"columns": TEXTS, "within": _WITHIN}, required=["columns"])]
    },
    "accepted_values": mapping(
        {"column": TEXT, "values": {"type": "array", "minItems": 1, "items": SCALAR}},
        required=["column", "values"],
    ),
    "accepted_range": mapping(
        {"column": TEXT, "min": SCALAR, "max": SCALAR, "inclusive": FLAG},
        required=["column"],
        anyOf=[{"required": ["min"]}, {"required": ["max"]}],
    ),
    "matches": mapping({"column": TEXT, "pattern": TEXT}, required=["column", "pattern"]),
    "expression": TEXT,
    "relationship": mapping(
        {"column": TEXTS, "columns": TEXTS, "to": TEXT, "to_column": TEXTS, "to_columns": TEXTS},
        required=["to"],
        anyOf=[{"required": ["column"]}, {"required": ["columns"]}],
    ),
    "row_count": mapping(
        {"min": _WHOLE, "max": _WHOLE, "within": _WITHIN},
        anyOf=[{"required": ["min"]}, {"required": ["max"]}],
    ),
    "freshness": mapping({"column": TEXT, "max_age": LENGTH}, required=["max_age"]),
    "no_gaps": {"anyOf": [{"type": "null"}, FLAG, {"type": "object", "maxProperties": 0}]},
}


def audits_schema() -> Schema:
    """The list of a model's audits."""
    beside: Schema = {"name": TEXT, "severity": {"enum": list(Severity)}, "where": TEXT}
    assert set(beside) == set(audits.BESIDE), "a key beside audits has no schema"
    kinds = {kind: _ARGUMENTS[kind] for kind in audits.KINDS}
    one = mapping({**kinds, **beside}, oneOf=[{"required": [kind]} for kind in kinds])
    return {"type": "array", "items": {"anyOf": [{"const": "no_gaps"}, one]}}
