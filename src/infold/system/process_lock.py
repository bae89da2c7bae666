"""
A lock that lives as long as whatever may still write: this process, or a JVM that outlives it.

A JVM outlives a killed Python by a moment, and may finish a commit in it. The ledger's lease knows
processes, and the lease of a dead one is taken over at once. So a run also locks a file (``flock``)
through an open file description that the JVM inherits. Such a lock is free when no process has the
description open any more, or when one of them unlocks it, as a run does at its end.

A JVM that was there before the process, as that of a spark-submit, inherits nothing. It locks a
second file itself, in the way of Java's, which is ``fcntl``'s.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infold.messages import run_errors

WAIT_SECONDS = 60.0

_open_locks: dict[Path, int] = {}
_unlocks_by_path: dict[Path, list[Callable[[], None]]] = {}
"""The locks that this process has, and what unlocks those of its JVM."""


@contextmanager
def writer_lock(root: Path, target: str) -> Iterator[None]:
    """
    Keep every other writer of the target out until the end of the block.

    The lease refuses a second run before this; here the JVM of a dead run is waited for. Raises
    ``run_errors.engine_busy`` when it does not end.
    """
    descriptor, path = _descriptor(root, target), _path(root, target)
    until = time.monotonic() + WAIT_SECONDS
    _await(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB), path, until)
    try:
        _await(lambda: _refuse_locked(_jvm_lock_file(path)), _jvm_lock_file(path), until)
        _unlocks_by_path[path] = []
        yield
    finally:
        for unlock in _unlocks_by_path.pop(path, ()):
            unlock()
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock_in_jvm(root: Path, target: str, lock: Callable[[Path], Callable[[], None]]) -> None:
    """
    While this process keeps other writers out, let a JVM that it did not start do so too.

    ``lock`` locks a file in the JVM, and returns what unlocks it.
    """
    path = _path(root, target)
    if path in _unlocks_by_path and not _unlocks_by_path[path]:
        _unlocks_by_path[path].append(lock(_jvm_lock_file(path)))


def _await(lock: Callable[[], None], path: Path, until: float) -> None:
    while True:
        try:
            lock()
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise run_errors.engine_busy(lock=str(path)) from None
            time.sleep(0.05)


def _refuse_locked(path: Path) -> None:
    """Raise BlockingIOError if a JVM has locked a file."""
    if path.exists():
        with path.open("r+") as opened:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)


def inherited_descriptors(root: Path, target: str) -> tuple[int, ...]:
    """The file descriptors that a JVM has to inherit."""
    return (_descriptor(root, target),)


def open_locks() -> Mapping[str, int]:
    """The files that this process locks, with the descriptors by which it does."""
    return {str(path): descriptor for path, descriptor in _open_locks.items()}


def take_over(locks: Mapping[str, int]) -> None:
    """
    Lock through descriptors that another process had, and has no use for any more.

    A JVM that inherited them keeps others out for as long as it lives, as with that process.
    """
    _open_locks.update((Path(path), descriptor) for path, descriptor in locks.items())


def let_go(locks: Mapping[str, int]) -> None:
    """Lock no longer, unlike others that have these descriptors too: as long as they live."""
    for descriptor in locks.values():
        os.close(descriptor)


def unlock(locks: Mapping[str, int]) -> None:
    """Unlock for a process that had taken them over and died; nothing of it writes any more."""
    for descriptor in locks.values():
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _descriptor(root: Path, target: str) -> int:
    path = _path(root, target)
    if path not in _open_locks:
        path.parent.mkdir(parents=True, exist_ok=True)
        _open_locks[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    return _open_locks[path]


def _jvm_lock_file(path: Path) -> Path:
    return path.with_suffix(".jvm-lock")


def _path(root: Path, target: str) -> Path:
    return root.resolve() / ".infold" / f"{target}.lock"
