"""
Forgets old versions of a Delta table: the files that no kept version needs, then the log of them.

deltalake's ``vacuum`` is not used: in full it deletes deletion vectors that are needed (seen with
1.6), and otherwise it leaves those that are not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from infold.lake.delta.commit import LOG
from infold.lake.delta.log import Log, entries_before
from infold.lake.delta.rows import named_errors, open_table

_LAST = "_last_checkpoint"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
"""Python knows another alphabet of base 85 than the protocol's."""


def forget_before(log: Log, version: int) -> None:
    """
    Let a table begin at a version.

    Data goes first, then the log, which begins at a checkpoint, as the protocol has it. After a
    death in between, the versions that lost their data cannot be read, and nobody asks for them.
    Files that nobody committed yet are left, if they are younger than the version.
    """
    checkpoint = log.folder / LOG / f"{version:020}.checkpoint.parquet"
    if not checkpoint.exists():
        with named_errors(log.folder):
            open_table(log.folder, version).create_checkpoint()
        # Of Spark: the checksum of what was in this file.
        checksum_of(log.folder / LOG / _LAST).unlink(missing_ok=True)
    needed = {*_in_checkpoint(checkpoint)}
    for later in log.commits:
        if later > version:
            needed.update(_added(log.file(later)))
    kept = {log.folder / name for name in needed}
    before = log.commit(version).at / 1000
    for file in _data_files(log.folder):
        if file not in kept and file.stat().st_mtime < before:
            delete(file)
    for entry in entries_before(log.folder, version):
        delete(entry)


def delete(file: Path) -> None:
    """Delete a file, and the checksum that Spark keeps of it."""
    file.unlink(missing_ok=True)
    checksum_of(file).unlink(missing_ok=True)


def checksum_of(file: Path) -> Path:
    """Where Spark keeps the checksum of a file on a disk: it believes one that it finds."""
    return file.with_name(f".{file.name}.crc")


def _data_files(folder: Path) -> Iterator[Path]:
    """Files with rows, and those that mark rows as deleted."""
    for pattern in ("*.parquet", "deletion_vector_*.bin"):
        for file in folder.rglob(pattern):
            if LOG not in file.relative_to(folder).parts:
                yield file


def _in_checkpoint(file: Path) -> Iterator[str]:
    """The files that the version of a checkpoint needs."""
    import pyarrow.parquet as pq

    # At most a row for each file of the table.
    for add in pq.read_table(file, columns=["add"])["add"].to_pylist():
        if add is not None and add.get("path"):
            yield from files_of(add)


def _added(file: Path) -> Iterator[str]:
    """The files that a commit added."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and (add := json.loads(line).get("add")):
            yield from files_of(add)


def files_of(add: Mapping[str, Any]) -> Iterator[str]:
    """The file that is added, and the one that marks rows of it as deleted, below the folder."""
    yield unquote(add["path"])
    marks = add.get("deletionVector") or {}
    if marks.get("storageType") == "u":
        text = str(marks["pathOrInlineDv"])
        folder, number = text[:-20], base64.b85decode(text[-20:].translate(_TO_B85))
        name = f"deletion_vector_{UUID(bytes=number)}.bin"
        yield f"{folder}/{name}" if folder else name
