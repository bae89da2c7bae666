"""
Where Spark puts down rows that it cannot keep in memory: folders that nobody else can read.

Each process that starts Spark has a folder of its own, and holds a lock on a file in it together
with its JVM. Whoever makes the next one removes those that nobody holds any more: a killed JVM
tidies nothing up.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "in-use"


def new_spill_folder(parent: Path) -> tuple[Path, int]:
    """
    A new folder below ``parent``, and the open file whose lock says that it is in use.

    Folders of processes that are gone are removed first.
    """
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    parent.chmod(0o700)
    with _folder_lock(parent):
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{os.getpid()}-"))
        held = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
    return folder, held


@contextmanager
def _folder_lock(parent: Path) -> Iterator[None]:
    """A folder that is being made is not yet held by anybody, and must not be swept."""
    with (parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sweep(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.is_symlink() and not _is_locked(folder / _LOCK):
            shutil.rmtree(folder, ignore_errors=True)


def _is_locked(lock: Path) -> bool:
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
