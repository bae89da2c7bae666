"""
Missing files of stored tables: what a table's snapshot needs, compared with what is on disk.

To find out which files a snapshot needs, its manifests have to be read, which takes most of a
second. So a run that ends records the names of the files in each table's folder. A table is not
checked further while it has not changed and has exactly these names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from infold.lake.iceberg.metadata_file import local_path
from infold.lake.iceberg.static_table import open_table
from infold.messages.errors import InfoldError


def names_digest(location: str) -> str:
    """
    A digest of the names of all files of the table whose metadata is at ``location``.

    Empty where that file is gone: the catalog names it, and no digest has the name.
    """
    if not local_path(location).is_file():
        return ""
    folder = local_path(location).parent.parent
    digest = blake2b(digest_size=16)
    for name in sorted(_names(str(folder))):
        digest.update(name.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def _names(folder: str) -> Iterator[str]:
    """The files below a folder, without metadata files, which the catalog names."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{name}" for name in _names(entry.path))
        elif not entry.name.endswith((".metadata.json", ".crc", "version-hint.text")):
            yield entry.name


def missing_data_files(location: str) -> tuple[str, ...]:
    """The files that the newest snapshot of a table needs and that are not there."""
    try:
        tasks = list(open_table(location).scan().plan_files())
    except OSError as error:  # of those that say which files there are
        return (str(error.filename or error),)
    except InfoldError:  # the first of those
        return (str(local_path(location)),)
    needed = dict.fromkeys(
        file.file_path for task in tasks for file in (task.file, *task.delete_files)
    )
    return tuple(path for path in needed if not _is_there(local_path(path)))


def _is_there(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
