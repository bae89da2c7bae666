"""Files of sources, as listings show them and as models have taken them in: values only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from operator import attrgetter
from typing import overload
from urllib.parse import unquote

from infold.core.interval import DAY, Granularity, Interval, parse_duration


@dataclass(frozen=True, slots=True)
class ListedFile:
    """
    One input file as a listing (or table metadata) shows it now.

    ``path`` is relative to the project where it lies inside, else absolute; for a table
    it is the data file's path. ``fingerprint`` changes when the content may have: that of
    ``stat_fingerprint``, an object's size and ETag, or data file plus delete files.
    """

    path: str
    size: int
    modified_at: int
    fingerprint: str


class FileListing(Sequence[ListedFile]):
    """
    The files of a folder, by path.

    A file becomes a value as it is asked for. Mostly none is: a listing is compared as a whole.
    """

    __slots__ = ("fingerprints", "paths")

    def __init__(self, fingerprints: Mapping[str, str]) -> None:
        """``fingerprints`` has the fingerprint of each file by its path, as on a disk."""
        self.paths = sorted(fingerprints)
        self.fingerprints = [*map(fingerprints.__getitem__, self.paths)]

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, at: int) -> ListedFile: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ListedFile, ...]: ...
    def __getitem__(self, at: int | slice) -> ListedFile | tuple[ListedFile, ...]:
        """One file, or some."""
        if isinstance(at, slice):
            return tuple(map(_listed_file, self.paths[at], self.fingerprints[at]))
        return _listed_file(self.paths[at], self.fingerprints[at])

    def __iter__(self) -> Iterator[ListedFile]:
        return map(_listed_file, self.paths, self.fingerprints)


def _listed_file(path: str, fingerprint: str) -> ListedFile:
    return ListedFile(
        path, int(fingerprint.partition(":")[0]), written_at(fingerprint), fingerprint
    )


_VERSION_SUFFIX = re.compile(r"\.infold-[0-9a-f]+(?=\.[^./]+$)")


def version_name(name: str, version: str) -> str:
    """The name of one version (hexadecimal digits) of a file, beside which others may be."""
    stem, dot, ending = name.rpartition(".")
    return f"{stem}.infold-{version}{dot}{ending}"


def lasting_path(path: str) -> str:
    """The path of a file in whichever version: its own, but for a ``version_name``."""
    return _VERSION_SUFFIX.sub("", path)


def stat_fingerprint(stat: os.stat_result) -> str:
    """
    The fingerprint of a file on a disk: ``SIZE:CHANGE.INODE:NANOSECONDS``.

    The last is when it was written, as its writer says: tools that copy a file set it to what the
    original had. Nobody sets the time of its last change, nor the number that it has on its disk.
    """
    return f"{stat.st_size}:{stat.st_ctime_ns}.{stat.st_ino}:{stat.st_mtime_ns}"


def is_as_listed(known: str, listed: str) -> bool:
    """
    Whether a known fingerprint is that of the file as it is listed now.

    Older versions of infold have ``SIZE:NANOSECONDS`` of a file on a disk, and no more to compare.
    """
    known, parts = listed_fingerprint(known), listed.split(":")
    return known == listed or (len(parts) == 3 and known.split(":") == parts[::2])


def with_listed(known: str, listed: str) -> str:
    """A known fingerprint of one version of a file, as it is for a version that is listed so."""
    plain, bar, policy = known.partition("|")
    same_form = listed if plain.count(":") == 2 else ":".join(listed.split(":")[::2])
    return f"{same_form}{bar}{policy}"


def written_at(fingerprint: str) -> int:
    """When a file with this fingerprint was written, on a disk or by a listing; microseconds."""
    return int(listed_fingerprint(fingerprint).rpartition(":")[2]) // 1000


def paths_and_fingerprints(files: Sequence[ListedFile]) -> tuple[Iterable[str], Iterable[str]]:
    """Those of a listing, without making values of its files."""
    if isinstance(files, FileListing):
        return files.paths, files.fingerprints
    return map(attrgetter("path"), files), map(attrgetter("fingerprint"), files)


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """
    One version of a file that a model has ingested (``id`` is unique per source, path, version).

    Future-dated rows up to ``horizon``, an as-of instant, were admitted. ``next_due`` is the
    earliest event time still waiting beyond it, None when no row waits. ``dropped`` counts rows
    that lost against a copy of the same event from elsewhere.
    """

    id: int
    path: str
    size: int
    fingerprint: str
    horizon: int
    next_due: int | None = None
    rows: int = 0
    waiting: int = 0
    set_aside: int = 0
    dropped: int = 0
    received_at: int = 0


def without_rows(files: Iterable[IngestedFile]) -> tuple[IngestedFile, ...]:
    """Those that never had a row, whatever became of it."""
    return tuple(
        file for file in files if not (file.rows or file.waiting or file.set_aside or file.dropped)
    )


def with_file_policy(listed: ListedFile, known: IngestedFile | None, policy: str) -> ListedFile:
    """
    A file with what its source decides about files as a whole added to its fingerprint.

    A file that was set aside as a whole becomes another file once the source decides otherwise (a
    column was declared, say), and is read again. A file that was ingested stays what it is.
    """
    plain = listed.fingerprint
    if known is not None and is_as_listed(known.fingerprint, plain) and not set_aside_whole(known):
        return replace(listed, fingerprint=known.fingerprint)
    return replace(listed, fingerprint=f"{plain}|{policy}") if policy else listed


def set_aside_whole(file: IngestedFile) -> bool:
    """
    Whether a file may have been set aside as a whole: no row of it was taken in.

    Only a policy does that, and the fingerprint has it. So a file that only has rows which cannot
    be used, each by itself, may be judged once more, and the verdict is as it was.
    """
    by_policy = "|" in file.fingerprint
    return by_policy and bool(file.set_aside) and not file.rows and not file.waiting


def listed_fingerprint(fingerprint: str) -> str:
    """The part of a file's fingerprint that a listing shows."""
    return fingerprint.partition("|")[0]


@dataclass(frozen=True, slots=True)
class FileCell:
    """Rows of a file in one cell of a model; ``dropped`` of them lost to copies."""

    file_id: int
    cell: Interval
    rows: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class FilesOutcome:
    """
    What one ingest did to the files of its source.

    ``ingested`` are new or re-read files with their new state, which replaces earlier state of the
    same id. ``removed`` are ids that left. ``cells`` are all cells of the files in ``ingested``,
    and replace their entries. ``dropped`` adds to the counts of (file id, cell) of other files:
    rows that lost to copies, and (less than none) rows that were erased.
    """

    source: str
    ingested: tuple[IngestedFile, ...] = ()
    removed: tuple[int, ...] = ()
    cells: tuple[FileCell, ...] = ()
    dropped: tuple[FileCell, ...] = ()
    recounted: bool = False
    """Whether the rows had arrived before, and are only counted by another definition."""


DATE = "{date}"
"""What stands for a date in a path: ``2024-03-09``."""

WILD = re.compile(r"[*?\[]")
"""What makes a name a pattern."""

CALENDAR = {"daily": Granularity.DAY, "weekly": Granularity.WEEK}
"""Words for when the next full listing is due."""

_DATE_DIGITS = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


def glob_of(path: str) -> str:
    """A path as a pattern of names alone."""
    return path.replace(DATE, _DATE_DIGITS)


def is_dated(name: str) -> bool:
    """Whether a name of a pattern has a date in it."""
    return _DATE_DIGITS in name


@dataclass(frozen=True, slots=True)
class DatedPath:
    """
    Where the dated folders of a source are.

    ``start`` is what all its files' paths begin with, up to the first name with a pattern;
    ``names`` are the patterns from there down to the dated folders.
    """

    start: str
    names: tuple[str, ...]

    def folder(self, path: str) -> str | None:
        """The dated folder that a file is in; None for one that is in none of them."""
        if not path.startswith(self.start):
            return None
        names = path[len(self.start) :].split("/", len(self.names))
        return self.start + "/".join(names[:-1]) if len(names) > len(self.names) else None

    def end(self, folder: str) -> int | None:
        """The end of a dated folder's day, in UTC; None where there is no such day."""
        left, right = map(re.escape, self.names[-1].split(_DATE_DIGITS))
        match = re.fullmatch(f"{left}({_DATE_DIGITS}){right}", folder.rpartition("/")[2])
        try:
            day = date.fromisoformat(match[1]) if match else None
        except ValueError:
            return None
        return None if day is None else (day - date(1970, 1, 1)).days * DAY + DAY


@dataclass(frozen=True, slots=True)
class Listed:
    """The files of a source that are there now, and the paths of those that have yet to settle."""

    files: Sequence[ListedFile]
    settling: Sequence[str] = ()
    folders: int = 0
    """How many dated folders were listed."""
    left_out: frozenset[str] = frozenset()
    """The dated folders that are there and were not listed."""


@dataclass(frozen=True, slots=True)
class FullListing:
    """
    A listing of all that a source has, which had exactly the files that a model has ingested.

    ``newest`` is the greatest id of these, ``of`` tells the source as it was declared.
    """

    at: int
    newest: int
    of: str

    @classmethod
    def of_text(cls, text: str) -> FullListing | None:
        """As the ledger keeps it."""
        at, newest, of = text.split() if text.count(" ") == 2 else ("", "", "")
        return cls(int(at), int(newest), of) if at else None

    def __str__(self) -> str:
        return f"{self.at} {self.newest} {self.of}"

    def is_over(self, every: str, now: int) -> bool:
        """Whether the next one is due: in each day or week of UTC, or after a length of time."""
        if now < self.at:  # by another clock
            return True
        if every in CALENDAR:
            return CALENDAR[every].cell(now) != CALENDAR[every].cell(self.at)
        return now - self.at >= parse_duration(every)


# Hive, Spark and Athena write tables in this way. A character that a folder's name cannot have is
# written as `%` and two hexadecimal digits, NULL as `__HIVE_DEFAULT_PARTITION__`.

NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(path: str, names: Iterable[str]) -> Mapping[str, str | None]:
    """
    The texts of the columns ``names`` in the folders of a file, without those that none has.

    Names are compared letter by letter. Of two folders of a name the one nearer to the file counts.
    """
    columns, values = set(names), {}
    for folder in path.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and unquote(name) in columns:
            values[unquote(name)] = None if value == NULL else unquote(value)
    return values
