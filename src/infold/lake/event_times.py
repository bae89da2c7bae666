"""
Which cells new files touch, found by reading just their event times in this process.

A plan can then name the cells before anything is ingested. It is an estimate and says so nowhere
else than here: rows count before WHERE and before duplicates are left out, and a value that does
not parse is passed over. What is read for good is read by the engine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet
from pyarrow import json as arrow_json

from infold.core.files import FileSeen
from infold.core.interval import HOUR, MAX, Granularity
from infold.core.model import Format, Source
from infold.core.trace import CellState
from infold.lake import timestamp_text

BUDGET = 32 * 1024 * 1024
"""Bytes on disk, about, that reading may cost: a few tenths of a second."""

_GZIPPED = 5
"""A gzip file of text costs about this much more than its size."""

_TEXT = pa.string()

_AHEAD = MAX
"""Stands for the hours of rows that are dated in the future."""

Peeked = tuple[tuple[CellState, ...], int]


def peek(
    root: Path,
    source: Source,
    files: Sequence[FileSeen],
    granularity: Granularity,
    as_of: int,
    budget_bytes: int = BUDGET,
) -> Peeked | None:
    """
    Rows by cell, ``content`` 0; None over the budget or where it cannot be done.

    Rows that are dated later than ``as_of`` are counted beside them: they wait, or are set aside.
    """
    cost = sum(file.size * (_GZIPPED if file.path.endswith(".gz") else 1) for file in files)
    column = source.event_time_column
    read = _READERS.get(source.format)
    parse = timestamp_text.parser(source.timestamp_format)
    if column is None or read is None or parse is None or cost > budget_bytes:
        return None
    # A row may be dated somewhat later than it was received, and it has been received by now.
    latest = as_of + (source.future_tolerance if source.received_column else 0)
    hours: Counter[int] = Counter()
    try:
        for file in files:
            for values in read(root / file.path, source, column):
                hours.update(_hours(values, parse, source.timestamp_format, latest))
    except (OSError, pa.ArrowInvalid, pa.ArrowKeyError):
        return None  # the ingest will say what is wrong with the file
    ahead = hours.pop(_AHEAD, 0)
    cells: Counter[int] = Counter()
    for hour, rows in hours.items():
        cells[granularity.floor(hour)] += rows
    return tuple(CellState(granularity.cell(at), cells[at], 0) for at in sorted(cells)), ahead


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
                value = json.loads(line, parse_float=str, parse_int=str)[column]
            except (ValueError, KeyError, TypeError, RecursionError):
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


def _hours(
    values: pa.Array, parse: timestamp_text.Parse, written: str, latest: int
) -> dict[int, int]:
    """Rows by the hour (an instant) that they fall in; cells are whole hours, so that is enough."""
    stamps = _times(values, written)
    if stamps is not None:
        known = stamps.drop_null()
        due = known.filter(pc.less_equal(known.cast(pa.int64()), latest))
        counts = pc.value_counts(pc.floor_temporal(due, unit="hour"))
        starts = counts.field(0).cast(pa.int64()).to_pylist()
        by_hour = dict(zip(starts, counts.field(1).to_pylist(), strict=True))
        return by_hour | {_AHEAD: len(known) - len(due)}
    found: dict[int, int] = {}
    for entry in pc.value_counts(values.drop_null()).to_pylist():
        at = parse(str(entry["values"]))
        if at is not None:
            start = _AHEAD if at > latest else at - at % HOUR
            found[start] = found.get(start, 0) + entry["counts"]
    return found


def _times(values: pa.Array, written: str) -> pa.Array | None:
    """All values as UTC timestamps at once; None when one of them needs a closer look."""
    naive = pa.timestamp("us")
    kind = values.type
    try:
        if pa.types.is_timestamp(kind):
            if kind.unit == "ns":  # parts of a microsecond are set aside
                count = values.cast(pa.int64())
                whole = pc.equal(pc.multiply(pc.divide(count, 1000), 1000), count)
                values = values.filter(whole)
            return values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).cast(naive)
        if pa.types.is_date(kind):
            return values.cast(naive)
        unit = timestamp_text.EPOCHS.get(written)
        if unit is not None:
            return pc.multiply_checked(values.cast(pa.int64()), unit).cast(naive)
        plain = written == "iso" and pc.all(pc.match_substring_regex(values, _PLAIN)).as_py()
        return values.cast(naive) if plain is not False else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


_PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
"""Times that Arrow and the engine take alike."""
