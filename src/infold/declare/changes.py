"""
When the files of a project change.

The files are looked at again and again: that sees changes on every kind of disk, those that come
over a network or from outside a container too, and what an editor replaces by renaming. Only names,
sizes and times are looked at, which takes milliseconds for a thousand models.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from infold.declare.folder import FOLDERS, PROJECT_FILE, read_folder
from infold.messages.errors import InfoldError

PAUSE = 0.4
"""The time between two looks, in seconds."""

Mark = tuple[int, int, int]
"""What changes with a file: its time, its size, and which file it is."""


def each_change(root: Path, sleep: Callable[[float], object] = time.sleep) -> Iterator[None]:
    """
    Yields at once, and again whenever a file of the project has changed.

    What changes while the caller is busy counts: it yields again at once.
    """
    while True:
        others = _imported(root)
        before = marks(root, others)
        yield
        while marks(root, others) == before:
            sleep(PAUSE)


def marks(root: Path, others: frozenset[str] = frozenset()) -> dict[str, Mark]:
    """The files of a project and ``others`` in it as they are now; what is gone is left out."""
    names = {PROJECT_FILE, *others}
    for folder in FOLDERS:
        for place, _, files in os.walk(root / folder, followlinks=True):
            names |= {os.path.relpath(Path(place, file), root) for file in files}
    found = {}
    for name in names:
        try:
            now = (root / name).stat()
        except OSError:
            continue
        found[name] = (now.st_mtime_ns, now.st_size, now.st_ino)
    return found


def _imported(root: Path) -> frozenset[str]:
    """The modules that functions import from elsewhere in the project, as far as it can be read."""
    try:
        return frozenset(name for name, _ in read_folder(root).files)
    except (InfoldError, OSError):
        return frozenset()
