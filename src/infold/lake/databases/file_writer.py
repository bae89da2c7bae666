"""Rows of a database as Parquet files: a batch at a time, with a hash that no order changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from infold.lake.databases.columns import Row, WantedColumn
from infold.lake.databases.extracted_files import ExtractedFile, file_of

GROUP_ROWS = 100_000
GROUP_BYTES = 64 * 1024 * 1024
"""When rows are written out: a group of rows of Parquet is in memory until then."""

_SUM_MODULUS = 1 << 128

Parts = Iterable[tuple[str, Sequence[Row]]]
"""Rows, each batch with the name of its file; those of a file come one after the other."""


def write_files(
    folder: Path, pull: str, columns: Sequence[WantedColumn], parts: Parts
) -> dict[str, ExtractedFile]:
    """Write rows into files of a reading, which no list names yet."""
    written: dict[str, ExtractedFile] = {}
    writer: _Writer | None = None
    with ExitStack() as stack:
        for name, rows in parts:
            if writer is None or writer.name != name:
                if writer is not None:
                    written[writer.name] = writer.finish()
                assert name not in written, "rows of one file come one after the other"
                writer = stack.enter_context(_Writer(folder, name, pull, columns))
            writer.add(rows)
        if writer is not None:
            written[writer.name] = writer.finish()
    return written


class _Writer:
    """Writes one file."""

    def __init__(self, folder: Path, name: str, pull: str, columns: Sequence[WantedColumn]) -> None:
        self.name, self._pull, self._columns = name, pull, columns
        self._schema = pa.schema([(column.name, column.arrow()) for column in columns])
        self._file = file_of(folder, name, pull).open("wb")
        self._parquet = parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        self._unwritten: list[pa.RecordBatch] = []
        self._rows, self._sum = 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what :meth:`finish` was not reached of."""
        if not self._file.closed:
            self._parquet.close()
            self._file.close()

    def add(self, rows: Sequence[Row]) -> None:
        """Add a batch. Raises ``UnfitError``."""
        if not rows:
            return
        columns = zip(*rows, strict=True)
        arrays = [one.array(values) for one, values in zip(self._columns, columns, strict=True)]
        self._unwritten.append(pa.record_batch(arrays, schema=self._schema))
        self._rows += len(rows)
        self._sum = (self._sum + sum(map(_hash, rows))) % _SUM_MODULUS
        waiting = sum(batch.num_rows for batch in self._unwritten)
        if waiting >= GROUP_ROWS or sum(b.nbytes for b in self._unwritten) >= GROUP_BYTES:
            self._write()

    def finish(self) -> ExtractedFile:
        """Write what is left, down to the disk."""
        self._write()
        self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        # Files of other columns are others, whatever their rows are.
        of = blake2b(repr([(f.name, str(f.type)) for f in self._schema]).encode(), digest_size=8)
        return ExtractedFile(self._rows, f"{of.hexdigest()}:{self._sum:032x}", self._pull)

    def _write(self) -> None:
        if self._unwritten:
            self._parquet.write_table(pa.Table.from_batches(self._unwritten, self._schema))
            self._unwritten = []


def _hash(row: tuple[Any, ...]) -> int:
    return int.from_bytes(blake2b(repr(row).encode(), digest_size=16).digest(), "big")
