"""
What comes from outside, under a name: the one place that knows how disks, memories and JVMs fail.

Python, SQLite, Spark and the JVM tell of one and the same full disk in words of their own, and
most of these words are a stack. :func:`named` says which of the known ways it was, and None where
it was none of them: that is a mistake of the program's own, or of the step's query.

Spark's classes are told by their names: this is asked at the end of every command, and nearly none
of them has imported Spark.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

from infold.messages import command_errors, faults
from infold.messages.errors import InfoldError

NAMELESS = frozenset(
    {
        "database-unusable",
        "disk-full",
        "internal",
        "not-permitted",
        "out-of-memory",
        "system-refused",
        "too-deep",
    }
)
"""Errors that say nothing of the model that was being built."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


def named(error: BaseException) -> InfoldError | None:
    """The error under its own name; None where it is not known to come from outside."""
    if isinstance(error, InfoldError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error, _path(error))
    if isinstance(error, RecursionError):
        return faults.too_deep(why="something in it is nested deeper than can be read")
    if isinstance(error, MemoryError):
        return faults.out_of_memory("infold's own process", str(error))
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error)
    known = _CLASSES & {kind.__name__ for kind in type(error).__mro__}
    if known & _GONE or (known and any(word in str(error) for word in _SILENCE)):
        return faults.engine_died(why=_line(error))
    if known:
        return _of_jvm(str(error))
    inner = error.__cause__ or getattr(error, "orig", None)
    return named(inner) if isinstance(inner, OSError | sqlite3.Error) else None


_CLASSES = frozenset(
    {"Py4JError", "PySparkException", "Py4JNetworkError", "Py4JJavaError", "SparkConnectException"}
)
_GONE = frozenset({"Py4JNetworkError"})
_SILENCE = (
    "Answer from Java side is empty",
    "An error occurred while trying to connect to the Java server",
    "Error while sending or receiving",
)


def _of_system(error: OSError, path: str) -> InfoldError:
    why = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        return faults.disk_full(path=path, why=why)
    if error.errno in _NOT_ALLOWED:
        return faults.not_permitted(path=path, why=why)
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return faults.engine_died(why=why)
    return faults.system_refused(path=path, why=why)


def _path(error: OSError) -> str:
    """Whichever file it was about, as far as Python says so."""
    name = error.filename2 if error.filename is None else error.filename
    return os.fsdecode(name) if isinstance(name, str | bytes) else ""


def _of_sqlite(error: sqlite3.Error) -> InfoldError | None:
    """A catalog that another process holds, or cannot be written; the ledger names its own file."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError):
        return faults.database_unusable(why=str(error))
    return None


def _of_jvm(text: str) -> InfoldError | None:
    """What the words of a JVM say, its stacks included: the first cause stands at their end."""
    for words, made in _JAVAS:
        found = re.search(words, text)
        if found:
            line = text[text.rfind("\n", 0, found.start()) + 1 :].split("\n", 1)[0].strip()
            return made(line.removeprefix("Caused by: ").lstrip(": "))
    return None


def _file_of(line: str) -> str:
    """The path that a line of Java's names, where it names one."""
    found = re.search(r"(?:file:)?(/[^\s:;,()]+)", line)
    return found[1] if found else ""


_LOCKED_OUT = (
    "AccessDeniedException|Permission denied|Operation not permitted"
    "|Read-only file system|SQLITE_READONLY|SQLITE_CANTOPEN"
)
_JAVAS: tuple[tuple[str, Callable[[str], InfoldError]], ...] = (
    (
        r"java\.lang\.OutOfMemoryError|SparkOutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY",
        lambda line: faults.out_of_memory("Spark", line),
    ),
    (
        r"No space left on device|Disk quota exceeded|SQLITE_FULL",
        lambda line: faults.disk_full(path=_file_of(line), why=line),
    ),
    (
        _LOCKED_OUT,
        lambda line: faults.not_permitted(path=_file_of(line), why=line),
    ),
    (r"java\.lang\.StackOverflowError", lambda line: faults.too_deep(why=line)),
    (r"spark\.driver\.maxResultSize", lambda line: faults.too_many_parts(why=line)),
    (r"Cannot call methods on a stopped SparkContext", lambda line: faults.engine_died(why=line)),
)
"""What Java says, and what it is."""


def told(error: BaseException, root: Path) -> InfoldError:
    """
    The error as a user is told of it; one that nobody knows keeps its traceback in a file.

    ``root`` is the project's folder.
    """
    found = named(error)
    if found is not None:
        return found
    return command_errors.crashed(what=_line(error), log=kept(error, root))


def kept(error: BaseException, root: Path) -> str:
    """Where the traceback of an error went: a file of the project, else a temporary one."""
    import tempfile
    import traceback  # costs as much as click; only a crash pays for it

    text = "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace")
    log = root / ".infold" / "last-error.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(text)
    except OSError:
        try:
            with tempfile.NamedTemporaryFile(
                prefix="infold-last-error-", suffix=".log", delete=False
            ) as other:
                other.write(text)
        except OSError:
            return "no file: neither the project's folder nor a temporary one can be written"
        return other.name
    return str(log)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
