"""
Tables that readers see only once they are published, all of them at one instant.

A table that is *held back* has two rows in the catalog: infold commits to the one with the longer
name (:func:`unpublished`), and everybody else reads the other. To publish is to let the second
point to what the first points to, for all tables in one transaction of SQLite. Iceberg deletes old
metadata files of a table as it commits, so the second row points to a copy of its own.

A row that infold published has no earlier metadata location. Every commit of an engine sets one: by
that a commit by somebody else is told, and is never overwritten.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from infold.core import write_points
from infold.core.model import UNPUBLISHED
from infold.lake.iceberg.catalog import BUSY_SECONDS, local_path
from infold.messages import run_errors

_MARK = "-published"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the catalog; ``previous`` is the location before an engine's last commit."""

    location: str
    previous: str | None


def unpublished(name: str) -> str:
    """The name under which infold commits to a table that is held back."""
    return name + UNPUBLISHED


def held_back(rows: Iterable[tuple[str, str]], namespace: str) -> frozenset[str]:
    """The tables of a namespace that are held back, given the names in the catalog."""
    return frozenset(
        name.removesuffix(UNPUBLISHED)
        for space, name in rows
        if space == namespace and name.endswith(UNPUBLISHED)
    )


def hold_back(catalog_db: Path, namespace: str, tables: Iterable[str]) -> None:
    """Hold back these tables, as far as they exist: readers go on seeing them as they are now."""
    if not catalog_db.exists():
        return
    rows = _rows(catalog_db, namespace)
    new = [name for name in tables if name in rows and unpublished(name) not in rows]
    if not new:
        return
    for name in new:
        _copy(rows[name].location)
    with _transaction(catalog_db, namespace, rows) as connection:
        for name in new:
            connection.execute(
                "INSERT INTO iceberg_tables SELECT catalog_name, table_namespace, ?,"
                " metadata_location, previous_metadata_location, iceberg_type"
                " FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (unpublished(name), namespace, name),
            )
            _point(connection, namespace, name, published_location(rows[name].location))


def refuse_other_commits(catalog_db: Path, namespace: str) -> None:
    """Raise ``published_elsewhere`` where somebody else committed to a table that is held back."""
    if catalog_db.exists():
        _refuse_other_commits(_rows(catalog_db, namespace), namespace)


def publish(
    catalog_db: Path, namespace: str, *, keep: bool = True, only: Collection[str] | None = None
) -> tuple[str, ...]:
    """
    Show readers all tables that are held back as they are now; the names of those that changed.

    Not all, but ``only`` some, where these are given. With ``keep`` false no table is held back any
    more. Raises ``published_elsewhere`` where
    somebody else committed to one of them; then nothing is published.
    """
    if not catalog_db.exists():
        return ()
    rows = _rows(catalog_db, namespace)
    every = sorted(held_back(((namespace, name) for name in rows), namespace))
    names = every if only is None else [name for name in every if name in only]
    _refuse_other_commits(rows, namespace)
    now = {name: rows[unpublished(name)].location for name in names}
    shown = {name: rows[name].location for name in names if name in rows}
    changed = [name for name in names if shown.get(name) != published_location(now[name])]
    gone = [
        name for name in rows if unpublished(name) not in rows and _is_copy(rows[name].location)
    ]
    if not changed and not gone and (keep or not names):
        return ()
    for name in changed if keep else ():
        _copy(now[name])
    write_points.point("publish: before")
    with _transaction(catalog_db, namespace, rows) as connection:
        for name in changed if keep else names:
            if name not in shown:
                connection.execute(
                    "INSERT INTO iceberg_tables SELECT catalog_name, table_namespace, ?,"
                    " metadata_location, NULL, iceberg_type"
                    " FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                    (name, namespace, unpublished(name)),
                )
            location = published_location(now[name]) if keep else now[name]
            _point(connection, namespace, name, location)
        for name in (*gone, *(() if keep else map(unpublished, names))):
            connection.execute(
                "DELETE FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                (namespace, name),
            )
    write_points.point("publish: after")
    read = {Path(row.location).name for row in _rows(catalog_db, namespace).values()}
    for folder in sorted({local_path(now[name]).parent for name in changed}):
        _delete_old_copies(folder, read)
    return tuple(changed)


def is_complete(catalog_db: Path, namespace: str) -> bool:
    """Whether readers see everything that is committed to tables that are held back."""
    rows = _rows(catalog_db, namespace) if catalog_db.exists() else {}
    return all(
        name.removesuffix(UNPUBLISHED) in rows
        and rows[name.removesuffix(UNPUBLISHED)].location == published_location(row.location)
        for name, row in rows.items()
        if name.endswith(UNPUBLISHED)
    )


def published_location(location: str) -> str:
    """The copy of a metadata file that readers are given."""
    folder, _, name = location.rpartition("/")
    stem, dot, rest = name.partition(".")
    return f"{folder}/{stem}{_MARK}{dot}{rest}"


def _is_copy(location: str) -> bool:
    """Whether a metadata file is a copy for readers: of a table that has another name since."""
    return location.rpartition("/")[2].partition(".")[0].endswith(_MARK)


def _copy(location: str) -> None:
    """Copy a metadata file to the place that readers are given; half a copy is never there."""
    source, copy = local_path(location), local_path(published_location(location))
    part = copy.with_name(f".{copy.name}.part")
    shutil.copyfile(source, part)
    part.replace(copy)


def _delete_old_copies(folder: Path, read: Collection[str]) -> None:
    """Delete copies that no row points to, but for the last: a reader may be about to open it."""
    copies = sorted(
        (path for path in folder.glob(f"*{_MARK}.*") if path.name not in read),
        key=lambda path: path.stat().st_mtime_ns,
    )
    for path in copies[:-1]:
        path.unlink(missing_ok=True)


def _refuse_other_commits(rows: Mapping[str, _Row], namespace: str) -> None:
    for name in sorted(held_back(((namespace, name) for name in rows), namespace)):
        if name in rows and rows[name].previous is not None:
            raise run_errors.published_elsewhere(table=name)


def _point(connection: sqlite3.Connection, namespace: str, name: str, location: str) -> None:
    connection.execute(
        "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = NULL"
        " WHERE table_namespace = ? AND table_name = ?",
        (location, namespace, name),
    )


def _rows(catalog_db: Path, namespace: str) -> dict[str, _Row]:
    try:
        with closing(sqlite3.connect(catalog_db, timeout=BUSY_SECONDS)) as connection:
            return _rows_of(connection, namespace)
    except sqlite3.DatabaseError as error:
        if "no such table" in str(error):  # the engine has made the file and no table in it
            return {}
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error


def _rows_of(connection: sqlite3.Connection, namespace: str) -> dict[str, _Row]:
    found = connection.execute(
        "SELECT table_name, metadata_location, previous_metadata_location FROM iceberg_tables"
        " WHERE table_namespace = ? AND metadata_location IS NOT NULL",
        (namespace,),
    )
    return {name: _Row(location, previous) for name, location, previous in found}


@contextmanager
def _transaction(
    catalog_db: Path, namespace: str, expected: Mapping[str, _Row]
) -> Iterator[sqlite3.Connection]:
    """
    A transaction on the catalog, all or nothing.

    Raises ``published_elsewhere`` where a row is not as ``expected`` any more.
    """
    try:
        connection = sqlite3.connect(catalog_db, timeout=BUSY_SECONDS, isolation_level=None)
        with closing(connection):
            connection.execute("BEGIN IMMEDIATE")
            now = _rows_of(connection, namespace)
            for name in sorted(now.keys() | expected.keys()):
                if now.get(name) != expected.get(name):
                    raise run_errors.published_elsewhere(table=name)
            yield connection
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error
