"""
A lock that lives as long as whatever may still write: this process, or a JVM that outlives it.

A JVM outlives a killed Python by a moment, and may finish a commit in it. The ledger's lease knows
processes, and the lease of a dead one is taken over at once. So a run also locks a file (``flock``)
through an open file description that the JVM inherits. Such a lock is free when no process has the
description open any more, or when one of them unlocks it, as a run does at its end.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infold.messages import run_errors

WAIT_SECONDS = 60.0

_open_locks: dict[Path, int] = {}


@contextmanager
def writer_lock(root: Path, target: str) -> Iterator[None]:
    """
    Keep every other writer of the target out until the end of the block.

    The lease refuses a second run before this; here the JVM of a dead run is waited for. Raises
    ``run_errors.engine_busy`` when it does not end.
    """
    descriptor = _descriptor(root, target)
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise run_errors.engine_busy(lock=str(_path(root, target))) from None
            time.sleep(0.05)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def inherited_descriptors(root: Path, target: str) -> tuple[int, ...]:
    """The file descriptors that a JVM has to inherit."""
    return (_descriptor(root, target),)


def _descriptor(root: Path, target: str) -> int:
    path = _path(root, target)
    if path not in _open_locks:
        path.parent.mkdir(parents=True, exist_ok=True)
        _open_locks[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    return _open_locks[path]


def _path(root: Path, target: str) -> Path:
    return root.resolve() / ".infold" / f"{target}.lock"
