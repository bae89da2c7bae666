"""
What a run reads of a table in a database, and how it is cut into files.

| declared           | is read                                        | a file is            |
|--------------------|------------------------------------------------|----------------------|
| no key             | everything                                     | the table            |
| corrections: none  | rows with a greater key than any that was read | the rows of a reading |
| corrections: reread | these, and the days before them again         | a day of the key     |

A file with the same rows as before stays as it is, so nothing is built because of it. Everything is
read where nothing was extracted before, something else is declared, or a required column is new.

A key that is a time counts up to a day after the clock: were a row of 2099 the newest, nothing new
would ever be read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from infold.core.model import Source
from infold.lake.databases import extracted_files
from infold.lake.databases.columns import (
    FITS,
    ColumnType,
    KeyRange,
    KeyValue,
    OpenTable,
    Row,
    StoredColumn,
    UnfitError,
    WantedColumn,
    declared_type,
)
from infold.lake.databases.extracted_files import Extracted, ExtractedFile, file_of
from infold.messages import database_errors
from infold.system.secrets import address

WHOLE = "all"
"""The name of the file of a table without a key."""

_CLOCK_TOLERANCE = timedelta(days=1)
_SHOWN = 60
_NUMBERS = (ColumnType.INT16, ColumnType.INT32, ColumnType.INT64)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: how many rows, whether it was everything, and how many files it changed."""

    rows: int
    whole: bool
    changed: int


def extract(
    source: Source,
    folder: Path,
    table: OpenTable,
    now: datetime,
    needed: Collection[str] | None = None,
) -> Reading:
    """
    Extract what a table has that is not extracted yet. Raises errors of ``database_errors``.

    ``now`` is the clock, in UTC. Whoever calls this has the target's lease. With ``needed``, names
    of columns, the files go on as before, and a reading that would change them is refused.
    """
    known = extracted_files.delete_unlisted(folder, source)
    if known is not None and needed is not None:
        source = _declared_as_before(source, known, table, needed)
    columns_read = wanted_columns(source, table)
    key = next((one.stored for one in columns_read if one.name == source.key), None)
    if key is not None and table.has_null(key):
        raise database_errors.key_null(
            key=f"source {source.name}", column=key.name, table=source.table
        )
    declaration = _declared_as(source, key)
    required = {column.name for column in source.columns if not column.optional}
    if known is not None and (known.of != declaration or not required <= known.columns):
        known = None
    reading = _Reading(source, folder, table, columns_read, known, now, token_hex(4))
    written = reading.write()
    before = known.files if known is not None else {}
    kept = {name: file for name, file in before.items() if not _is_read_again(source, known, name)}
    columns = frozenset(one.name for one in columns_read)
    if kept and known is not None:
        columns &= known.columns
    same = {name: before[name] for name, file in written.items() if before.get(name) == file}
    files = {**kept, **written, **same}
    extracted = Extracted(declaration, reading.pull, columns, source.columns, files, reading.last)
    for name in same:
        extracted_files.file_of(folder, name, reading.pull).unlink()
    if known is None or _facts_listed(extracted) != _facts_listed(known):
        extracted_files.commit(folder, source, extracted)
    changed = len(written) - len(same) + len(before.keys() - extracted.files)
    return Reading(sum(file.rows for file in written.values()), known is None, changed)


def _facts_listed(extracted: Extracted) -> object:
    """What a list says, but for which reading said it."""
    return extracted.files, extracted.last, extracted.declared


def _declared_as_before(
    source: Source, known: Extracted, table: OpenTable, needed: Collection[str]
) -> Source:
    """
    A source with the columns that its files were extracted by.

    Raises ``database_errors.declared_otherwise`` where other files would be extracted by its own.
    """
    before = {one.name: one for one in known.declared}
    own = [one for one in source.columns if one.name in needed]
    other = [
        f"{one.name} {one.type}"
        for one in own
        if (had := before.get(one.name)) is None
        or declared_type(had.type)[1] != declared_type(one.type)[1]  # digits decide what is stored
        or not (one.optional or one.name in known.columns)
    ]
    key = table.columns().get(source.key or "")
    if other:
        difference = f"columns that it does not read so: {', '.join(other)}"
    elif known.of != _declared_as(source, key):
        difference = "the database, the table, the key, or whether rows are read again"
    else:
        return replace(source, columns=known.declared)
    raise database_errors.declared_otherwise(key=f"source {source.name}", what=difference)


def wanted_columns(source: Source, table: OpenTable) -> list[WantedColumn]:
    """The declared columns as the table has them. Raises where it has them not, or not so."""
    stored_columns, key = table.columns(), f"source {source.name}"
    columns = []
    for column in source.columns:
        stored = stored_columns.get(column.name)
        if stored is None and column.optional:
            continue
        if stored is None:
            raise database_errors.column_missing(
                key=key, table=source.table, column=column.name, known=stored_columns
            )
        if not stored.fits(column.type):
            raise database_errors.column_type(
                key=key,
                table=source.table,
                column=column.name,
                type=stored.written,
                declared=column.type,
                fits=FITS[stored.type] if stored.type is not None else ("none",),
            )
        columns.append(WantedColumn(stored, column.type))
    return columns


def _declared_as(source: Source, key: StoredColumn | None) -> str:
    """What makes files of one reading go on where those of another ended."""
    table = (_place(source.url or ""), source.table)
    if key is None or key.type is None:
        return repr(table)
    type_ = ColumnType.INT64 if key.type in _NUMBERS else key.type
    how = "none" if source.reread is None else "reread"
    return repr((*table, key.name, type_.value, how))


def _place(url: str) -> str:
    """Where a database is, whoever asks for it: keys of one say nothing of another's rows."""
    parts = address(url)
    return f"{parts.netloc}{parts.path}"


def _start(source: Source, known: Extracted | None) -> KeyValue | None:
    """The key from which on rows are read; None for all."""
    last = known.last if known is not None else None
    if source.reread is None or last is None or isinstance(last, int):
        return last
    midnight = last if isinstance(last, datetime) else datetime.combine(last, time())
    try:
        day = (midnight - timedelta(microseconds=source.reread)).date()
    except OverflowError:
        day = date.min
    return datetime.combine(day, time(), last.tzinfo) if isinstance(last, datetime) else day


def _is_read_again(source: Source, known: Extracted | None, name: str) -> bool:
    """Whether the rows of an extracted file are read again."""
    if source.key is None:
        return True
    start = _start(source, known)
    return source.reread is not None and isinstance(start, date) and name >= _day(start)


@dataclass
class _Reading:
    """One reading of a table, by the name ``pull``; ``last`` grows with the keys that it meets."""

    source: Source
    folder: Path
    table: OpenTable
    wanted: Sequence[WantedColumn]
    known: Extracted | None
    now: datetime
    pull: str
    last: KeyValue | None = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.known.last if self.known is not None else None

    def write(self) -> dict[str, ExtractedFile]:
        """Write the files, or none of them."""
        try:
            return write_files(self.folder, self.pull, self.wanted, self._parts())
        except UnfitError as error:
            extracted_files.undo(self.folder, self.pull)
            raise database_errors.bad_value(
                key=f"source {self.source.name}",
                table=self.source.table,
                column=error.column.name,
                declared=error.column.declared,
                value=repr(error.value)[:_SHOWN],
            ) from None
        except BaseException:
            extracted_files.undo(self.folder, self.pull)
            raise

    def _parts(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Batches of rows, each with the name of its file."""
        at = next((i for i, one in enumerate(self.wanted) if one.name == self.source.key), None)
        if at is None:
            yield WHOLE, ()  # a table without rows has columns all the same
            for batch in self.table.rows(self.wanted, None):
                yield WHOLE, batch
            return
        number = f"{len(self.known.files) + 1 if self.known is not None else 1:08}"
        for rows in self._rows_by_key(at):
            if self.source.reread is None:
                yield number, rows
            else:
                for day, some in groupby(rows, lambda row: _day(row[at])):
                    yield day, list(some)

    def _rows_by_key(self, at: int) -> Iterator[list[Row]]:
        """Batches of the rows that are to be read, by their keys; none is empty."""
        column, start = self.wanted[at], _start(self.source, self.known)
        end, rereads = _latest(column.stored, self.now), self.source.reread is not None
        kind = int if column.stored.type in _NUMBERS else date
        for batch in self.table.rows(
            self.wanted, KeyRange(column.stored, start, end, in_order=rereads)
        ):
            for row in batch:
                if not isinstance(row[at], kind):
                    raise UnfitError(column, row[at])
            rows = [
                row
                for row in batch
                if (start is None or row[at] > start or (rereads and row[at] == start))
                and (end is None or row[at] <= end)
            ]
            if rows:
                greatest = max(row[at] for row in rows)
                self.last = greatest if self.last is None else max(self.last, greatest)
                yield rows


def _latest(key: StoredColumn, now: datetime) -> KeyValue | None:
    """The greatest key that counts now; None for a number, which may be any."""
    if key.type is ColumnType.DATE:
        return (now + _CLOCK_TOLERANCE).date()
    if key.type is ColumnType.LOCAL_TIME:
        return (now + _CLOCK_TOLERANCE).replace(tzinfo=None)
    return now + _CLOCK_TOLERANCE if key.type is ColumnType.INSTANT else None


def _day(key: date) -> str:
    """The day of a key, which is in the name of its file."""
    if isinstance(key, datetime):
        return f"{(key if key.tzinfo is None else key.astimezone(UTC)).date()}"
    return f"{key}"


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
