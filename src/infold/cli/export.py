"""Rows to files, by pyarrow: CSV, JSON lines, Parquet; to a file or to the standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from infold.core import definition
from infold.core.arrow_values import FarTime, rows_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa


def csv(rows: pa.Table, path: Path | None) -> None:
    """
    CSV with a header, as RFC 4180 has it; quotes only where a reader needs them.

    NULL is an empty field, an empty text is ``""``. What has parts is written as JSON.
    """
    with _open_output(path) as file:
        file.write((",".join(map(_csv_field, rows.column_names)) + "\n").encode())
        for batch in rows.to_batches(max_chunksize=10_000):
            lines = zip(*(_csv_fields(column) for column in batch.columns), strict=True)
            file.write("".join(",".join(line) + "\n" for line in lines).encode())


def _csv_fields(column: pa.Array) -> Sequence[str]:
    """The values of a column as CSV has them."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_map(kind):
        texts = [
            None if value is None else definition.to_json_text(value) for value in values_of(column)
        ]
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if value is None else value.hex() for value in column.to_pylist()]
    else:
        texts = column.cast(pa.string()).to_pylist()
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            # Arrow writes no day, and other years, beyond those that Python has.
            for at, value in enumerate(values_of(column)):
                if isinstance(value, FarTime):
                    texts[at] = str(value).replace("+00:00", "Z")
    return [_csv_field(text) for text in texts]


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text and not any(sign in text for sign in _CSV_STRUCTURE):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


_CSV_STRUCTURE = (",", '"', "\n", "\r")


def json(rows: pa.Table, path: Path | None) -> None:
    """One JSON object a line; times in ISO 8601, decimals as texts, so that none is rounded."""
    with _open_output(path) as file:
        for batch in rows.to_batches(max_chunksize=10_000):
            for row in rows_of(batch):
                file.write(f"{definition.to_json_text(row)}\n".encode())


def parquet(rows: pa.Table, path: Path | None) -> None:
    """One Parquet file, with the table's own types."""
    from pyarrow import parquet as writer

    with _open_output(path) as file:
        writer.write_table(rows, file)


@contextmanager
def _open_output(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") as file:
        yield file
