"""
Definitions as JSON text, which loses nothing, and the digest of such a text.

Every field is in the text, also one with its default: a definition keeps its meaning when a default
changes. A field that a text lacks is newer than the text, and has its default.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from math import isfinite
from typing import Any, Union, get_args, get_origin, get_type_hints

from infold.core.definition import Definition
from infold.core.session_cuts import DeclaredCut

_CUT = "cut"
"""The key, in the object of a cut, that says which cut it is."""


def definition_text(definition: Definition) -> str:
    """A definition as JSON with sorted keys: equal definitions have equal texts."""
    return json.dumps(_plain(definition), separators=(",", ":"), sort_keys=True)


def digest_of(definition: Definition) -> str:
    """What identifies a definition, comments and tags included: the SHA-256 of its text."""
    return sha256(definition_text(definition).encode()).hexdigest()


@lru_cache(maxsize=4096)  # a command asks several times for the definitions of all models
def definition_of_text(text: str) -> Definition:
    """The definition that :func:`definition_text` wrote."""
    definition = _value(Definition, json.loads(text))
    assert isinstance(definition, Definition)
    return definition


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        by_name = {name: _plain(getattr(value, name)) for name in _names(type(value))}
        return {_CUT: value.key, **by_name} if isinstance(value, DeclaredCut) else by_name
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return dict(value) if isinstance(value, Mapping) else value


@cache
def _names(of: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(of))


def _value(type_: Any, raw: Any) -> Any:
    """The value of a type that was written as ``raw``."""
    parts = get_args(type_)
    if get_origin(type_) in (Union, types.UnionType):
        [of] = [part for part in parts if part is not type(None)]
        return None if raw is None else _value(of, raw)
    if get_origin(type_) is tuple:
        return tuple(_value(parts[0], entry) for entry in raw)
    if type_ is DeclaredCut:
        # A class with slots is made twice, and the later one is used.
        type_ = {cut.key: cut for cut in DeclaredCut.__subclasses__()}[raw[_CUT]]
    if isinstance(type_, type) and is_dataclass(type_):
        hints = _hints(type_)
        known = {name: raw[name] for name in _names(type_) if name in raw}
        return type_(**{name: _value(hints[name], value) for name, value in known.items()})
    return type_(raw) if isinstance(type_, type) and issubclass(type_, StrEnum) else raw


@cache
def _hints(of: type) -> Mapping[str, Any]:
    return get_type_hints(of)


# JSON has no number for what is none, and for the infinite: `"NaN"`, `"Infinity"`.


def to_json_text(value: Any) -> str:
    """A value of a table's row, or a whole row, as JSON."""
    try:
        return json.dumps(value, default=_plain_value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # there is one of those
        return json.dumps(_finite(value), default=_plain_value, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


def _plain_value(value: Any) -> Any:
    from infold.core.arrow_values import FarTime

    if isinstance(value, datetime | FarTime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
