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
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.object_store import (
    SCHEMES,
    StoreKind,
    bucket_url,
    is_url,
    kind_of,
    scheme_of,
    split,
)
from infold.core.project import Project
from infold.lake.delta.log import Newest, newest
from infold.lake.delta.metastore import PROVIDER, entry_of
from infold.lake.delta.rows import named_errors, open_table
from infold.lake.hive_client import HiveClient
from infold.lake.reading import listing
from infold.lake.reading.listing import kept_files
from infold.lake.reading.object_listing import refuse_name
from infold.lake.stores import places
from infold.lake.views import RefusedError
from infold.messages import delta_errors, run_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


# A *path* leads to a column or to a field of a struct in one: the names from the column on, with
# `element`, `key` and `value` for what a list or a map has.

ColumnPath = tuple[str, ...]

ELEMENT, KEY, VALUE = "element", "key", "value"

_STORED = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_PARTS = (("elementType", ELEMENT), ("keyType", KEY), ("valueType", VALUE))


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """
    Where values are in files, if the table maps its columns: of every column and field, by paths.

    Either by their names in all files (``names``), or by the field ids of Parquet (``ids``): then
    one may have any name in a file. What else a file has is of a column that was dropped.
    """

    names: Mapping[ColumnPath, str] = field(default_factory=dict)
    ids: Mapping[ColumnPath, int] = field(default_factory=dict)

    def others(self, columns: Collection[str]) -> Sequence[tuple[str | ColumnPath, str | int]]:
        """
        What is not found by what it is called, in some columns, or for none in all.

        A column itself is there by its name alone.
        """
        stored: dict[ColumnPath, str | int] = {**self.names, **self.ids}
        return [
            (path if len(path) > 1 else path[0], at)
            for path, at in sorted(stored.items())
            if path[-1] != at and (path[0] in columns or not columns)
        ]


def mapping_of(mode: str, fields: Iterable[Mapping[str, Any]]) -> ColumnMapping:
    """
    How a table with these columns maps them, in one of the protocol's modes.

    If it does, all have a name and an id: deltalake opens no table with one that lacks them.
    """
    if mode == "name":
        return ColumnMapping(names={path: about[_STORED] for path, about in _every(fields)})
    if mode == "id":
        return ColumnMapping(ids={path: int(about[_ID]) for path, about in _every(fields)})
    return ColumnMapping()


def _every(
    fields: Iterable[Mapping[str, Any]], above: ColumnPath = ()
) -> Iterator[tuple[ColumnPath, Mapping[str, Any]]]:
    """The metadata of columns and of all fields in them."""
    for one in fields:
        path = (*above, one["name"])
        yield path, one.get("metadata") or {}
        yield from _within(one["type"], path)


def _within(
    type_: str | Mapping[str, Any], path: ColumnPath
) -> Iterator[tuple[ColumnPath, Mapping[str, Any]]]:
    if isinstance(type_, str):
        return
    yield from _every(type_.get("fields", ()), path)
    for key, name in _PARTS:
        if key in type_:
            yield from _within(type_[key], (*path, name))


event_times = listing.table_event_times
row_counts = listing.uncounted  # a table that is rewritten moves its rows from file to file


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

    shown = partial(_object_url, source, folder)
    if not places.in_store(folder):
        shown = partial(_file_path, root, Path(folder))
    actions = pa.table(stored.get_add_actions(flatten=True))
    deleted = {shown(uri): positions for uri, positions in _deleted_positions(stored)}
    files: dict[str, ListedFile] = {}
    paths = [shown(path) for path in actions["path"].to_pylist()]
    sizes, times = actions["size_bytes"].to_pylist(), actions["modification_time"].to_pylist()
    mapped = _mapping_mark(source, mapping)
    for path, size, at in zip(paths, sizes, times, strict=True):
        marks = _marks(deleted.get(path))
        files[path] = ListedFile(path, size, 0, f"{size}:{at}{mapped}{marks}")
    if unknown := deleted.keys() - files.keys():  # to read their deleted rows would be worst
        why = f"rows are deleted of a file that it does not have: {min(unknown)}"
        raise delta_errors.unreadable(at=folder, why=why)
    values = {name: actions[f"partition.{name}"] for name in partitioned_by}
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
        selected = batch.column("selection_vector")
        for at, uri in enumerate(batch.column("filepath").to_pylist()):
            positions = pc.indices_nonzero(pc.invert(selected[at].values)).cast(pa.int64())
            if len(positions):
                yield uri, positions


def _marks(deleted: pa.Array | None) -> str:
    """Which rows of a file are deleted, in its fingerprint; two ways to say the same are equal."""
    if deleted is None:
        return ""
    digest = hashlib.sha256(deleted.to_numpy().tobytes()).hexdigest()[:16]
    return f":{len(deleted)}:{digest}"


def _file_path(root: Path, folder: Path, path: str) -> str:
    """A path of the log, or a URI, as listings show it: inside the project relative to that."""
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise _elsewhere(str(folder), path)
    at = folder / unquote(parts.path if parts.scheme else path)
    if not at.is_relative_to(folder) and at.is_relative_to(real := folder.resolve()):
        at = folder / at.relative_to(real)  # deltalake follows a link to the folder
    inside = normpath(root.absolute())
    return str(at.relative_to(inside) if at.is_relative_to(inside) else at)


def _object_url(source: Source, folder: str, path: str) -> str:
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


# `path` names it, or the entry of a Hive metastore that `table` names. Of the metastore nothing but
# that is taken: the columns and the rows of a table are what its log says. Who drops a table and
# makes another one under its name has made other files, wherever these are.

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def newest_version(project: Project, source: Source) -> Newest:
    """
    The newest version of a source's table.

    Raises ``no_source_table`` where none is, ``source_in_hdfs``, and what ``delta_errors`` has of
    entries.
    """
    if source.path is not None:
        url = is_url(source.path)
        folder = _url(source.path) if url else _folder(project, source.path)
    else:
        folder = _folder_of_entry(project, source)
    if is_url(folder) and kind_of(folder) is StoreKind.HDFS:
        raise delta_errors.source_in_hdfs(source=source.name, at=folder)
    if places.in_store(folder):
        places.use(project, folder)
    version = newest(folder)
    if version is None:
        raise _no_table(source, folder)
    return version


def _folder(project: Project, path: str) -> str:
    return normpath(project.root.absolute() / path)


def _url(url: str) -> str:
    """A place by the one of its names that no other has: ``s3a`` is ``s3``."""
    return f"{bucket_url(url)}/{split(url)[1]}".rstrip("/")


def _no_table(source: Source, folder: str) -> InfoldError:
    is_folder = places.is_folder(folder)
    why = "it has no _delta_log" if is_folder else "it does not exist"
    if source.path is not None:
        return delta_errors.no_source_table(source=source.name, folder=folder, why=why)
    return delta_errors.no_table_of_entry(
        source=source.name, table=source.table or "", folder=folder, why=why
    )


def _folder_of_entry(project: Project, source: Source) -> str:
    """Where the entry of a metastore leads to."""
    assert source.catalog is not None, "a name without a metastore is refused"
    client = HiveClient(source.catalog, project.root, f"catalog of source {source.name}")
    table = source.table or ""
    namespace, _, name = table.partition(".")
    try:
        table_entry = next(iter(client.tables(namespace, [name])), None)
    except RefusedError:  # there is no such namespace
        table_entry = None
    if table_entry is None:
        raise run_errors.no_such_table(source=source.name, table=table, catalog=client.place)
    kind, entry = str(table_entry.tableType), entry_of(table_entry)
    if "VIEW" in kind or not entry.is_delta:
        raise delta_errors.other_entry(
            source=source.name, table=table, catalog=client.place, kind=_kind(table_entry)
        )
    return _location(project, source, entry.location)


def _kind(table: Any) -> str:
    """What an entry is of that is of no table of Delta Lake."""
    if "VIEW" in str(table.tableType):
        return "a view"
    parameters = table.parameters or {}
    provider = parameters.get(PROVIDER) or parameters.get("table_type")
    return f"a table of {provider.lower()}" if provider else "a table of Hive"


def _location(project: Project, source: Source, location: str) -> str:
    """The place that an entry has. Raises ``source_elsewhere``."""
    scheme, why = _SCHEME.match(location), ""
    if location.startswith(("/", "file:/")):
        return normpath(places.local_path(location))
    if is_url(location) and scheme_of(location) in SCHEMES:
        url = _url(location)
        if kind_of(url) is StoreKind.HDFS:
            return url  # and refused, as by a path
        if _is_reached(project, url):
            return url
        why = f"target {project.target.name} does not say how {bucket_url(url)} is reached"
    elif scheme is not None:
        why = f"infold does not read {scheme[1]}:"
    raise delta_errors.source_elsewhere(
        source=source.name,
        table=source.table or "",
        at=location,
        why=why or "it is no absolute path, nor a URL",
    )


def _is_reached(project: Project, url: str) -> bool:
    """
    Whether the target says how a bucket is reached: by naming it, or another one of such a store.

    In Azure each account has a server and a key of its own, so there it has to be named.
    """
    kinds = {kind_of(bucket) for bucket in project.buckets} - {StoreKind.AZURE}
    return bucket_url(url) in project.buckets or kind_of(url) in kinds
