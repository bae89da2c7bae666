"""
A lock that lives as long as whatever may still write: this process, or a JVM that it left behind.

A JVM outlives a killed Python by a moment, and may finish a commit in it. The ledger's lease knows
processes, and a dead one is taken over at once; so a run also holds a lock on a file whose open
description the JVM inherits. A lock of that kind (``flock``) is free when every holder of the
description is gone, or when one of them lets go of it, as a run does at its end.
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

_held: dict[Path, int] = {}


@contextmanager
def fence(root: Path, target: str) -> Iterator[None]:
    """
    Keep every other writer of the target out until the end of the block.

    A living run is refused by the lease beforehand in its own words; what this waits for is the
    JVM of a dead one. Raises ``errors.engine_busy`` when that does not end.
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


def descriptors(root: Path, target: str) -> tuple[int, ...]:
    """What a JVM that is started now has to inherit."""
    return (_descriptor(root, target),)


def _descriptor(root: Path, target: str) -> int:
    path = _path(root, target)
    if path not in _held:
        path.parent.mkdir(parents=True, exist_ok=True)
        _held[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    return _held[path]


def _path(root: Path, target: str) -> Path:
    return root.resolve() / ".infold" / f"{target}.lock"
