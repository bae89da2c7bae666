"""
Takes a ledger to another place, where its target goes on with it: all of it or nothing.

The rows are read and written in one transaction on each side. That of the original lets nobody else
write, not even what needs no lease, and ends by closing it: see :func:`lease.refuse_moved`. The
copy is committed first. If that is all that happened, the same command finds its own copy and
closes the original.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from infold import __version__
from infold.core.report import LedgerCopy
from infold.ledger import database, whole_tables
from infold.ledger.database import (
    FORMAT,
    ID_ROW,
    MOVED_ROW,
    PROJECT_ROW,
    SCHEMA,
    WAREHOUSE_ROW,
    Query,
    SqliteStatements,
)
from infold.ledger.lease import NAME
from infold.ledger.store import SqlLedger
from infold.ledger.whole_tables import BATCH, TABLES, Checksum, Row, Sums, WholeTable, line
from infold.messages import ledger_errors, run_errors
from infold.messages.errors import InfoldError

Rows = Iterator[tuple[WholeTable, Iterable[list[Row]]]]
"""All tables, in order, each with its rows some at a time."""


def copy_ledger(
    original: SqlLedger, to: SqlLedger, *, at: str, place: str, run: str, wait: float = 0.0
) -> LedgerCopy:
    """
    Copy a ledger to where none is, and close it.

    ``at`` is what people call the original, and ``place`` what they call the copy. Raises
    ``ledger_errors.not_empty``; ``run_errors.locked`` while a run is at work.
    """
    _refuse_another(to, place, original)
    original.acquire(run, wait=wait)
    try:
        _refuse_same(to, place, run)
        with original.writing("move") as query:

            def awake() -> object:
                return query.one("lease", name=NAME)

            sums = _copy_made_before(query, to, awake)
            was_made = sums is not None
            if sums is None:
                rows = ((table, whole_tables.batches(query, table)) for table in TABLES)
                token = query.one("lease", name=NAME)[1]
                sums = fill(to, rows, place=place, run=run, token=token, point="copy", awake=awake)
            query.run("add_meta", name=MOVED_ROW, value=place)
    finally:
        original.release()
    return LedgerCopy(at, place, {name: checksum.rows for name, checksum in sums.items()}, was_made)


def fill(
    to: SqlLedger,
    tables: Rows,
    *,
    place: str,
    run: str,
    token: int,
    point: str,
    awake: Callable[[], object] = bool,
) -> Sums:
    """
    Write all rows of a ledger where none is, read them back, and keep them if they are the same.

    The tokens of its lease go on from ``token``.
    """
    with to.database.read() as query:
        _refuse_full(query, place)
    to.acquire(run)
    try:
        with to.writing(point) as query:
            _refuse_full(query, place)
            query.run("drop_meta", name=ID_ROW)
            sums = {}
            for table, batches in tables:
                checksum = sums[table.name] = Checksum()
                for rows in batches:
                    checksum.add(map(line, rows))
                    whole_tables.add_rows(query, table, rows)
            stored = whole_tables.sums_of(query, awake)
            if differing := [name for name in stored if stored[name] != sums.get(name)]:
                raise ledger_errors.copy_differs(place=place, tables=differing)
            _give_back(query, token)
    finally:
        to.release()
    return sums


def _refuse_full(query: Query, place: str) -> None:
    if not whole_tables.is_empty(query):
        raise ledger_errors.not_empty(place=place)


def _refuse_another(to: SqlLedger, place: str, original: SqlLedger) -> None:
    """Raise where something other than a copy of this ledger is, before anything is written."""
    with to.database.read() as query:
        if whole_tables.is_empty(query):
            return
        own_id = query.one("meta", name=ID_ROW)
    with original.database.read() as query:
        if own_id != query.one("meta", name=ID_ROW):
            raise ledger_errors.not_empty(place=place)


def _refuse_same(to: SqlLedger, place: str, run: str) -> None:
    """Raise where both are one ledger, by whatever names: the lease was just taken in it."""
    with to.database.read() as query:
        lease = query.one("lease", name=NAME)
    if lease is not None and lease[2] == run:
        raise ledger_errors.not_empty(place=place)


def _copy_made_before(original: Query, to: SqlLedger, awake: Callable[[], object]) -> Sums | None:
    """
    What is in a copy that is as the original is now: only its closing is left to do.

    None where there is no copy. Another state of it is met as a ledger that is no copy.
    """
    with to.database.read() as query:
        if whole_tables.is_empty(query) or query.one("meta", name=MOVED_ROW) is not None:
            return None
        sums = whole_tables.sums_of(query, awake)
        is_equal = sums == whole_tables.sums_of(original, lambda: query.one("lease", name=NAME))
    return sums if is_equal else None


def _give_back(query: Query, token: int) -> None:
    """Nobody has the lease of the copy, and tokens are greater than any that was given out."""
    last_token = query.one("lease", name=NAME)[1]
    nobody = dict.fromkeys(("run", "host", "place", "pid", "process", "since", "heartbeat_at"))
    query.run(
        "take_lease",
        of_name=NAME,
        of_token=last_token,
        new_token=max(last_token, token),
        **{f"new_{name}": value for name, value in nobody.items()},
    )


# docs/reference/ledger-file.md describes it. The same ledger gives the same lines: tables are in
# the order of their names, rows in that of their keys. Whoever reads it finds out that a line was
# changed or is missing before anything is kept of it. Files of earlier formats that were released
# are read as well: a backup may be older than the program.

FILE_FORMAT = 1
"""The version of the lines; that of the tables in them is the ledger's own."""

KIND = "ledger"
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: what the rest is of."""

    infold: str
    file: int
    format: int
    version: str
    project: str
    warehouse: str
    token: int


def export_ledger(
    ledger: SqlLedger, path: Path, *, at: str, project: str, warehouse: str
) -> LedgerCopy:
    """
    Write a ledger to a file, as it is at one moment; the file is whole, or as it was.

    It is said to be of the ``project`` and its ``warehouse`` if no run was there to say so.
    """
    sums = {}
    with ledger.database.read() as query, _replaced(path) as file:
        lease = query.one("lease", name=NAME)
        names, place = (query.one("meta", name=name) for name in (PROJECT_ROW, WAREHOUSE_ROW))
        header = Header(
            infold=KIND,
            file=FILE_FORMAT,
            format=FORMAT,
            version=__version__,
            project=names[0] if names else project,
            warehouse=place[0] if place else warehouse,
            token=lease[1] if lease else 0,
        )
        _write(file, [_text(asdict(header))])
        for table in TABLES:
            sums[table.name] = _write_table(file, query, table)
        _write(file, [_text({"end": KIND, "tables": len(TABLES)})])
    rows = {name: own.rows for name, own in sums.items()}
    return LedgerCopy(at, str(path), rows, working=(lease and lease[2]) or "")


def _write_table(file: IO[bytes], query: Query, table: WholeTable) -> Checksum:
    checksum = Checksum()
    _write(file, [_text({"table": table.name, "columns": table.names})])
    for rows in whole_tables.batches(query, table):
        lines = [*map(line, rows)]
        checksum.add(lines)
        _write(file, lines)
    _write(file, [_text({"end": table.name, "rows": checksum.rows, "checksum": checksum.text})])
    return checksum


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write(file: IO[bytes], lines: Iterable[str]) -> None:
    file.write("".join(f"{text}\n" for text in lines).encode())


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` at the end of the block, and is gone if it fails."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        with fresh.open("wb") as file:
            if path.suffix == ".gz":
                # No name and no time in it: the same ledger gives the same bytes.
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def import_ledger(
    to: SqlLedger, path: Path, *, place: str, project: str, warehouse: str, run: str
) -> LedgerCopy:
    """
    Make a ledger of an exported file, where none is: all of it or nothing.

    Raises ``ledger_errors.not_empty``, and what is wrong with the file.
    """
    with _opened(path) as file:
        reading = _Reading(path, file)
        header = reading.header()
        with reading.rows(header.format) as rows:  # before anything is written
            for _, batches in rows:
                deque(batches, maxlen=0)
    with _opened(path) as file:
        reading = _Reading(path, file)
        header = reading.header()
        if (header.project, header.warehouse) != (project, warehouse):
            raise ledger_errors.other_file_owner(
                file=str(path),
                found=header.project,
                at=header.warehouse,
                project=project,
                warehouse=warehouse,
            )
        with reading.rows(header.format) as rows:
            sums = fill(to, rows, place=place, run=run, token=header.token, point="import")
    return LedgerCopy(str(path), place, {name: own.rows for name, own in sums.items()})


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The lines of a file, unpacked if they are packed."""
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file


class _Reading:
    """Reads a file line by line; what is wrong is told with the number of the line."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file, self._number = path, file, 0

    def header(self) -> Header:
        """The first line. Raises for a file of something else, and for a newer one."""
        try:
            header = self._value()
        except InfoldError:
            header = None
        if not isinstance(header, dict) or header.get("infold") != KIND:
            why = "its first line is not that of an exported ledger"
            raise ledger_errors.other_file(file=str(self._path), why=why)
        for name, known in (("file", FILE_FORMAT), ("format", FORMAT)):
            value = header.get(name)
            if type(value) is int and value > known:
                raise ledger_errors.newer_file(
                    file=str(self._path), version=header.get("version"), found=value, newest=known
                )
        kinds = {"file": int, "format": int, "token": int}
        names = Header.__dataclass_fields__
        right = header.keys() == names.keys() and all(
            type(header[name]) is kinds.get(name, str) for name in names
        )
        if not right or header["file"] != FILE_FORMAT or header["format"] < database.RELEASED:
            self._damaged("it does not say of what ledger this is")
        return Header(**header)

    @contextmanager
    def rows(self, format_: int) -> Iterator[Rows]:
        """All tables as they are at present, of a file with those of a format."""
        if format_ == FORMAT:
            yield self._tables(TABLES)
            return
        tables = whole_tables.tables_of(database.tables_of(format_, SCHEMA))
        with upgraded_rows(format_, self._tables(tables)) as upgraded:
            yield upgraded

    def _tables(self, tables: Sequence[WholeTable]) -> Rows:
        """All tables; each has to be read to its end before the next."""
        for table in tables:
            if self._value() != {"table": table.name, "columns": [*table.names]}:
                self._damaged(f"the table {table.name} should begin here")
            yield table, self._rows(table)
        if self._value() != {"end": KIND, "tables": len(tables)}:
            self._damaged("the ledger should end here")
        if self._line():
            self._damaged("the ledger ended before it")

    def _rows(self, table: WholeTable) -> Iterator[list[Row]]:
        checksum, batch = Checksum(), list[Row]()
        while isinstance(value := self._value(), list):
            if not table.fits(value):
                self._damaged(f"it is no row of {table.name}")
            batch.append(tuple(value))
            if len(batch) == BATCH:
                checksum.add(map(line, batch))
                yield batch
                batch = []
        checksum.add(map(line, batch))
        if value != {"end": table.name, "rows": checksum.rows, "checksum": checksum.text}:
            self._damaged(f"the rows of {table.name} before it are not those that were exported")
        yield batch

    def _value(self) -> Any:
        """The next line's value."""
        text = self._line()
        if not text.endswith(b"\n"):
            self._damaged(
                "the file ends in the middle of it" if text else "the file ends before it"
            )
        try:
            return json.loads(text.decode())
        except (ValueError, RecursionError):
            self._damaged("it is not JSON")

    def _line(self) -> bytes:
        self._number += 1
        try:
            return self._file.readline()
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._damaged("from here on it cannot be unpacked")

    def _damaged(self, why: str) -> NoReturn:
        raise ledger_errors.damaged_file(file=str(self._path), line=self._number, why=why)


# They are put into tables as that format had them, in a database of SQLite's own that is gone
# afterwards, and upgraded there: what `database` says of upgrades holds for a file as well.

ANONYMOUS = ""
"""By this name SQLite makes a file where those that pass by are, and deletes it at the end."""


@contextmanager
def upgraded_rows(format_: int, tables: Rows) -> Iterator[Rows]:
    """The present tables, of those of a released format; all rows are read before the first."""
    with closing(sqlite3.connect(ANONYMOUS, isolation_level=None)) as connection:
        query = Query(SqliteStatements(connection))
        try:
            connection.execute("BEGIN")
            for text in database.tables_of(format_, SCHEMA):
                connection.execute(text)
            for table, batches in tables:
                for rows in batches:
                    whole_tables.add_rows(query, table, rows)
            for text in database.texts_since(format_):
                connection.execute(text)
        except sqlite3.OperationalError as error:  # such as a disk that is full
            path = "a temporary file of SQLite's"
            raise run_errors.ledger_unusable(path=path, why=str(error)) from error
        yield ((table, whole_tables.batches(query, table)) for table in TABLES)
