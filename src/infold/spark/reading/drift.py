"""
What a file is as a whole, found before any row is read: fit, drifted, or not to be read at all.

Names are compared exactly, as they stand in the file: ``ID`` is not ``id``. What happens to a file
whose columns are not the declared ones, and to one that cannot be read, is declared: it is an error
that lists every one of them, or the file is set aside. A file that was taken in before has been
judged: of it only what can be read matters.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infold.core.model import Drift, NewColumns, Source
from infold.messages import errors, run_errors


@dataclass(frozen=True, slots=True)
class Present:
    """
    One version of a file to read: its id, its path as listed, and where Spark finds it.

    ``known`` if it was taken in before.
    """

    id: int
    path: str
    at: Path
    size: int = 0
    known: bool = False

    @property
    def gzipped(self) -> bool:
        """Whether it is packed, by its name."""
        return self.at.suffix == ".gz"


@dataclass(frozen=True, slots=True)
class Drifted:
    """How a file's columns differ from the declared ones, and whether that is an error."""

    how: str
    error: bool


def differences(
    source: Source, file: Present, found: Collection[str], others: Sequence[str] = ()
) -> Drifted | None:
    """How the names found in a file differ from the declared ones; None if nothing comes of it."""
    if file.known:
        return None
    names = [column.name for column in source.columns]
    missing = [
        f"missing column {column.name}"
        for column in source.columns
        if column.name not in found and not column.optional
    ]
    declared = {*names, *source.unread}
    more = [f"extra column {name}" for name in found if name not in declared]
    if source.new_columns is NewColumns.IGNORE:
        more = []
    if not missing and not more and not others:
        return None
    stops = bool(missing or others) and source.on_drift is Drift.ERROR
    stops |= bool(more) and source.new_columns is NewColumns.ERROR
    return Drifted("; ".join([*missing, *_some(more), *others]), stops)


_NAMED = 20


def _some(extra: Sequence[str]) -> list[str]:
    """What can still be read: a file of something else may well have thousands of columns."""
    rest = len(extra) - _NAMED
    return [*extra[:_NAMED], *([f"{rest} more extra columns"] if rest > 0 else [])]


def settle(source: Source, drifted: Mapping[int, Drifted], files: Sequence[Present]) -> None:
    """Raise ``errors.drift`` for files that drifted, unless they are to be set aside."""
    wrong = [file for file in files if file.id in drifted and drifted[file.id].error]
    if wrong:
        raise run_errors.drift(
            source.name, tuple((file.path, drifted[file.id].how) for file in wrong)
        )


def readable(
    source: Source, files: Sequence[Present], look: Callable[[Source, Present], None]
) -> tuple[list[Present], dict[int, str]]:
    """
    The files that can be read, and why others cannot, where the source sets such files aside.

    ``look`` raises ``errors.unreadable_file``; where that is an error it is raised, and files are
    looked at no further than their first bytes.
    """
    if source.on_unreadable is Drift.ERROR:
        return list(files), {}
    good, bad = [], {}
    for file in files:
        try:
            if not file.known:
                look(source, file)
            good.append(file)
        except errors.InfoldError as error:
            if error.slug != "unreadable-file" or not file.at.exists():
                raise
            bad[file.id] = dict(error.facts)["why"]
    return good, bad


_CHUNK = 1 << 22


def packed_well(_: Source, file: Present) -> None:
    """Read all of a file of lines, and unpack it. Raises ``errors.unreadable_file``."""
    opener = gzip.open if file.gzipped else open
    try:
        with opener(file.at, "rb") as opened:
            while opened.read(_CHUNK):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
