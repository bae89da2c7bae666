"""
Missing files of stored tables: what a table's snapshot needs, compared with what is on disk.

To find out which files a snapshot needs, its manifests have to be read, which takes most of a
second. So a run that ends records the names of the files in each table's folder. A table is not
checked further while it has not changed and has exactly these names.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from infold.lake.iceberg.static_table import open_table
from infold.lake.stores import places
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

_UNNAMED = (".metadata.json", ".crc", "version-hint.text")
"""Metadata files, which the catalog names."""


def names_digest(location: str) -> str:
    """
    A digest of the names of all files of the table whose metadata is at ``location``.

    Empty where that file is gone: the catalog names it, and no digest has the name.
    """
    found = set(places.file_names(places.folder_of(location)))
    if "/".join(location.rsplit("/", 2)[1:]) not in found:
        return ""
    digest = blake2b(digest_size=16)
    for name in sorted(name for name in found if not name.endswith(_UNNAMED)):
        digest.update(name.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def missing_data_files(location: str) -> tuple[str, ...]:
    """The files that the newest snapshot of a table needs and that are not there, or are empty."""
    try:
        stored = open_table(location)
    except InfoldError:
        return (places.shown(location),)
    try:
        tasks = list(stored.scan().plan_files())
    except OSError as error:  # of those that say which files there are
        return _missing_manifests(stored) or (str(error.filename or error),)
    except (EOFError, ValueError):  # one of those is damaged; who reads the table says how
        return _missing_manifests(stored)
    needed = dict.fromkeys(
        file.file_path for task in tasks for file in (task.file, *task.delete_files)
    )
    return tuple(places.missing(tuple(needed)))


def _missing_manifests(stored: StaticTable) -> tuple[str, ...]:
    """Those of the files that say which files a snapshot has that are not there, or empty."""
    snapshot = stored.current_snapshot()
    if snapshot is None:
        return ()
    if found := places.missing((snapshot.manifest_list,)):
        return tuple(found)
    try:
        manifests = snapshot.manifests(stored.io)
    except (EOFError, ValueError):
        return ()
    return tuple(places.missing([one.manifest_path for one in manifests]))
