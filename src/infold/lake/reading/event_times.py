"""
Which cells new files touch: an estimate from their event times alone, without a JVM.

With it a plan names the cells before anything is ingested. Rows count before WHERE and before
duplicates are left out, and values that do not parse are left out. Rows that are stored are read by
Spark, never by this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from infold.core.files import ListedFile
from infold.core.formats import EPOCH_UNITS, FORMATS, packing_of
from infold.core.interval import HOUR, MAX, Granularity, micros_of
from infold.core.model import Source
from infold.core.object_store import NO_STORES, Stores
from infold.core.trace import CellState
from infold.lake.reading.formats import files_of
from infold.lake.reading.source_file import source_file
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError

BUDGET = 32 * 1024 * 1024
"""Bytes on disk, about, that reading may cost: a few tenths of a second."""

PER_FILE = 16 * 1024
"""Opening a file costs as much as so many bytes: some two thousand are looked into at most."""

_PACKED_COST = 5
"""A packed file of text costs about this much more than its size."""

_FUTURE = MAX
"""The key that counts rows dated in the future, among hours."""

Estimate = tuple[tuple[CellState, ...], int]
"""Rows by cell (``content`` 0), and how many rows are dated in the future."""


def estimate_cells(
    root: Path,
    source: Source,
    files: Sequence[ListedFile],
    granularity: Granularity,
    as_of: int,
    budget_bytes: int = BUDGET,
    stores: Stores = NO_STORES,
) -> Estimate | None:
    """
    How many rows of each cell some files have; None over the budget or if that is unknown.

    Rows dated later than ``as_of`` are counted by themselves: they wait, or are set aside.
    """
    cost = sum(file.size * (_PACKED_COST if packing_of(file.path) else 1) for file in files)
    cost = cost * FORMATS[source.format].reading_cost + PER_FILE * len(files)
    column = source.event_time_column
    parse = timestamp_parser(source.timestamp_format)
    in_no_file = column in source.names_of_no_file
    if column is None or in_no_file or parse is None or cost > budget_bytes:
        return None
    # A row may be dated somewhat later than it was received, and it has been received by now.
    latest = as_of + (source.future_tolerance if source.received_column else 0)
    hours: Counter[int] = Counter()
    try:
        for file in files:
            stored_file = source_file(root, file, stores)
            batches = files_of(source.format).event_times(stored_file, source, column)
            if batches is None:
                return None
            for values in batches:
                hours.update(_hours(values, parse, source.timestamp_format, latest))
    except (OSError, pa.ArrowInvalid, pa.ArrowKeyError, ReplacedError, InfoldError):
        return None  # the ingest reports what is wrong with the file
    ahead = hours.pop(_FUTURE, 0)
    cells: Counter[int] = Counter()
    for hour, rows in hours.items():
        cells[granularity.floor(hour)] += rows
    return tuple(CellState(granularity.cell(at), cells[at], 0) for at in sorted(cells)), ahead


def _hours(values: pa.Array, parse: ParseTimestamp, written: str, latest: int) -> dict[int, int]:
    """Rows by the hour (an instant) that they fall in; cells are whole hours, so that is enough."""
    stamps = _times(values, written)
    if stamps is not None:
        known = stamps.drop_null()
        due = known.filter(pc.less_equal(known.cast(pa.int64()), latest))
        counts = pc.value_counts(pc.floor_temporal(due, unit="hour"))
        starts = counts.field(0).cast(pa.int64()).to_pylist()
        by_hour = dict(zip(starts, counts.field(1).to_pylist(), strict=True))
        return by_hour | {_FUTURE: len(known) - len(due)}
    rows_by_hour: dict[int, int] = {}
    for entry in pc.value_counts(values.drop_null()).to_pylist():
        at = parse(str(entry["values"]))
        if at is not None:
            start = _FUTURE if at > latest else at - at % HOUR
            rows_by_hour[start] = rows_by_hour.get(start, 0) + entry["counts"]
    return rows_by_hour


def _times(values: pa.Array, written: str) -> pa.Array | None:
    """All values as UTC timestamps at once; None when one of them needs a closer look."""
    naive = pa.timestamp("us")
    kind = values.type
    try:
        if pa.types.is_timestamp(kind):
            if kind.unit == "ns":  # parts of a microsecond are set aside
                count = values.cast(pa.int64())
                is_exact = pc.equal(pc.multiply(pc.divide(count, 1000), 1000), count)
                values = values.filter(is_exact)
            return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(naive)
        if pa.types.is_date(kind):
            return values.cast(naive)
        unit = EPOCH_UNITS.get(written)
        if unit is not None:
            return pc.multiply_checked(values.cast(pa.int64()), unit).cast(naive)
        plain = written == "iso" and pc.all(pc.match_substring_regex(values, _PLAIN)).as_py()
        return values.cast(naive) if plain is not False else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


_PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
"""Times that Arrow and the engine take alike."""


# What it takes for no timestamp is none here; the tests compare the two over a list of texts.

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
    match = _ISO.fullmatch(text.strip(_SPACE))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
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
    match = _OFFSET.fullmatch(text)
    if match is None:
        try:
            return ZoneInfo(text)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
    sign, hours, minutes, seconds, *short = match.groups()
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
