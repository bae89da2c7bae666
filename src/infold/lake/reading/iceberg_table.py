"""
An Iceberg table as a source, without a JVM: its data files, as :class:`ListedFile`.

pyiceberg reads the manifests, which takes most of a second. A metadata file never changes, so the
list of its data files is kept (``kept_listing``). Listing a table that has not changed then costs
one row of its catalog.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.files import ListedFile
from infold.core.model import Source
from infold.core.project import Project
from infold.core.storages import SQLITE_FILE, Catalog, CatalogType
from infold.lake.iceberg.metadata_file import open_table
from infold.lake.iceberg.open_catalog import open_catalog, open_server
from infold.lake.iceberg.sql_catalog import SqlCatalog, SqliteDatabase, sqlite_catalog, tables_named
from infold.lake.iceberg.table_catalog import TableCatalog
from infold.lake.reading import listing
from infold.lake.reading.listing import kept_files
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask


event_times = listing.table_event_times
row_counts = listing.uncounted  # a table that is rewritten moves its rows from file to file


def list_files(
    project: Project, source: Source, _now: int
) -> tuple[tuple[ListedFile, ...], tuple[str, ...]]:
    """See ``FormatFiles``; a table's files are complete, so none is too young."""
    return table_files(project.root, source, open_catalog(project)), ()


def table_files(root: Path, source: Source, own: TableCatalog) -> tuple[ListedFile, ...]:
    """The files of an Iceberg source now, by path; ``own`` is the target's catalog."""
    at = location(root, source, own)
    names = [column.name for column in source.columns]
    return kept_files(root, source, at, lambda: data_files(at, names))


def location(root: Path, source: Source, own: TableCatalog) -> str:
    """Where the metadata of an Iceberg source is now; ``own`` is the target's."""
    namespace, _, name = (source.table or "").rpartition(".")
    key = (namespace, name)
    catalog = own if source.catalog is None else _opened(root, source, source.catalog)
    if source.catalog is None or not isinstance(catalog, SqlCatalog):
        places: Mapping[Any, str] = catalog.find([key])
    else:  # whatever name its owner gives it: that is a part of the key of each row
        places = tables_named(catalog.database, key)
    known = {*places.values()}
    if len(known) == 1:
        return known.pop()
    if known:
        raise run_errors.table_of_two_catalogs(
            source=source.name,
            table=source.table or "",
            catalog=catalog.place,
            names=", ".join(map(str, places)),
        )
    error = run_errors.no_such_table(
        source=source.name, table=source.table or "", catalog=catalog.place
    )
    database = getattr(own, "database", None) if source.catalog is None else None
    if isinstance(database, SqliteDatabase) and (catalogs := tables_named(database, key)):
        # The target's catalog is one of those that its file has the tables of.
        error = error.with_facts(("beside it", _BESIDE.format(", ".join(catalogs))))
    raise error


def _opened(root: Path, source: Source, declared: Catalog) -> TableCatalog:
    """The catalog that a source names."""
    if declared.type is CatalogType.SQLITE:
        return sqlite_catalog(root / declared.uri.removeprefix(SQLITE_FILE))
    return open_server(declared, root, f"catalog of source {source.name}")


_BESIDE = "the file has one of another catalog ({}): `catalog` with the file would find it"


def data_files(location: str, names: Collection[str] = ()) -> tuple[ListedFile, ...]:
    """
    The files of the current snapshot of the table whose metadata is at ``location``, by path.

    Iceberg never writes to a file twice. So the rows of a file follow from its path, the positions
    deleted from it, and the ids of the columns ``names`` (empty: all). ``modified_at`` is 0: when a
    file was written does not matter here. Equality deletes raise ``errors.equality_deletes``.
    """
    table = open_table(location)
    try:
        tasks = list(table.scan().plan_files())
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        raise run_errors.equality_deletes(location=location) from error
    deleted = _deleted_positions(table.io, tasks)
    columns = _columns_digest(table.schema(), names, table.properties.get(_NAMES_IN_FILES, ""))
    files = {
        task.file.file_path: ListedFile(
            path=task.file.file_path,
            size=task.file.file_size_in_bytes,
            modified_at=0,
            fingerprint=_fingerprint(
                task.file.file_size_in_bytes, columns, deleted.get(task.file.file_path, ())
            ),
        )
        for task in tasks
    }
    return tuple(files[path] for path in sorted(files))


def _deleted_positions(io: FileIO, tasks: Iterable[FileScanTask]) -> dict[str, set[int]]:
    """
    The positions deleted from each data file.

    Delete files have to be read for that: pyiceberg attaches one to every older data file of the
    partition, and each deletion would seem to change all of them.
    """
    # The one reader for position deletes and deletion vectors alike; it has no public name.
    from pyiceberg.io.pyarrow import _read_deletes

    positions_by_file: defaultdict[str, set[int]] = defaultdict(set)
    for entry in {file.file_path: file for task in tasks for file in task.delete_files}.values():
        positions: dict[str, pa.ChunkedArray] = _read_deletes(io, entry)
        for path, deleted_rows in positions.items():
            positions_by_file[path].update(deleted_rows.to_pylist())
    return positions_by_file


_NAMES_IN_FILES = "schema.name-mapping.default"
"""The property that says which column a name in a file without ids is."""


def _columns_digest(schema: Schema, names: Collection[str], in_files: str) -> str:
    """
    A digest of the ids of the columns ``names`` (empty: all) and their parts.

    Iceberg finds a column's values by its id. A name that moved to another id, as by two renames,
    gives other values out of the same file. Types may only be promoted, which keeps them.
    """
    fields = [
        field.model_dump(mode="json")
        for field in schema.name_mapping.root
        if not names or set(names).intersection(field.names)
    ]
    fields.sort(key=lambda field: str(field["names"]))
    text = json.dumps(fields, sort_keys=True)
    if in_files:
        text += _mapped(in_files, {field["field-id"] for field in fields})
    return _digest(text)


def _mapped(in_files: str, ids: Collection[int]) -> str:
    """
    What names in files are columns with these ids.

    Those of others are left out: a column that a table gains gets names too, and is not asked for.
    """
    try:
        mapped = [entry for entry in json.loads(in_files) if entry.get("field-id") in ids]
    except (ValueError, TypeError, AttributeError):
        return in_files  # not as Iceberg has it: whoever reads the rows says so
    return json.dumps(sorted(mapped, key=lambda entry: int(entry["field-id"])), sort_keys=True)


def _fingerprint(size: int, columns: str, deleted: Iterable[int]) -> str:
    """Size, what the columns are, and which rows are deleted."""
    marks = sorted(deleted)
    if not marks:
        return f"{size}:{columns}"
    return f"{size}:{columns}:{len(marks)}:{_digest(','.join(map(str, marks)))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
