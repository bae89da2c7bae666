"""How many rows Parquet files hold, by their footers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from infold.core.files import FileSeen


def rows(root: Path, files: Sequence[FileSeen]) -> Mapping[str, int]:
    """By path; without files that cannot be read, of which the ingest will say what is wrong."""
    found = {}
    for file in files:
        try:
            found[file.path] = parquet.read_metadata(root / file.path).num_rows
        except (OSError, pa.ArrowInvalid):
            continue
    return found
