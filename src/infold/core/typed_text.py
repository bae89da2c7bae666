"""
Values of Spark's types as a person writes them in a table, one way for each value.

``NULL`` is NULL; a text in double quotes is read as a JSON string, so ``"NULL"`` and ``""`` are
texts. Nothing else is guessed: a value has to be one of its column's type, in full. Times without
an offset are UTC. Arrays, maps and structs are JSON.

A read value is a plain Python one: a timestamp an aware datetime in UTC (``timestamp_ntz``: one
without a zone), a decimal a ``Decimal``, a map a ``dict``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from infold.core.interval import DAY, micros_of
from infold.core.type_changes import FIELD, type_parts

NULL = "NULL"

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\Z")
_TEXT = re.compile(r"(?:string|(?:varchar|char|character)\(\s*(\d+)\s*\))\Z")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_BITS_OF_WHOLE = {
    "tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64,
    "long": 64,
}  # fmt: skip
_SPECIAL_NUMBERS = frozenset({"nan", "inf", "infinity", "-inf", "-infinity"})


@dataclass(frozen=True, slots=True)
class Unusable:
    """What stands in a file where a value of a type should; written between backticks."""

    text: str

    def __str__(self) -> str:
        return f"`{self.text}`"


def file_value(text: str, type_: str) -> Any:
    """
    The value of a type that a text stands for, or :class:`Unusable` of what is between backticks.

    In a text backticks are what they are. Raises ValueError as :func:`read_value` does.
    """
    plain = len(text) < 2 or not text[0] == text[-1] == "`" or bool(_TEXT.match(type_.lower()))
    return read_value(text, type_) if plain else Unusable(text[1:-1])


def value_in_file(value: Any, type_: str) -> Any:
    """A value of JSON as :func:`file_value` gives it; what is none of the type is unusable."""
    if value is None:
        return None
    if _TEXT.match(type_.lower()):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        return read_value(written, type_) if written != NULL else Unusable(written)
    except (ValueError, KeyError, ArithmeticError, AttributeError, TypeError):
        return Unusable(written)


def read_value(text: str, type_: str) -> Any:
    """
    The value of a type that a text stands for; None for NULL.

    Raises ValueError if it stands for none.
    """
    if text == NULL:
        return None
    if not text:
        raise ValueError("an empty cell says neither NULL nor an empty text")
    quoted = len(text) >= 2 and text[0] == text[-1] == '"'
    if _TEXT.match(type_.strip().lower()):
        return _text(json.loads(text) if quoted else text, type_)
    return _scalar(text, type_) if "<" not in type_ else _nested(_json(text), type_)


def _text(text: Any, type_: str) -> str:
    match = _TEXT.match(type_.strip().lower())
    if not isinstance(text, str) or (match and match[1] and len(text) > int(match[1])):
        raise ValueError(text)
    return text


def _scalar(text: str, type_: str) -> Any:
    lower = type_.strip().lower()
    if lower in _BITS_OF_WHOLE:
        return _whole(text, _BITS_OF_WHOLE[lower])
    if match := _DECIMAL.match(lower):
        return _decimal(text, int(match[1] or 10), int(match[2] or 0))
    return _SCALARS[lower](text)


def _whole(text: str, bits: int) -> int:
    value = int(text) if re.fullmatch(r"[+-]?\d+", text) else None
    half = 1 << (bits - 1)
    if value is None or not -half <= value < half:
        raise ValueError(text)
    return value


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    if not _NUMBER.match(text):
        raise ValueError(text)
    value = Decimal(text)
    exact = value.normalize().as_tuple()
    assert isinstance(exact.exponent, int)
    if -exact.exponent > scale or value.adjusted() >= precision - scale:
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _double(text: str) -> float:
    if text.lower() not in _SPECIAL_NUMBERS and not _NUMBER.match(text):
        raise ValueError(text)
    return float(text)


def _date(text: str) -> date:
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError(text)
    return day


def _timestamp(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _local_time(text: str) -> datetime:
    local = datetime.fromisoformat(text)
    if local.tzinfo is not None:
        raise ValueError(text)
    return local


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "float": _double,
    "real": _double,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ltz": _timestamp,
    "timestamp_ntz": _local_time,
    "binary": bytes.fromhex,
}


def _json(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _nested(value: Any, type_: str) -> Any:
    """A value of JSON as one of a type."""
    if value is None:
        return None
    outer, _, rest = type_.partition("<")
    outer = outer.strip().lower()
    parts = list(type_parts(rest[:-1])) if rest else []
    if outer == "array" and isinstance(value, list):
        return [_nested(one, parts[0]) for one in value]
    if outer == "map" and isinstance(value, dict):
        return {_nested(key, parts[0]): _nested(one, parts[1]) for key, one in value.items()}
    if outer == "struct" and isinstance(value, dict):
        matches = [match for part in parts if (match := FIELD.match(part))]
        types = {match[1].strip("`"): match[2] for match in matches}
        if not value.keys() <= types.keys():
            raise ValueError(value)
        return {name: _nested(value.get(name), of) for name, of in types.items()}
    if rest or isinstance(value, list | dict):
        raise ValueError(value)
    if _TEXT.match(outer):
        return _text(value, type_)
    written = str(value).lower() if isinstance(value, bool) else str(value)
    return _scalar(written, type_)


def instant_of(value: date | datetime) -> int:
    """The instant of a date (its start), or of a timestamp, in microseconds."""
    if isinstance(value, datetime):
        return micros_of(value if value.tzinfo is not None else value.replace(tzinfo=UTC))
    return (value - date(1970, 1, 1)).days * DAY


# -- the other way


def stored_value(value: Any, type_: str) -> Any:
    """A value of a type as Arrow gives it, as :func:`read_value` gives it."""
    if value is None or "<" not in type_:
        return value
    outer, _, rest = type_.partition("<")
    outer, parts = outer.strip().lower(), type_parts(rest[:-1])
    if outer == "array":
        return [stored_value(one, parts[0]) for one in value]
    if outer == "map":
        pairs = value.items() if isinstance(value, dict) else value
        return {stored_value(k, parts[0]): stored_value(v, parts[1]) for k, v in pairs}
    matches = [match for part in parts if (match := FIELD.match(part))]
    return {of[1].strip("`"): stored_value(value.get(of[1].strip("`")), of[2]) for of in matches}


def value_text(value: Any) -> str:
    """How a value is written in a table, so that :func:`read_value` reads it."""
    if value is None:
        return NULL
    if isinstance(value, str):
        plain = value.isprintable() and value == value.strip() and value[:1] not in ("", '"')
        return value if plain and value != NULL else json.dumps(value, ensure_ascii=False)
    return json.dumps(_plain(value)) if isinstance(value, list | dict) else _plain_text(value)


def _plain_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        whole = not value.second and not value.microsecond
        text = value.isoformat(sep=" ", timespec="minutes" if whole else "auto")
        return text.removesuffix("+00:00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex() if isinstance(value, bytes) else str(value)


def json_value(value: Any) -> Any:
    """A value in a file of JSON lines: its text, or a list or an object of such."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Unusable):
        return value.text
    if isinstance(value, bytes):
        return value.decode()
    return _plain(value) if isinstance(value, list | dict) else _plain_text(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {_key(key): _plain(one) for key, one in value.items()}
    if value is None or isinstance(value, bool | int | str):
        return value
    return _plain_text(value)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _plain_text(value)
