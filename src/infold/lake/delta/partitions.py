"""How many files each partition of a Delta table has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from infold.core.own_columns import PARTITION
from infold.lake.delta.rows import named_errors, open_table


def partition_files(folder: str) -> Iterator[tuple[Any, int, int, int]]:
    """For each partition its value as text, the files with data, with deletes, and the bytes."""
    import pyarrow as pa

    stored = open_table(folder)
    with named_errors(folder):
        found = pa.table(stored.get_add_actions(flatten=True))
        batches = [pa.record_batch(batch) for batch in stored.deletion_vectors()]
    name = f"partition.{PARTITION}"
    parts = found[name].to_pylist() if name in found.column_names else [None] * found.num_rows
    marked = {
        unquote(uri).rpartition("/")[2]
        for batch in batches
        for uri in batch.column("filepath").to_pylist()
    }
    data: Counter[str | None] = Counter()
    deletes: Counter[str | None] = Counter()
    size: Counter[str | None] = Counter()
    # At most a row for each file.
    rows = zip(found["path"].to_pylist(), found["size_bytes"].to_pylist(), parts, strict=True)
    for path, bytes_, part in rows:
        value = _text(part)
        data[value] += 1
        size[value] += bytes_
        deletes[value] += unquote(path).rpartition("/")[2] in marked
    for value in data:
        yield value, data[value], deletes[value], size[value]


def _text(value: Any) -> str | None:
    """A date or an instant as Spark's literals have it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    return None if value is None else str(value)
