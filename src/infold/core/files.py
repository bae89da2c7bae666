"""Files of sources, as listings show them and as models have taken them in: values only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from infold.core.interval import Interval


@dataclass(frozen=True, slots=True)
class ListedFile:
    """
    One input file as a listing (or table metadata) shows it now.

    ``path`` is relative to the project where it lies inside, else absolute; for a table
    it is the data file's path. ``fingerprint`` changes when the content may have: size and
    modification time in nanoseconds, or data file plus delete files.
    """

    path: str
    size: int
    modified_at: int
    fingerprint: str


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


def with_file_policy(listed: ListedFile, known: IngestedFile | None, policy: str) -> ListedFile:
    """
    A file with what its source decides about files as a whole added to its fingerprint.

    A file that was set aside as a whole becomes another file once the source decides otherwise (a
    column was declared, say), and is read again. A file that was ingested stays what it is.
    """
    plain = listed.fingerprint
    if known is not None and listed_fingerprint(known.fingerprint) == plain:
        aside = known.set_aside and not known.rows and not known.waiting
        if not aside:
            return replace(listed, fingerprint=known.fingerprint)
    return replace(listed, fingerprint=f"{plain}|{policy}") if policy else listed


def by_policy(file: IngestedFile) -> bool:
    """Whether its source sets files aside as a whole, by what its fingerprint says."""
    return "|" in file.fingerprint


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
    and replace their entries. ``dropped`` adds to the dropped count of (file id, cell) of other
    files.
    """

    source: str
    ingested: tuple[IngestedFile, ...] = ()
    removed: tuple[int, ...] = ()
    cells: tuple[FileCell, ...] = ()
    dropped: tuple[FileCell, ...] = ()
    recounted: bool = False
    """Whether the rows had arrived before, and are only counted by another definition."""
