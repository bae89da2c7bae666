"""
A Delta table as a source, without a JVM: its data files, as :class:`ListedFile`.

A version of the table is its files and, for each, which rows are deleted. Nothing of its history is
asked: what changed is the difference to the files that were taken in. So it does not matter
how many versions lie in between, or whether they were vacuumed, and a commit that only rewrites
files gives the rows that there were. deltalake reads the log and the deletion vectors.

A file in a folder is listed by its path, one in a store by its URL. Delta never writes to a file
twice, so an object needs no ETag: its rows follow from its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.object_store import SCHEMES, bucket_url, scheme_of, split
from infold.core.project import Project
from infold.lake.delta.log import Newest
from infold.lake.delta.rows import named_errors, open_table
from infold.lake.reading import rows_of_tables
from infold.lake.reading.delta_mapping import ColumnMapping, mapping_of
from infold.lake.reading.delta_place import newest_version
from infold.lake.reading.kept_listing import kept_files
from infold.lake.reading.object_listing import refuse_name
from infold.lake.stores import places
from infold.messages import delta_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


event_times = rows_of_tables.table_event_times
row_counts = rows_of_tables.table_row_counts


def list_files(
    project: Project, source: Source, _now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """See ``FormatFiles``; a table's files are complete, so none is too young."""
    return table_files(project, source), ()


def table_files(project: Project, source: Source) -> tuple[ListedFile, ...]:
    """The files of a Delta source now, by path."""
    version = newest_version(project, source)
    find = partial(_open, project.root, source, version)
    return kept_files(project.root, source, version.mark, lambda: find().listed)


def table_now(project: Project, source: Source) -> SourceTable:
    """The newest version of a Delta source."""
    return _open(project.root, source, newest_version(project, source))


@dataclass(frozen=True, slots=True)
class SourceTable:
    """
    One version of a Delta table.

    ``deleted`` has the positions of the deleted rows of a file, by its path as listed, and
    ``partitions`` a row of partition values for each path, in columns of their own types.
    """

    folder: str
    schema_json: str
    partitioned_by: tuple[str, ...]
    listed: tuple[ListedFile, ...]
    deleted: Mapping[str, pa.Array]
    partitions: pa.Table
    mapping: ColumnMapping


_MAPPING = "delta.columnMapping.mode"


def _open(root: Path, source: Source, version: Newest) -> SourceTable:
    folder = version.folder
    with _errors_of_source(source, folder):
        stored = open_table(folder, version.version)
        with named_errors(folder):
            about = stored.metadata()
            mode = (about.configuration.get(_MAPPING) or "none").lower()
            fields = json.loads(stored.schema().to_json())["fields"]
            if mode not in ("none", "name", "id"):
                raise delta_errors.source_feature(
                    source=source.name, folder=folder, feature=f"column mapping ({mode})"
                )
            mapping = mapping_of(mode, fields)
            return _version(root, source, stored, folder, tuple(about.partition_columns), mapping)


def _version(
    root: Path,
    source: Source,
    stored: DeltaTable,
    folder: str,
    partitioned_by: tuple[str, ...],
    mapping: ColumnMapping,
) -> SourceTable:
    import pyarrow as pa

    shown = partial(_of_object, source, folder)
    if not places.in_store(folder):
        shown = partial(_of_file, root, Path(folder))
    found = pa.table(stored.get_add_actions(flatten=True))
    deleted = {shown(uri): positions for uri, positions in _deleted_positions(stored)}
    files: dict[str, ListedFile] = {}
    paths = [shown(path) for path in found["path"].to_pylist()]
    sizes, times = found["size_bytes"].to_pylist(), found["modification_time"].to_pylist()
    mapped = _mapping_mark(source, mapping)
    for path, size, at in zip(paths, sizes, times, strict=True):
        marks = _marks(deleted.get(path))
        files[path] = ListedFile(path, size, 0, f"{size}:{at}{mapped}{marks}")
    if unknown := deleted.keys() - files.keys():  # to read their deleted rows would be worst
        why = f"rows are deleted of a file that it does not have: {min(unknown)}"
        raise delta_errors.unreadable(at=folder, why=why)
    values = {name: found[f"partition.{name}"] for name in partitioned_by}
    return SourceTable(
        folder=folder,
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


def _of_file(root: Path, folder: Path, path: str) -> str:
    """A path of the log, or a URI, as listings show it: inside the project relative to that."""
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise _elsewhere(str(folder), path)
    at = folder / unquote(parts.path if parts.scheme else path)
    if not at.is_relative_to(folder) and at.is_relative_to(real := folder.resolve()):
        at = folder / at.relative_to(real)  # deltalake follows a link to the folder
    inside = normpath(root.absolute())
    return str(at.relative_to(inside) if at.is_relative_to(inside) else at)


def _of_object(source: Source, folder: str, path: str) -> str:
    """The same of a table in a store: the URL of an object. Raises where Spark cannot read it."""
    if not urlsplit(path).scheme:
        at = places.below(folder, unquote(path))
    elif scheme_of(path) in SCHEMES:
        at = f"{bucket_url(path)}/{unquote(split(path)[1])}"
    else:
        raise _elsewhere(folder, path)
    if not places.is_inside(at, folder):
        raise _elsewhere(folder, path)
    refuse_name(source, at)
    return at


def _elsewhere(folder: str, path: str) -> InfoldError:
    return delta_errors.unreadable(at=folder, why=f"it has files elsewhere: {path}")


@contextmanager
def _errors_of_source(source: Source, folder: str) -> Iterator[None]:
    """An error about a table of Delta Lake is about one that others write."""
    try:
        yield
    except InfoldError as error:
        if error.slug != delta_errors.UNREADABLE:
            raise
        why = dict(error.facts)["why"]
        raise delta_errors.source_unreadable(source=source.name, folder=folder, why=why) from error
