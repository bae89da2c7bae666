"""JSON without a JVM. ``spark/reading/json_lines.py`` says what a line is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from infold.core.formats import EPOCH_UNITS
from infold.core.model import Source
from infold.lake.reading import listing
from infold.lake.reading.json_values import json_values
from infold.lake.reading.source_file import SourceFile

if TYPE_CHECKING:
    import pyarrow as pa

list_files = listing.list_files
row_counts = listing.uncounted


def event_times(file: SourceFile, source: Source, column: str) -> Iterator[pa.Array]:
    """See ``FormatFiles``; broken lines are left out."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if source.multiline:
        with file.unpacked() as opened:
            yield _one_by_one(json_values(opened.read()), column)
        return
    kind = pa.int64() if source.timestamp_format in EPOCH_UNITS else pa.string()
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema([(column, kind)]), unexpected_field_behavior="ignore"
    )
    try:
        with file.arrow_stream() as stream:
            table = arrow_json.read_json(stream, parse_options=options)
    except pa.ArrowInvalid:  # a broken line, or values of several kinds
        with file.unpacked() as opened:
            yield _one_by_one(opened, column)
    else:
        yield from table.column(column).chunks


def _one_by_one(objects: Iterable[bytes], column: str) -> pa.Array:
    """The column of objects that Arrow does not read, each value as text."""
    import pyarrow as pa

    values: list[str | None] = []
    for one in objects:
        try:
            value = json.loads(one, parse_float=str, parse_int=str)[column]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        values.append(None if value is None else str(value))
    return pa.array(values, pa.string())
