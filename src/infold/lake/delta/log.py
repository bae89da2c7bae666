"""
The log of a Delta table: its versions, and what infold takes a version for.

A table of Delta counts its versions from 0, and so does the next one in the same folder. What
infold keeps in its ledger is to mean one state of one table for good. So a *snapshot* is a number
made of the table's own id and the version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from infold.core.files import stat_fingerprint
from infold.core.interval import Granularity
from infold.core.own_columns import PARTITION, is_own
from infold.core.ports import StoredLayout
from infold.core.type_changes import Type
from infold.lake.delta.commit import LOG, SET_BACK, STEP, Commit, read_ahead, read_commit
from infold.lake.stores import places

_FILE = re.compile(r"(\d{20})\.(json|crc|checkpoint\b.*parquet)")
_CHECKPOINT_NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")
_CHECKPOINT = "_last_checkpoint"
DROPPED = "_infold_dropped"
"""A file in the log of a dropped table in a store; there until all else is deleted."""

_VERSION_BITS = 32
"""The lowest bits of a snapshot's number are the version; those above are the table's."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table is made of at a version: its id, columns and partitioning."""

    table_id: str
    fields: Sequence[Mapping[str, Any]]
    partitioned_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """The log of the table in a folder, as it was when it was looked at."""

    folder: str
    commits: tuple[int, ...]
    """The versions with a file of their own, ascending."""
    newest: int
    marks: Mapping[str, str]
    """All files of the log by name, as ``places.marks`` has them."""

    @property
    def location(self) -> str:
        """
        Where the newest version is, and of which table: no other version has the same.

        In a store that is its ETag too: a version there can be written over.
        """
        mark = self.mark(self.newest)
        return f"{self.file(self.newest)}{mark and f'@{mark}'}#{self.schema().table_id}"

    def file(self, version: int) -> str:
        """Where the commit of a version is, or would be."""
        return places.below(self.folder, LOG, _name(version))

    def checkpoint(self, version: int) -> int | None:
        """The newest version up to this one whose files are summed in one file of the log."""
        names = (_CHECKPOINT_NAME.fullmatch(name) for name in self.marks)
        sums = (int(match[1]) for match in names if match)
        return max((at for at in sums if at <= version), default=None)

    def mark(self, version: int) -> str:
        """What tells the commit of a version from another one of its number."""
        return self.marks[_name(version)]

    def commit(self, version: int) -> Commit:
        """What a version did."""
        return read_commit(self.file(version), self.mark(version))

    def main(self) -> Iterator[Commit]:
        """
        The versions that the present rows come from, newest first, as far back as they are kept.

        Those between a version and the one to which it set the table back are none of them.
        """
        version, versions = self.newest, {*self.commits}
        if places.in_store(self.folder):
            read_ahead(tuple((self.file(one), self.mark(one)) for one in self.commits))
        while version in versions:
            commit = self.commit(version)
            if commit.is_version:
                yield commit
            version = int(commit.own.get(SET_BACK, version - 1))

    def steps(self) -> Mapping[str, int]:
        """The steps of infold among these, with their versions, newest last."""
        steps = [(commit.own[STEP], commit.version) for commit in self.main() if STEP in commit.own]
        return dict(reversed(steps))

    def foreign(self) -> int | None:
        """
        The newest version that changed something and is not infold's; see
        ``iceberg.commits.foreign_snapshot``.
        """
        versions = (one.version for one in self.main() if one.changes and not one.is_ours)
        return next(versions, None)

    def schema(self, version: int | None = None) -> Schema:
        """
        The columns at a version, by the newest commit that set them, or by a summary of a version.

        Where the log does not go back so far, its checkpoint says it.
        """
        at = self.newest if version is None else version
        versions = {*self.commits}
        for earlier in range(at, -1, -1):
            if earlier not in versions:
                break
            if (metadata := self.commit(earlier).metadata) is not None:
                return _schema(metadata)
            if (summed := self._summary(earlier)) is not None:
                return _schema(summed)
        from infold.lake.delta.rows import metadata_of

        return _schema(metadata_of(self.folder, at))

    def _summary(self, version: int) -> Mapping[str, Any] | None:
        """The metadata in the checksum file of a version, which not every writer writes."""
        name = f"{version:020}.crc"
        if name not in self.marks:
            return None
        file, mark = places.below(self.folder, LOG, name), self.marks[name]
        return _known_summary(file, mark) if mark else _summary(file)

    def snapshot(self, version: int) -> int:
        """The number of a version for infold."""
        mark = blake2b(self.schema().table_id.encode(), digest_size=4).digest()
        return (int.from_bytes(mark) & 0x7FFF_FFFF) << _VERSION_BITS | version

    def version(self, snapshot: int) -> int | None:
        """The version with a number; None where that is of another table, or no version is."""
        version = snapshot & ((1 << _VERSION_BITS) - 1)
        return version if version <= self.newest and self.snapshot(version) == snapshot else None


def _summary(file: str) -> Mapping[str, Any] | None:
    try:
        metadata = json.loads(places.read(file)).get("metadata")
    except (OSError, ValueError, AttributeError):
        return None
    return metadata if isinstance(metadata, dict) else None


@lru_cache(maxsize=256)
def _known_summary(file: str, mark: str) -> Mapping[str, Any] | None:
    """The same of a file with this mark, read once."""
    del mark
    return _summary(file)


def _name(version: int) -> str:
    return f"{version:020}.json"


def read_log(folder: str) -> Log | None:
    """The log of the table in a folder; None where no table is, or one that is being deleted."""
    marks = places.marks(places.below(folder, LOG))
    matches = [match for name in marks if (match := _FILE.fullmatch(name))]
    commits = sorted(int(match[1]) for match in matches if match[2] == "json")
    if not commits or DROPPED in marks:
        return None
    return Log(folder, tuple(commits), commits[-1], marks)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest version of the table in a folder."""

    folder: str
    version: int
    mark: str
    """No other version has it, of that table or of one that is made anew in the same folder."""


def newest(folder: str) -> Newest | None:
    """
    The newest version of the table in a folder, of whoever's; None where no table is.

    The log of a table that others write may have very many files. In a store only those after its
    last checkpoint are asked for.
    """
    log = places.below(folder, LOG)
    for after in dict.fromkeys((_checkpointed(log), "")):
        marks = places.marks(log, after)
        commits = [name for name in marks if (of := _FILE.fullmatch(name)) and of[2] == "json"]
        if commits and DROPPED not in marks:
            name = max(commits)
            file, etag = places.below(log, name), marks[name]
            # A table made anew counts its versions from 0 again.
            mark = etag or stat_fingerprint(Path(file).stat())
            return Newest(folder, int(name.partition(".")[0]), f"{file}:{mark}")
    return None


def _checkpointed(log: str) -> str:
    """What the names of versions after the last checkpoint come after, if the log says which."""
    if not places.in_store(log):
        return ""
    try:
        version = json.loads(places.read(places.below(log, _CHECKPOINT)))["version"]
        return f"{version:020}"
    except (OSError, ValueError, TypeError, KeyError):  # there is none, or it is damaged
        return ""


def entries_before(folder: str, version: int) -> Sequence[str]:
    """The files of the log that say what only versions before one need."""
    return [file for number, file in _entries(folder) if number < version]


def entries_after(folder: str, version: int) -> Sequence[str]:
    """The files of the log of versions after one."""
    return [file for number, file in _entries(folder) if number > version]


def _entries(folder: str) -> Iterator[tuple[int, str]]:
    log = places.below(folder, LOG)
    for name in sorted(places.marks(log)):
        if match := _FILE.fullmatch(name):
            yield int(match[1]), places.below(log, name)


def _schema(metadata: Mapping[str, Any]) -> Schema:
    return Schema(
        table_id=str(metadata["id"]),
        fields=json.loads(metadata["schemaString"])["fields"],
        partitioned_by=tuple(metadata.get("partitionColumns") or ()),
    )


# Delta partitions by stored columns. So each row has the start of the month (day, year, hour) that
# its time is in. What the column is made from is in its own metadata, which is replaced with it.

COLUMN = "infold.column"
UNIT = "infold.partition"
TYPE = "infold.type"


def layout_of(fields: Sequence[Mapping[str, Any]]) -> StoredLayout:
    """The layout of a table with these columns."""
    own: Mapping[str, Any] = next(
        (one.get("metadata") or {} for one in fields if one["name"] == PARTITION), {}
    )
    if COLUMN not in own:
        return StoredLayout(storage="Delta")
    return StoredLayout("Delta", own[COLUMN], Granularity(own[UNIT]), own[TYPE])


def layout_metadata(column: str, unit: Granularity, type_: str) -> Mapping[str, str]:
    """The metadata of the column by which a table is partitioned."""
    return {COLUMN: column, UNIT: unit.value, TYPE: type_}


def user_columns(fields: Sequence[Mapping[str, Any]]) -> Mapping[str, Type]:
    """The columns but infold's own, with their types."""
    return {one["name"]: without_details(one["type"]) for one in shown_fields(fields)}


def shown_fields(fields: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The columns but infold's own, as the log has them."""
    return [one for one in fields if one["name"] != PARTITION and not is_own(one["name"])]


def without_details(type_: Any) -> Type:
    """A type as infold compares types: without what it says of NULLs, and without metadata."""
    if isinstance(type_, str):
        return type_
    if type_["type"] == "array":
        return {"type": "array", "elementType": without_details(type_["elementType"])}
    if type_["type"] == "map":
        return {
            "type": "map",
            "keyType": without_details(type_["keyType"]),
            "valueType": without_details(type_["valueType"]),
        }
    fields = [
        {"name": one["name"], "type": without_details(one["type"])} for one in type_["fields"]
    ]
    return {"type": "struct", "fields": fields}
