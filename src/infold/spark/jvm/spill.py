"""
Folders for rows that Spark cannot keep in memory; only their owner can read them.

Each process that starts Spark has a folder of its own, with a file in it that the process and its
JVM keep locked. A killed JVM does not clean up, so the next process that makes a folder removes
those that are not locked any more.
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
    A new folder below ``parent``, and the open file that is locked while the folder is in use.

    Folders of processes that have ended are removed first.
    """
    if not parent.is_dir():
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent.chmod(0o700)
    with _folder_lock(parent):
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=f"{os.getpid()}-"))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


@contextmanager
def _folder_lock(parent: Path) -> Iterator[None]:
    """Keep other processes from removing a folder that is not locked yet."""
    with (parent / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _sweep(parent: Path) -> None:
    """Only what a process made here: the folder may lead to one that has others of the user."""
    for folder in parent.glob("[0-9]*-*"):
        if not folder.is_symlink() and _is_left(folder / _LOCK):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(lock: Path) -> bool:
    """Whether a folder was in use, and is not any more."""
    try:
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is locked, or missing
        return False
    return True
