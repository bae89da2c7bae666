"""Parquet files without a JVM: one column of them, and footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.lake.reading import listing

if TYPE_CHECKING:
    import pyarrow as pa

list_files = listing.list_files


def event_times(path: Path, _source: Source, column: str) -> Iterator[pa.Array]:
    """See ``FormatFiles``."""
    from pyarrow import parquet

    yield from parquet.read_table(path, columns=[column]).column(column).chunks


def row_counts(root: Path, files: Sequence[ListedFile]) -> Mapping[str, int]:
    """By their footers; files that cannot be read are left out: the ingest reports them."""
    import pyarrow as pa
    from pyarrow import parquet

    found = {}
    for file in files:
        try:
            found[file.path] = parquet.read_metadata(root / file.path).num_rows
        except (OSError, pa.ArrowInvalid):
            continue
    return found
