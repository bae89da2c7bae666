"""
The data files of an Iceberg source table, as :class:`FileSeen`.

pyiceberg reads the manifests, which costs the better part of a second: ask only when the table's
metadata location is not the one that was seen last (``IcebergLake.moved``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from infold.files import FileSeen
from infold.lake.iceberg import open_table


def data_files(location: str) -> tuple[FileSeen, ...]:
    """
    The files of the current snapshot of the table whose metadata is at ``location``, by path.

    Iceberg never writes to a file twice, so a path and the delete files attached to it say what
    rows it gives. ``modified_at`` is 0: when a file was written does not matter here.
    """
    found = {}
    for task in open_table(location).scan().plan_files():
        file = task.file
        found[file.file_path] = FileSeen(
            path=file.file_path,
            size=file.file_size_in_bytes,
            modified_at=0,
            fingerprint=_fingerprint(file.file_size_in_bytes, task.delete_files),
        )
    return tuple(found[path] for path in sorted(found))


def _fingerprint(size: int, deletes: Iterable[Any]) -> str:
    """Size, and what identifies each attached delete file (or vector inside one)."""
    marks = sorted(f"{entry.file_path}#{entry.record_count}" for entry in deletes)
    if not marks:
        return str(size)
    return f"{size}:{hashlib.sha256('|'.join(marks).encode()).hexdigest()[:24]}"
