"""Rows to files, by pyarrow: CSV, JSON lines, Parquet; to a file or to the standard output."""

from __future__ import annotations

import json as codec
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def csv(rows: pa.Table, path: Path | None) -> None:
    """CSV with a header; NULL is empty, an empty text is ``""``."""
    from pyarrow import csv as writer

    with _opened(path) as file:
        writer.write_csv(rows, file)


def json(rows: pa.Table, path: Path | None) -> None:
    """One JSON object a line; times in ISO 8601, decimals as texts, so that none is rounded."""
    with _opened(path) as file:
        for batch in rows.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                line = codec.dumps(row, default=_plain, ensure_ascii=False)
                file.write(f"{line}\n".encode())


def parquet(rows: pa.Table, path: Path | None) -> None:
    """One Parquet file, with the table's own types."""
    from pyarrow import parquet as writer

    with _opened(path) as file:
        writer.write_table(rows, file)


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as file:
        yield file


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
