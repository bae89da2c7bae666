"""
Forgets old versions of a Delta table: the files that no kept version needs, then the log of them.

deltalake's ``vacuum`` is not used: in full it deletes deletion vectors that are needed (seen with
1.6), and otherwise it leaves those that are not.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

from infold.lake.delta import folders
from infold.lake.delta.commit import LOG, read_actions
from infold.lake.delta.files import (
    files_in_checkpoint,
    files_of,
    without_statistics_of_removed,
)
from infold.lake.delta.log import Log, entries_after, entries_before, read_log
from infold.lake.delta.rows import named_errors, open_table
from infold.lake.stores import places

_LAST = "_last_checkpoint"
_MARKS = "deletion_vector_*.bin"
_SKEW = 15 * 60
"""How far a store's clock may be from a writer's, in seconds: S3 refuses who is further off."""


def forget_before(log: Log, version: int) -> None:
    """
    Let a table begin at a version.

    Data goes first, then the log, which begins at a checkpoint, as the protocol has it. After a
    death in between, the versions that lost their data cannot be read, and nobody asks for them.
    Files that nobody committed yet are left, if they are younger than the version.
    """
    name = f"{version:020}.checkpoint.parquet"
    checkpoint = places.below(log.folder, LOG, name)
    if name not in log.marks:
        with named_errors(log.folder):
            open_table(log.folder, version).create_checkpoint()
        # Earlier versions of infold kept those of files that they removed: values of rows that may
        # have been erased since.
        places.write(checkpoint, without_statistics_of_removed(places.read(checkpoint)))
        # Of Spark: the checksum of what was in this file.
        _delete_checksums([places.below(log.folder, LOG, _LAST)])
    needed = {name for add in files_in_checkpoint(checkpoint) for name in files_of(add)}
    for later in log.commits:
        if later > version:
            actions = read_actions(log.file(later), log.mark(later))
            adds = (action["add"] for action in actions if "add" in action)
            needed.update(name for add in adds for name in files_of(add))
    before = log.commit(version).at / 1000
    if places.in_store(log.folder):
        before -= _SKEW
    files = ((name, at) for name, at in places.written(log.folder) if _is_data(name))
    old = [name for name, at in files if name not in needed and at < before]
    delete([places.below(log.folder, name) for name in old])
    delete(entries_before(log.folder, version))


def delete(files: Sequence[str]) -> None:
    """Delete files, and the checksums that Spark keeps of them."""
    places.delete(*files)
    _delete_checksums(files)


def _delete_checksums(files: Sequence[str]) -> None:
    """Delete what Spark keeps beside files on a disk: it believes what it finds there."""
    for file in files:
        if not places.in_store(file):
            path = Path(file)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _is_data(name: str) -> bool:
    """Whether a file below a table's folder has rows, or marks rows as deleted."""
    *folders, last = name.split("/")
    return LOG not in folders and (fnmatch(last, "*.parquet") or fnmatch(last, _MARKS))


def scratch_versions(parent: Path) -> dict[str, int]:
    """The newest version of each table in a folder."""
    logs = {name: read_log(str(parent / name)) for name in folders.names(str(parent))}
    return {name: log.newest for name, log in logs.items() if log is not None}


def put_scratch_back(parent: Path, kept: Mapping[str, int]) -> None:
    """Let there be exactly these tables, each at its version; their logs have never been cut."""
    for name in scratch_versions(parent):
        if name not in kept:
            shutil.rmtree(parent / name)
            continue
        folder = str(parent / name)
        delete([*entries_after(folder, kept[name]), f"{folder}/{LOG}/_last_checkpoint"])
