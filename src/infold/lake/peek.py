"""
Which cells new files touch, found by reading just their event times in this process.

A plan can then name the cells before anything is ingested. It is an estimate and says so nowhere
else than here: rows count before WHERE and before duplicates are left out, and a value that does
not parse is passed over. What is read for good is read by the engine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from pyarrow import json as arrow_json

from infold.files import FileSeen
from infold.interval import HOUR, SECOND, Granularity, micros
from infold.model import Format, Source
from infold.trace import CellState

BUDGET = 32 * 1024 * 1024
"""Bytes on disk, about, that reading may cost: a few tenths of a second."""

_GZIPPED = 5
"""A gzip file of text costs about this much more than its size."""

Parse = Callable[[str], int | None]
_TEXT = pa.string()


def peek(
    root: Path,
    source: Source,
    files: Sequence[FileSeen],
    granularity: Granularity,
    budget_bytes: int = BUDGET,
) -> tuple[CellState, ...] | None:
    """Rows by cell, ``content`` 0; None over the budget or where it cannot be done."""
    cost = sum(file.size * (_GZIPPED if file.path.endswith(".gz") else 1) for file in files)
    column = source.event_time_column
    read = _READERS.get(source.format)
    parse = _parser(source.timestamp_format)
    if column is None or read is None or parse is None or cost > budget_bytes:
        return None
    hours: Counter[int] = Counter()
    try:
        for file in files:
            for values in read(root / file.path, source, column):
                hours.update(_hours(values, parse, source.timestamp_format))
    except (OSError, pa.ArrowInvalid, pa.ArrowKeyError):
        return None  # the ingest will say what is wrong with the file
    cells: Counter[int] = Counter()
    for hour, rows in hours.items():
        cells[granularity.floor(hour)] += rows
    return tuple(CellState(granularity.cell(at), cells[at], 0) for at in sorted(cells))


# -- reading one column


def _read_csv(path: Path, source: Source, column: str) -> Iterator[pa.Array]:
    options = csv.ConvertOptions(
        include_columns=[column], column_types={column: _TEXT}, strings_can_be_null=True
    )
    parse = csv.ParseOptions(
        delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip"
    )
    if path.stat().st_size == 0:
        return
    table = csv.read_csv(path, parse_options=parse, convert_options=options)
    yield from table.column(column).chunks


def _read_json(path: Path, source: Source, column: str) -> Iterator[pa.Array]:
    kind = pa.int64() if source.timestamp_format.startswith("epoch_") else _TEXT
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema([(column, kind)]), unexpected_field_behavior="ignore"
    )
    try:
        with pa.input_stream(str(path)) as stream:
            table = arrow_json.read_json(stream, parse_options=options)
    except pa.ArrowInvalid:  # a broken line, or values of several kinds
        yield _read_lines(path, column)
    else:
        yield from table.column(column).chunks


def _read_lines(path: Path, column: str) -> pa.Array:
    values: list[str | None] = []
    with pa.input_stream(str(path)) as stream:
        for line in stream.read().splitlines():
            try:
                value = json.loads(line)[column]
            except (ValueError, KeyError, TypeError):
                continue
            values.append(None if value is None else str(value))
    return pa.array(values, _TEXT)


def _read_parquet(path: Path, source: Source, column: str) -> Iterator[pa.Array]:
    del source
    yield from parquet.read_table(path, columns=[column]).column(column).chunks


_READERS: dict[Format, Callable[[Path, Source, str], Iterator[pa.Array]]] = {
    Format.CSV: _read_csv,
    Format.JSON: _read_json,
    Format.PARQUET: _read_parquet,
}


# -- from values to hours


def _hours(values: pa.Array, parse: Parse, written: str) -> dict[int, int]:
    """Rows by the hour (an instant) that they fall in; cells are whole hours, so that is enough."""
    times = _times(values, written)
    if times is not None:
        counts = pc.value_counts(pc.floor_temporal(times.drop_null(), unit="hour"))
        starts = counts.field(0).cast(pa.int64()).to_pylist()
        return dict(zip(starts, counts.field(1).to_pylist(), strict=True))
    found: dict[int, int] = {}
    for entry in pc.value_counts(values.drop_null()).to_pylist():
        at = parse(str(entry["values"]))
        if at is not None:
            start = at - at % HOUR
            found[start] = found.get(start, 0) + entry["counts"]
    return found


def _times(values: pa.Array, written: str) -> pa.Array | None:
    """All values as UTC timestamps at once; None when one of them needs a closer look."""
    naive = pa.timestamp("us")
    kind = values.type
    try:
        if pa.types.is_timestamp(kind):
            return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(naive)
        if pa.types.is_date(kind):
            return values.cast(naive)
        unit = _EPOCHS.get(written)
        if unit is not None:
            return pc.multiply_checked(values.cast(pa.int64()), unit).cast(naive)
        return values.cast(naive) if written == "iso" else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


_EPOCHS = {"epoch_seconds": SECOND, "epoch_millis": 1_000, "epoch_micros": 1}


def _parser(written: str) -> Parse | None:
    """How one value is read; None for a pattern that only the engine understands."""
    unit = _EPOCHS.get(written)
    if unit is not None:
        return lambda text: _epoch(text, unit)
    if written == "iso":
        return _iso
    pattern = _strptime_pattern(written)
    return None if pattern is None else lambda text: _strptime(text, pattern)


def _epoch(text: str, unit: int) -> int | None:
    try:
        return round(float(text) * unit)
    except (ValueError, OverflowError):
        return None


def _iso(text: str) -> int | None:
    try:
        return _instant(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None


def _strptime(text: str, pattern: str) -> int | None:
    try:
        return _instant(datetime.strptime(text, pattern))  # noqa: DTZ007 - given UTC below
    except ValueError:
        return None


def _instant(when: datetime) -> int:
    return micros(when if when.tzinfo else when.replace(tzinfo=UTC))


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
