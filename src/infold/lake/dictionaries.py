"""
The distinct values of a column of strings, from the dictionaries of Parquet files.

Where values repeat, Parquet stores each once in a part of a file, and rows as numbers. Reading
these dictionaries is some twenty times faster than counting rows by value.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1 << 20
"""How many rows are read at a time: values that do not repeat are all in memory."""


def distinct_values(
    files: Iterable[Path | AbstractContextManager[Any]], column: str, limit: int
) -> pa.Array | None:
    """
    The values of a column in some files, each once, NULL left out.

    When there are more than ``limit``, some that are more than that. None: a file does not have
    the column by this name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.array([], pa.string())
    for each in files:
        with each.open("rb") if isinstance(each, Path) else each as file:
            known = pq.read_metadata(file)
            if column not in known.schema.names:  # written when it had another name
                return None
            parts = pq.ParquetFile(file, metadata=known, read_dictionary=[column])
            for batch in parts.iter_batches(_ROWS, columns=[column]):
                own = batch.column(0).dictionary.cast(pa.string())
                found = pa.chunked_array([found, own]).unique().drop_null()
                if len(found) > limit:
                    return found
    return found
