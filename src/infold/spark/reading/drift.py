"""
What a file is as a whole, found before any row is read: as declared, drifted, or unreadable.

Names are compared exactly, as they are in the file: ``ID`` is not ``id``, and a file with the one
where the other is declared drifts. The source declares what happens to a file with other columns,
and to one that cannot be read: it is an error that lists all of them, or the file is set aside. A
file whose rows were taken in is not judged again; one that was set aside is, so that it stays so
whenever it is read once more.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from infold.core.files import ListedFile, listed_fingerprint
from infold.core.formats import packing_of
from infold.core.model import Column, Drift, NewColumns, Source
from infold.core.object_store import is_url
from infold.core.project import Project
from infold.lake.reading.source_file import SourceFile, looks_like
from infold.messages import errors, run_errors

_UNPACKED_RATIO = 10
"""How much longer a packed file is than it looks, about."""


@dataclass(frozen=True, slots=True)
class PresentFile:
    """
    One version of a file to read.

    ``path`` is as listed; ``file`` is where Spark finds the file too, and ``spark_path`` what it
    then calls it in ``_path``. ``known`` if rows of it were taken in before. ``texts`` says whether
    ``_raw`` is wanted of its rows: where it is not, a reader may do without.
    """

    id: int
    path: str
    file: SourceFile
    size: int = 0
    known: bool = False
    spark_path: str = ""
    fingerprint: str = ""
    texts: bool = True

    @property
    def packed(self) -> bool:
        """Whether it is, by its name."""
        return packing_of(self.file.location) is not None

    @property
    def unpacked_size(self) -> int:
        """About how many bytes it has, unpacked."""
        return self.size * (_UNPACKED_RATIO if self.packed else 1)

    def open(self) -> BinaryIO:
        """Its bytes, unpacked."""
        return self.file.unpacked()


@dataclass(frozen=True, slots=True)
class Drifted:
    """How a file's columns differ from the declared ones, and whether that is an error."""

    how: str
    error: bool


@dataclass(frozen=True, slots=True)
class FileShape:
    """What decides how a file is read: files of equal shape are read together."""

    drift: Drifted | None = field(default=None, kw_only=True)
    rows: int | None = field(default=None, kw_only=True, compare=False)
    """How many rows the file has, where that is known without reading them."""
    read: bool = field(default=False, kw_only=True)
    """Whether the frame of its rows is of rows that were read: a plan that names no file."""


def declared_columns(_spark: SparkSession, _project: Project, source: Source) -> Sequence[Column]:
    """As ``FormatReader.columns``, of files: they are checked against what is declared."""
    return source.columns


def differences(
    source: Source, file: PresentFile, names_in_file: Collection[str], others: Sequence[str] = ()
) -> Drifted | None:
    """
    How a file drifts: by the names of its columns, and in ``others``. None if it does not.

    A column that is declared in letters of another case is named whatever is done with new columns:
    its values would be NULL without a word.
    """
    if file.known:
        return None
    declared_names = [column.name for column in source.columns]
    declared = {*declared_names, *source.unread_columns}
    absent = {name.lower(): name for name in declared_names if name not in names_in_file}
    new = [name for name in names_in_file if name not in declared]
    respelled = {absent[name.lower()]: name for name in new if name.lower() in absent}
    missing = [
        f"column {respelled[column.name]} in place of {column.name}"
        if column.name in respelled
        else f"missing column {column.name}"
        for column in source.columns
        if column.name in respelled or (column.name not in names_in_file and not column.optional)
    ]
    more = [f"extra column {name}" for name in new if name not in respelled.values()]
    if source.new_columns is NewColumns.IGNORE:
        more = []
    if not missing and not more and not others:
        return None
    stops = bool(missing or others) and source.on_drift is not Drift.SET_ASIDE
    stops |= bool(more) and source.new_columns is NewColumns.ERROR
    return Drifted("; ".join([*missing, *_first_named(more), *others]), stops)


_MOST_NAMED = 20


def _first_named(extra: Sequence[str]) -> list[str]:
    """Few enough to read: a file of something else may well have thousands of columns."""
    rest = len(extra) - _MOST_NAMED
    return [*extra[:_MOST_NAMED], *([f"{rest} more extra columns"] if rest > 0 else [])]


def refuse_drifted(
    source: Source, shapes: Mapping[int, FileShape], files: Sequence[PresentFile]
) -> None:
    """Raise ``errors.drift`` for files that drifted, unless they are to be set aside."""
    drifted = [(file.path, shapes[file.id].drift) for file in files if file.id in shapes]
    wrong = tuple((path, drift.how) for path, drift in drifted if drift and drift.error)
    if wrong:
        raise run_errors.drift(source.name, wrong)


def refuse_moved(
    source: Source, files: Sequence[PresentFile], listed: Iterable[ListedFile]
) -> None:
    """Raise ``errors.source_changed`` where a table no longer has a file as it was listed."""
    fingerprints = {file.path: file.fingerprint for file in listed}
    for file in files:
        if fingerprints.get(file.path) != listed_fingerprint(file.fingerprint):
            raise run_errors.source_changed(source=source.name, path=file.path)


def refuse_unseen(source: Source, rows: DataFrame, files: Sequence[PresentFile]) -> None:
    """
    Raise ``errors.source_changed`` where Spark reads fewer objects of a store than it is to.

    One that the store does not show it for a moment it leaves out, and says nothing: its rows would
    be taken for none.
    """
    expected = {file.spark_path: file for file in files if is_url(file.path)}
    if expected and len(seen_paths := set(rows.inputFiles())) < len(expected):
        unseen = [file for path, file in expected.items() if path not in seen_paths]
        raise run_errors.source_changed(source=source.name, path=unseen[0].path)


def readable_files(
    source: Source, files: Sequence[PresentFile], check: Callable[[Source, PresentFile], None]
) -> tuple[list[PresentFile], dict[int, str]]:
    """
    The files that can be read, and why others cannot, where the source sets such files aside.

    Where an unreadable file is an error, files are not checked here: reading them raises it.
    """
    if source.on_unreadable is Drift.ERROR:
        return list(files), {}
    good, bad = [], {}
    for file in files:
        try:
            if not file.known:
                check(source, file)
            good.append(file)
        except errors.InfoldError as error:
            if error.slug != "unreadable-file" or not file.file.exists():
                raise
            bad[file.id] = dict(error.facts)["why"]
    return good, bad


_CHUNK = 1 << 22

DAMAGED = (OSError, EOFError, zlib.error, pa.ArrowException)
"""What reading raises where a file is damaged, or is packed in another way than its name says."""


def unreadable(file: PresentFile, error: Exception, expected: str) -> errors.InfoldError:
    """The error of a file that cannot be read as what it should be, with what it seems to be."""
    why = next(iter(str(error).splitlines()), type(error).__name__)
    is_ = looks_like(file.file)
    if is_ not in (None, expected):
        why = f"it begins as {is_} does, and not as {expected} ({why})"
    return run_errors.unreadable_file(path=file.path, why=why)


def check_bzip2(source: Source, file: PresentFile) -> None:
    """
    As :func:`check_unpacks`, of a file that is packed by bzip2, wherever it was not checked before.

    Spark looks for the next block that it knows: of a file that is none it reads no rows, and says
    nothing.
    """
    judged = file.known or source.on_unreadable is Drift.SET_ASIDE
    if not judged and packing_of(file.file.location) == "bz2":
        check_unpacks(source, file)


def check_unpacks(_: Source, file: PresentFile) -> None:
    """Read all bytes of a file, unpacked. Raises ``errors.unreadable_file``."""
    try:
        with file.open() as opened:
            while opened.read(_CHUNK):
                pass
    except DAMAGED as error:
        raise run_errors.unreadable_file(path=file.path, why=str(error)) from error
