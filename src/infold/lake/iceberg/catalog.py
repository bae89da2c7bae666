"""
The Iceberg catalog on SQLite, read directly: where each table's metadata is.

One query of one row answers whether a table has moved; no Iceberg library is needed for that. The
file belongs to the engine (Iceberg's JDBC catalog): it is opened for reading, to drop a table, and
to give tables other names.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from infold.core import write_points
from infold.core.swap import Renaming
from infold.messages import run_errors

BUSY_SECONDS = 30.0


def locations(catalog_db: Path) -> dict[tuple[str, str], str]:
    """Metadata locations by namespace and table; nothing when there is no catalog yet."""
    if not catalog_db.exists():
        return {}
    if not catalog_db.is_file():  # a pipe: SQLite would wait for a writer
        raise run_errors.catalog_unreadable(path=str(catalog_db), why="it is no file")
    uri = f"{catalog_db.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as connection:
            rows = connection.execute(
                "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables "
                "WHERE metadata_location IS NOT NULL"
            ).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):  # the engine has made the file and no table in it
            return {}
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error
    except sqlite3.DatabaseError as error:
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error
    return {(namespace, name): location for namespace, name, location in rows}


def drop(catalog_db: Path, namespace: str, names: Sequence[str]) -> None:
    """
    Take tables out of the catalog as the engine does: by deleting their rows.

    It is one transaction, so it happens or it does not. A commit of the engine's at the same time
    finds no row to change, and fails.
    """
    if not catalog_db.exists():
        return
    try:
        with closing(sqlite3.connect(catalog_db, timeout=BUSY_SECONDS)) as connection, connection:
            connection.executemany(
                "DELETE FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
                [(namespace, name) for name in names],
            )
    except sqlite3.DatabaseError as error:
        if "no such table" not in str(error):
            raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error


def rename(catalog_db: Path, namespace: str, renamings: Sequence[Renaming]) -> bool:
    """
    Give tables other names, all in one transaction; False, and nothing is changed, if one moved.

    A table moved if its metadata is not where it is expected, so also if it is gone, or if another
    one has its new name. In between all have names that nobody reads: two can change places.
    """
    if not catalog_db.exists():
        return not renamings
    try:
        with closing(
            sqlite3.connect(catalog_db, timeout=BUSY_SECONDS, isolation_level=None)
        ) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not _rename(connection, namespace, renamings):
                connection.execute("ROLLBACK")
                return False
            write_points.point("rename: before commit")
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error
    write_points.point("rename: after commit")
    return True


def _rename(connection: sqlite3.Connection, namespace: str, renamings: Sequence[Renaming]) -> bool:
    for at, one in enumerate(renamings):
        found = connection.execute(
            "UPDATE iceberg_tables SET table_name = ? "
            "WHERE table_namespace = ? AND table_name = ? AND metadata_location = ?",
            (_between(at), namespace, one.table, one.location),
        )
        if found.rowcount != 1:
            return False
    try:
        for at, one in enumerate(renamings):
            connection.execute(
                "UPDATE iceberg_tables SET table_name = ? "
                "WHERE table_namespace = ? AND table_name = ?",
                (one.to, namespace, _between(at)),
            )
    except sqlite3.IntegrityError:  # the name is another table's
        return False
    return True


def _between(at: int) -> str:
    return f"infold is renaming {at}"


def local_path(location: str) -> Path:
    """The file behind a location: a path, or ``file:`` and a path (Hadoop escapes nothing)."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location)


def metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table."""
    path = local_path(location)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise run_errors.metadata_missing(
            path=str(path), why=error.strerror or str(error)
        ) from error
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    found: dict[str, Any] = json.loads(raw)
    return found


def rows(catalog_db: Path) -> tuple[tuple[Any, ...], ...]:
    """All tables, as :func:`put_back` takes them; none when there is no catalog yet."""
    if not catalog_db.exists():
        return ()
    with closing(sqlite3.connect(catalog_db, timeout=BUSY_SECONDS)) as connection:
        try:
            return tuple(connection.execute("SELECT * FROM iceberg_tables"))
        except sqlite3.OperationalError:  # the engine has made the file and no table in it
            return ()


def put_back(catalog_db: Path, kept: Sequence[tuple[Any, ...]]) -> None:
    """Let the catalog have exactly the tables that it had: each as it was."""
    if not catalog_db.exists():
        return
    with closing(sqlite3.connect(catalog_db, timeout=BUSY_SECONDS)) as connection, connection:
        try:
            connection.execute("DELETE FROM iceberg_tables")
        except sqlite3.OperationalError:
            return
        for row in kept:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO iceberg_tables VALUES ({marks})", row)
