"""
Missing files of stored tables: what a table's snapshot needs, compared with what is on disk.

To find out which files a snapshot needs, its manifests have to be read, which takes most of a
second. So a run that ends records the names of the files in each table's folder. A table is not
checked further while it has not changed and has exactly these names.
"""

from __future__ import annotations

from hashlib import blake2b

from infold.lake.iceberg.static_table import open_table
from infold.lake.stores import places

_UNNAMED = (".metadata.json", ".crc", "version-hint.text")
"""Metadata files, which the catalog names."""


def names_digest(location: str) -> str:
    """A digest of the names of all files of the table whose metadata is at ``location``."""
    found = places.sizes(places.folder_of(location))
    digest = blake2b(digest_size=16)
    for name in sorted(name for name, _ in found if not name.endswith(_UNNAMED)):
        digest.update(name.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def missing_data_files(location: str) -> tuple[str, ...]:
    """The files that the newest snapshot of a table needs and that are not there."""
    try:
        tasks = list(open_table(location).scan().plan_files())
    except FileNotFoundError as error:  # of those that say which files there are
        return (str(error.filename or error),)
    needed = dict.fromkeys(
        file.file_path for task in tasks for file in (task.file, *task.delete_files)
    )
    return tuple(places.missing(tuple(needed)))
