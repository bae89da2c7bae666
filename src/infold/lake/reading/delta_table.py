"""
A Delta table as a source, without a JVM: its data files, as :class:`ListedFile`.

A version of the table is its files and, for each, which rows are deleted. Nothing of its history is
asked: what changed is the difference to the files that were taken in. So it does not matter
how many versions lie in between, or whether they were vacuumed, and a commit that only rewrites
files gives the rows that there were. deltalake reads the log and the deletion vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.delta.log import Log, read_log
from infold.lake.delta.rows import named_errors, open_table
from infold.lake.reading import rows_of_tables
from infold.lake.reading.kept_listing import kept_files
from infold.messages import delta_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


event_times = rows_of_tables.event_times
row_counts = rows_of_tables.row_counts


def list_files(
    project: Project, source: Source, _now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """See ``FormatFiles``; a table's files are complete, so none is too young."""
    return table_files(project.root, source), ()


def table_files(root: Path, source: Source) -> tuple[ListedFile, ...]:
    """The files of a Delta source now, by path."""
    log = _log(root, source)
    file = Path(log.file(log.newest))
    commit = file.stat()  # a table made anew in the same folder counts its versions from 0 again
    version = f"{file}:{commit.st_size}:{commit.st_mtime_ns}"
    return kept_files(root, source, version, lambda: _open(root, source, log).listed)


def table_now(root: Path, source: Source) -> SourceTable:
    """The newest version of a Delta source."""
    return _open(root, source, _log(root, source))


@dataclass(frozen=True, slots=True)
class SourceTable:
    """
    One version of a Delta table.

    ``deleted`` has the positions of the deleted rows of a file, by its path as listed, and
    ``partitions`` a row of partition values for each path, in columns of their own types.
    ``stored_names`` are the names that columns have in files, where the table maps them: of every
    column. What else is in a file there is of a column that was dropped.
    """

    schema_json: str
    partitioned_by: tuple[str, ...]
    listed: tuple[ListedFile, ...]
    deleted: Mapping[str, pa.Array]
    partitions: pa.Table
    stored_names: Mapping[str, str]


def _log(root: Path, source: Source) -> Log:
    """The log of a source's table as it is now."""
    folder = _folder(root, source)
    log = read_log(str(folder))
    if log is None:
        why = "it has no _delta_log" if folder.is_dir() else "it does not exist"
        raise delta_errors.no_source_table(source=source.name, folder=str(folder), why=why)
    return log


def _folder(root: Path, source: Source) -> Path:
    return Path(normpath(root.absolute() / (source.path or "")))


_MAPPING = "delta.columnMapping.mode"
_STORED = "delta.columnMapping.physicalName"
_PARTS = ("elementType", "keyType", "valueType")


def _open(root: Path, source: Source, log: Log) -> SourceTable:
    folder = Path(log.folder)
    with _errors_of_source(source, folder):
        stored = open_table(log.folder, log.newest)
        with named_errors(log.folder):
            about = stored.metadata()
            mode = (about.configuration.get(_MAPPING) or "none").lower()
            fields = json.loads(stored.schema().to_json())["fields"]
            names = {} if mode == "none" else _stored_names(source, folder, mode, fields)
            return _version(root, source, stored, tuple(about.partition_columns), names)


def _stored_names(
    source: Source, folder: Path, mode: str, fields: Sequence[Mapping[str, Any]]
) -> Mapping[str, str]:
    """
    The names in files of the columns of a table that maps them by name.

    Raises ``source_feature`` where values are not found by that alone: columns known by ids, and
    parts of a column that is asked for.
    """
    asked = {column.name for column in source.columns}
    parts = next(
        (f for f in fields if f["name"] in asked or not asked if _maps_parts(f["type"])), None
    )
    what = "" if parts is None else f"column mapping within {parts['name']}"
    if mode != "name":
        what = f"column mapping ({mode})"
    if what:
        raise delta_errors.source_feature(source=source.name, folder=str(folder), feature=what)
    return {one["name"]: one["metadata"][_STORED] for one in fields}


def _maps_parts(type_: str | Mapping[str, Any]) -> bool:
    """Whether a field within a type has another name in files."""
    if isinstance(type_, str):
        return False
    if type_["type"] == "struct":
        return any(
            one["metadata"].get(_STORED, one["name"]) != one["name"] or _maps_parts(one["type"])
            for one in type_["fields"]
        )
    return any(_maps_parts(type_[part]) for part in _PARTS if part in type_)


def _version(
    root: Path,
    source: Source,
    stored: DeltaTable,
    partitioned_by: tuple[str, ...],
    names: Mapping[str, str],
) -> SourceTable:
    import pyarrow as pa

    folder = _folder(root, source)
    found = pa.table(stored.get_add_actions(flatten=True))
    deleted = {
        _shown(root, folder, uri): positions for uri, positions in _deleted_positions(stored)
    }
    files: dict[str, ListedFile] = {}
    paths = [_shown(root, folder, path) for path in found["path"].to_pylist()]
    sizes, times = found["size_bytes"].to_pylist(), found["modification_time"].to_pylist()
    mapped = _names_mark(source, names)
    for path, size, at in zip(paths, sizes, times, strict=True):
        marks = _marks(deleted.get(path))
        files[path] = ListedFile(path, size, 0, f"{size}:{at}{mapped}{marks}")
    if unknown := deleted.keys() - files.keys():  # to read their deleted rows would be worst
        why = f"rows are deleted of a file that it does not have: {min(unknown)}"
        raise delta_errors.unreadable(at=str(folder), why=why)
    values = {name: found[f"partition.{name}"] for name in partitioned_by}
    return SourceTable(
        schema_json=stored.schema().to_json(),
        partitioned_by=partitioned_by,
        listed=tuple(files[path] for path in sorted(files)),
        deleted=deleted,
        partitions=pa.table({"_path": pa.array(paths, pa.string()), **values}),
        stored_names=names,
    )


def _names_mark(source: Source, names: Mapping[str, str]) -> str:
    """
    What columns are called in files, in each fingerprint: by another name, other values are theirs.

    Empty where all are called the same, as before a table began to map them.
    """
    asked = {column.name for column in source.columns} or names.keys()
    other = sorted((name, at) for name, at in names.items() if name in asked and name != at)
    return f":{hashlib.sha256(repr(other).encode()).hexdigest()[:16]}" if other else ""


def _deleted_positions(stored: DeltaTable) -> Iterator[tuple[str, pa.Array]]:
    """The positions of the deleted rows of each file that has any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for entry in stored.deletion_vectors():
        batch = pa.record_batch(entry)
        kept = batch.column("selection_vector")
        for at, uri in enumerate(batch.column("filepath").to_pylist()):
            positions = pc.indices_nonzero(pc.invert(kept[at].values)).cast(pa.int64())
            if len(positions):
                yield uri, positions


def _marks(deleted: pa.Array | None) -> str:
    """Which rows of a file are deleted, in its fingerprint; two ways to say the same are equal."""
    if deleted is None:
        return ""
    digest = hashlib.sha256(deleted.to_numpy().tobytes()).hexdigest()[:16]
    return f":{len(deleted)}:{digest}"


def _shown(root: Path, folder: Path, path: str) -> str:
    """A path of the log, or a URI, as listings show it: inside the project relative to that."""
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise delta_errors.unreadable(at=str(folder), why=f"it has files elsewhere: {path}")
    at = folder / unquote(parts.path if parts.scheme else path)
    if not at.is_relative_to(folder) and at.is_relative_to(real := folder.resolve()):
        at = folder / at.relative_to(real)  # deltalake follows a link to the folder
    inside = normpath(root.absolute())
    return str(at.relative_to(inside) if at.is_relative_to(inside) else at)


@contextmanager
def _errors_of_source(source: Source, folder: Path) -> Iterator[None]:
    """An error about a table of Delta Lake is about one that others write."""
    try:
        yield
    except InfoldError as error:
        if error.slug != delta_errors.UNREADABLE:
            raise
        why = dict(error.facts)["why"]
        raise delta_errors.source_unreadable(
            source=source.name, folder=str(folder), why=why
        ) from error
