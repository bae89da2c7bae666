"""Opening a file of SQLite to read it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def connect_to_read(file: Path, seconds: float = 5) -> sqlite3.Connection:
    """
    A connection that cannot write, without transactions of Python's own; waits so many ``seconds``.

    Whoever was killed in the middle of a commit left a journal. What it says is undone first, as by
    any reader of SQLite, but one that only reads may not: it would say "attempt to write a readonly
    database". Raises ``sqlite3.Error``, also where the file is none, or may not be written to.
    """
    try:
        return _connected(file, "ro", seconds)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
    with closing(_connected(file, "rw", seconds)):
        return _connected(file, "ro", seconds)


def _connected(file: Path, mode: str, seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode={mode}", uri=True, timeout=seconds, isolation_level=None
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
