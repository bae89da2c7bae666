"""
One timestamp written as text, read in this process as the engine reads it.

What it takes for no timestamp is none here; the tests compare the two over a list of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from infold.core.formats import EPOCH_UNITS
from infold.core.interval import micros_of

ParseTimestamp = Callable[[str], int | None]

_SPACE = "".join(map(chr, range(0x21)))  # what Java trims
_ISO = re.compile(
    r"\+?(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*([A-Z+-].*)?))?",
    re.ASCII,
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})(?::(\d{1,2})(?::(\d{2}))?)?|(\d{2})(\d{2})(\d{2})?)",
    re.ASCII,
)
_FARTHEST = timedelta(hours=18)


def timestamp_parser(written: str) -> ParseTimestamp | None:
    """How one value is read; None for a pattern that only the engine understands."""
    unit = EPOCH_UNITS.get(written)
    if unit is not None:
        return lambda text: _epoch(text, unit)
    if written == "iso":
        return iso
    pattern = _strptime_pattern(written)
    return None if pattern is None else lambda text: _strptime(text, pattern)


def _epoch(text: str, unit: int) -> int | None:
    try:
        value = Decimal(text.strip(_SPACE)) * unit
        return int(value) if value == int(value) else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def iso(text: str) -> int | None:
    """The instant of a date, with or without a time and a zone; None where it is none."""
    found = _ISO.fullmatch(text.strip(_SPACE))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    digits = (fraction or "").ljust(6, "0")
    if digits[6:].strip("0"):
        return None  # a part of a microsecond
    try:
        at = _zone(zone) if zone else UTC
        if at is None:
            return None
        numbers = [int(part or 0) for part in (year, month, day, hour, minute, second)]
        when = datetime(*numbers, int(digits[:6]), tzinfo=at)  # type: ignore[misc,arg-type]
        return micros_of(when)
    except (ValueError, OverflowError):
        return None


@cache
def _zone(text: str) -> tzinfo | None:
    if text in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.fullmatch(text)
    if found is None:
        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
    sign, hours, minutes, seconds, *short = found.groups()
    if short[0]:
        hours, minutes, seconds = short
    parts = [int(part or 0) for part in (hours, minutes, seconds)]
    length = timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    if length > _FARTHEST or parts[1] > 59 or parts[2] > 59:
        return None
    return timezone(-length if sign == "-" else length)


def _strptime(text: str, pattern: str) -> int | None:
    try:
        when = datetime.strptime(text, pattern)  # noqa: DTZ007 - given UTC below
        return micros_of(when if when.tzinfo else when.replace(tzinfo=UTC))
    except ValueError:
        return None


_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%m",
    "MMM": "%b",
    "dd": "%d",
    "d": "%d",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%f",
    "SSSSSS": "%f",
    "a": "%p",
    "X": "%z",
    "XX": "%z",
    "XXX": "%z",
    "Z": "%z",
}


def _strptime_pattern(pattern: str) -> str | None:
    """Python's words for a Spark datetime pattern, where it has them."""
    out = ""
    for match in re.finditer(r"'([^']*)'|([a-zA-Z])\2*|[^a-zA-Z']", pattern):
        part = match[0]
        if match[2]:
            if part not in _LETTERS:
                return None
            out += _LETTERS[part]
        else:
            out += (match[1] if match[1] is not None else part).replace("%", "%%")
    return out
