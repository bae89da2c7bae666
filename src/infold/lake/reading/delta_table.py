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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    """

    schema_json: str
    partitioned_by: tuple[str, ...]
    listed: tuple[ListedFile, ...]
    deleted: Mapping[str, pa.Array]
    partitions: pa.Table
    mapping: ColumnMapping


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """
    Where the values of columns are in files, if the table maps them: of every column.

    Either by their names in all files (``names``), or by the field ids of Parquet (``ids``): then a
    column may have any name in a file. What else a file has is of a column that was dropped.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, int] = field(default_factory=dict)

    def others(self, asked: Collection[str]) -> list[tuple[str, str | int]]:
        """The columns, of some or for none of all, that are not found by what they are called."""
        found: dict[str, str | int] = {**self.names, **self.ids}
        return sorted(
            (name, at) for name, at in found.items() if name != at and (name in asked or not asked)
        )


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
_ID = "delta.columnMapping.id"
_PARTS = ("elementType", "keyType", "valueType")


def _open(root: Path, source: Source, log: Log) -> SourceTable:
    folder = Path(log.folder)
    with _errors_of_source(source, folder):
        stored = open_table(log.folder, log.newest)
        with named_errors(log.folder):
            about = stored.metadata()
            mode = (about.configuration.get(_MAPPING) or "none").lower()
            fields = json.loads(stored.schema().to_json())["fields"]
            mapping = _mapping(source, folder, mode, fields)
            return _version(root, source, stored, tuple(about.partition_columns), mapping)


def _mapping(
    source: Source, folder: Path, mode: str, fields: Sequence[Mapping[str, Any]]
) -> ColumnMapping:
    """
    How a table maps its columns.

    Raises ``source_feature`` for a mode that the protocol does not have, and where parts of a
    column that is asked for are mapped too.
    """
    if mode == "none":
        return ColumnMapping()
    asked = {column.name for column in source.columns}
    mapped = (
        f"column mapping within {one['name']}"
        for one in fields
        if one["name"] in asked or not asked
        if _maps_parts(one["type"], by_id=mode == "id")
    )
    what = next(mapped, "") if mode in ("name", "id") else f"column mapping ({mode})"
    if what:
        raise delta_errors.source_feature(source=source.name, folder=str(folder), feature=what)
    if mode == "id":
        return ColumnMapping(ids={one["name"]: one["metadata"][_ID] for one in fields})
    return ColumnMapping(names={one["name"]: one["metadata"][_STORED] for one in fields})


def _maps_parts(type_: str | Mapping[str, Any], *, by_id: bool) -> bool:
    """Whether a field within a type has another name in files; by ids any may have one."""
    if isinstance(type_, str):
        return False
    if type_["type"] == "struct":
        return by_id or any(
            one["metadata"].get(_STORED, one["name"]) != one["name"]
            or _maps_parts(one["type"], by_id=by_id)
            for one in type_["fields"]
        )
    return any(_maps_parts(type_[part], by_id=by_id) for part in _PARTS if part in type_)


def _version(
    root: Path,
    source: Source,
    stored: DeltaTable,
    partitioned_by: tuple[str, ...],
    mapping: ColumnMapping,
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
    mapped = _mapping_mark(source, mapping)
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
        mapping=mapping,
    )


def _mapping_mark(source: Source, mapping: ColumnMapping) -> str:
    """
    Where columns are in files, in each fingerprint: by another name or id, other values are theirs.

    Empty where all are called the same, as before a table began to map them.
    """
    other = mapping.others({column.name for column in source.columns})
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
