"""
Iceberg tables behind ``ports.Lake``: catalog row, metadata file, and rows through pyiceberg.

Only :meth:`IcebergLake.rows`, ``times`` and ``values`` import pyiceberg. They open a table by its
metadata file, so they need neither a catalog nor its name, and read one snapshot even while a run
commits. So does ``IcebergSnapshotReader``, which finds a few rows of any kept snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from infold.core import write_points
from infold.core.interval import Granularity, Ranges, instants_of
from infold.core.model import UNPUBLISHED
from infold.core.own_columns import first_state_part
from infold.core.storages import NOT_PERMITTED
from infold.core.swap import Renaming
from infold.core.type_changes import Type
from infold.lake.iceberg import publishing
from infold.lake.iceberg.metadata_file import (
    column_names,
    open_table,
    partition_cell,
    read_metadata,
    scan_where,
    user_columns,
)
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.stores import places
from infold.messages import catalog_errors, command_errors, run_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import StaticTable

    from infold.core.ports import History, StoredLayout, TableMetadata, TimeSpan
    from infold.lake.iceberg.reader_views import ReaderViews
    from infold.lake.iceberg.table_catalog import Key, TableCatalog


class NamedByCatalog:
    """A part of ``ports.Lake``: others find a table by its name from the moment it is made."""

    def check_names(self, tables: Collection[str]) -> Collection[str]:
        """None: a name in the catalog is the table itself."""
        del tables
        return ()

    def misnamed(self) -> Sequence[str]:
        """None, for the same reason."""
        return ()

    def register(self) -> Sequence[str]:
        """Nothing is to be done."""
        return ()


class IcebergLake(NamedByCatalog):
    """
    The tables of ``namespace`` in a catalog.

    A name with a dot is ``namespace.table`` and may be outside (an Iceberg source). A table that is
    held back (see ``publishing``) is seen as infold wrote it, or as ``published``. A new table is
    held back if the target publishes ``together``. ``alone``: see ``folders``.
    """

    def __init__(
        self,
        catalog: TableCatalog,
        namespace: str,
        warehouse: Path | str | None = None,
        *,
        alone: bool = False,
        together: bool = False,
        published: bool = False,
    ) -> None:
        self.catalog = catalog
        self.namespace = namespace
        place = None if warehouse is None else str(warehouse)
        self.folders = Folders(catalog, namespace, place, alone=alone)
        self.together = together
        self.published = published

    def stored_name(self, table: str) -> str:
        """The name in the catalog that infold reads and writes a table by."""
        if self.published or not self.catalog.at_once:
            return table
        own, held_back = self._key(table), self._key(publishing.unpublished(table))
        locations = self.catalog.find((own, held_back))
        new = self.together and own not in locations
        return publishing.unpublished(table) if new or held_back in locations else table

    def hold_back(self, tables: Iterable[str]) -> None:
        """See ``ports.Lake``; by names beside those that readers use."""
        catalog = self._database()
        publishing.hold_back(catalog, self.namespace, tables)
        publishing.refuse_other_commits(catalog, self.namespace)

    def publish(self, *, hold_back: bool, tables: Collection[str] | None = None) -> Sequence[str]:
        """See ``ports.Lake``: one transaction of the catalog."""
        if not (self.catalog.at_once or hold_back):
            return ()  # there nothing can be held back
        return publishing.publish(self._database(), self.namespace, keep=hold_back, only=tables)

    def refresh_views(self, tables: Collection[str], *, only_new: bool = False) -> Sequence[str]:
        """See ``ports.Lake``: views are in a namespace of their own."""
        return self._views().refresh(tables, only_new=only_new)

    def check_views(self, tables: Collection[str] | None) -> None:
        """See ``ports.Lake``; a name that somebody else has is told when the view is made."""
        self._views().check(wanted=tables is not None)

    def _views(self) -> ReaderViews:
        from infold.lake.iceberg.reader_views import ReaderViews

        place = self.folders.warehouse or ""
        return ReaderViews(self.catalog, self.namespace, place, self.folders.alone)

    def _database(self) -> SqlCatalog:
        """The catalog in a database. Raises ``not_together`` where it is none."""
        if not isinstance(self.catalog, SqlCatalog):
            raise catalog_errors.not_together(catalog=self.catalog.place)
        return self.catalog

    def moved_tables(self, known: Mapping[str, str]) -> Mapping[str, str | None]:
        """Tables whose metadata location is not the known one -> where it is now."""
        if not known:
            return {}
        try:
            locations = self._find(known)
        except InfoldError as error:
            if error.slug != NOT_PERMITTED or len(known) < 2:
                raise
            locations = self._one_by_one(known, error)
        present = {table: locations.get(self._key(table)) for table in known}
        return {table: location for table, location in present.items() if location != known[table]}

    def _one_by_one(self, tables: Iterable[str], error: InfoldError) -> Mapping[Key, str]:
        """Where tables are, some of which may not be looked at. Raises where none may be."""
        from infold.core.ports import FORBIDDEN

        locations: dict[Key, str] = {}
        any_permitted = False
        for table in tables:
            try:
                location = self.location(table)
            except InfoldError as refusal:
                if refusal.slug != error.slug:
                    raise
                location = FORBIDDEN
            any_permitted = any_permitted or location != FORBIDDEN
            if location is not None:
                locations[self._key(table)] = location
        if not any_permitted:
            raise error
        return locations

    def drop(self, table: str) -> bool:
        """
        Take a table out of the catalog and delete its files; whether there was one.

        The catalog's row goes first: a death after it leaves files that no table names. The next
        call deletes them where no other catalog's can be (``folders``); else they stay, unless
        somebody knows where they are and deletes that folder. None is deleted with the metadata of
        another table: one that was renamed still lies where it was made.
        """
        namespace, name = self._key(table)
        location = self.location(table)
        if location is None:
            self.folders.delete_left(namespace, name)
            return False
        write_points.point(f"drop {name}: before")
        self.catalog.drop(namespace, (name, publishing.unpublished(name)))
        write_points.point(f"drop {name}: after")
        self.folders.delete_of(location)
        return True

    def delete_folder(self, location: str) -> None:
        """See ``ports.Lake``; a folder that another table uses stays."""
        self.folders.delete_of(location)

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """
        See ``ports.Lake``.

        Tables that are held back get other names for infold first. Readers see that with the
        publication after it, unless a run has left something unpublished: then with the next one.
        """
        if self.together:
            self.hold_back([one.table for one in renamings])
        elif not (
            self.catalog.at_once and publishing.held_back(self.catalog.names(self.namespace))
        ):
            return self.catalog.rename(self.namespace, renamings)
        catalog = self._database()
        complete = publishing.is_complete(catalog, self.namespace)
        done = catalog.rename(
            self.namespace,
            [
                replace(
                    one, table=publishing.unpublished(one.table), to=publishing.unpublished(one.to)
                )
                for one in renamings
            ],
        )
        if done and complete:
            self.publish(hold_back=True)
        return done

    def made_tables(self) -> Sequence[str]:
        """By a step of infold's in the metadata; held back ones by their plain names."""
        every = self.catalog.names(self.namespace)
        own = {name.removesuffix(UNPUBLISHED) for name in every}
        return [name for name in sorted(own) if self._has_steps(name)]

    def _has_steps(self, table: str) -> bool:
        """
        Whether infold committed to a table in the folder of this namespace, as far as its metadata
        can be read: in another warehouse, it is a table of somebody else's.
        """
        try:
            head = self.metadata(table)
        except InfoldError:
            return False
        if head is None or not head.steps:
            return False
        return self.folders.holds(head.location)

    def can_set_back(self, table: str, snapshot: int) -> bool:
        """Not to other columns: the snapshot is kept and has the present schema."""
        from infold.lake.iceberg import metadata_file as set_back

        location = self.location(table)
        return location is not None and set_back.is_version_kept(read_metadata(location), snapshot)

    def set_back(self, table: str, snapshot: int) -> None:
        """See ``ports.Lake``: of a table that is held back, readers go on seeing what they did."""
        from infold.lake.iceberg import metadata_file as set_back

        location = self.location(table)
        if location is None:
            return
        if not set_back.is_version_kept(read_metadata(location), snapshot):
            raise ValueError(f"{table} has no snapshot {snapshot} to be set back to")
        namespace, name = self._key(table)
        write_points.point(f"set back {name}: before")
        if not self.catalog.set_back((namespace, self.stored_name(name)), location, snapshot):
            raise run_errors.foreign_write(name, None)
        write_points.point(f"set back {name}: after")

    def was_renamed(self, renamings: Sequence[Renaming]) -> bool:
        """See ``ports.Lake``; at once, one table that has moved says it of all."""
        if not self.catalog.at_once:
            return self.catalog.finish_rename(self.namespace, renamings)
        return any(self.location(one.to) == one.location for one in renamings)

    def folder_for_new(self, table: str) -> str | None:
        """See ``ports.Lake`` and :class:`Folders`."""
        return self.folders.for_new(table)

    def is_free(self, table: str) -> bool:
        """See ``ports.Lake``: whatever case its letters have, as some file systems ignore that."""
        return self.folders.is_free(*self._key(table))

    def size(self, table: str) -> int:
        """The bytes of all files in the table's folder, those of old snapshots too."""
        location = self.location(table)
        if location is None:
            return 0
        return sum(size for _, size in places.sizes(places.folder_of(location)))

    def file_sizes(self, table: str, times: Ranges) -> Sequence[int]:
        """See ``ports.Lake``; by the manifests of the newest snapshot."""
        location, layout = self.location(table), self.layout(table)
        if location is None or layout is None or not times:
            return ()
        files = [task.file for task in open_table(location).scan().plan_files()]
        unit = layout.partition
        if unit is not None:  # rows without a time are in a partition of their own
            parts = ((file, file.partition[0]) for file in files)
            files = [
                file
                for file, value in parts
                if value is not None and times.overlaps(partition_cell(unit, value))
            ]
        return [file.file_size_in_bytes for file in files]

    def metadata(self, table: str) -> TableMetadata | None:
        """The table's newest metadata, or None when there is no such table."""
        from infold.core.ports import TableMetadata
        from infold.lake.iceberg.metadata_file import (
            STEP,
            foreign_snapshot,
            kept_with_rows_of,
            known_history,
        )

        location = self.location(table)
        if location is None:
            return None
        metadata = read_metadata(location)
        main = known_history(metadata, read_metadata)
        steps: dict[str, int] = {}
        for entry in reversed(main):
            if (step := entry.get("summary", {}).get(STEP)) is not None:
                steps[step] = entry["snapshot-id"]
        for step, last in [*steps.items()][-1:]:
            steps[step] = kept_with_rows_of(last, metadata, main) or last
        return TableMetadata(
            table=table,
            location=location,
            snapshot=main[0]["snapshot-id"] if main else None,
            steps=steps,
            foreign=foreign_snapshot(main),
            state=first_state_part(column_names(metadata)),
        )

    def file_list_id(self, table: str) -> str:
        """See :func:`names_digest`; empty without a table."""
        location = self.location(table)
        return "" if location is None else names_digest(location)

    def lost_files(self, table: str) -> Sequence[str]:
        """By the manifests of the current snapshot; no data is read."""
        location = self.location(table)
        return () if location is None else missing_data_files(location)

    def layout(self, table: str) -> StoredLayout | None:
        """See ``ports.Lake``: by the properties that the table was made with."""
        from infold.core.ports import StoredLayout

        location = self.location(table)
        if location is None:
            return None
        metadata = read_metadata(location)
        properties: Mapping[str, str] = metadata.get("properties") or {}
        partition = properties.get("infold.partition")
        return StoredLayout(
            storage=f"Iceberg v{metadata.get('format-version')}",
            column=properties.get("infold.column"),
            partition=Granularity(partition) if partition else None,
            type=properties.get("infold.type", "timestamp"),
        )

    def columns(self, table: str, snapshot: int | None = None) -> Mapping[str, Type]:
        """See ``ports.Lake``; by the metadata file alone."""
        location = self.location(table)
        return {} if location is None else user_columns(read_metadata(location), snapshot)

    def has_file(self, table: str, path: str) -> bool:
        """By the folder of the newest metadata; False without a table."""
        location = self.location(table)
        if location is None:
            return False
        return places.is_inside(path, places.folder_of(location))

    def history(self, table: str) -> History:
        """What has gathered in the table's metadata; all zero when there is no such table."""
        from infold.core.ports import History
        from infold.lake.iceberg.metadata_file import history_of

        location = self.location(table)
        if location is None:
            return History()
        return history_of(read_metadata(location))

    def rows(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """
        Rows of the current snapshot; technical columns (leading underscore) left out.

        ``where`` compares columns with values (``day >= '2024-03-09' AND user_id = 'ann'``).
        """
        from infold.lake.chosen_rows import shown_columns

        location = self.location(table)
        if location is None:
            raise command_errors.not_built(name=table)
        stored = open_table(location)
        names = shown_columns(stored.schema(), columns)
        return scan_where(stored, names, where, limit)

    def rows_matching(
        self,
        table: str,
        tests: Mapping[str, str],
        *,
        by: str,
        beside: Sequence[str] = (),
        limit: int | None = None,
    ) -> pa.Table:
        """See ``ports.Lake``. Raises ``not_built`` without a table."""
        from infold.lake.chosen_rows import matching_rows
        from infold.lake.iceberg.scan import scan_rows

        location = self.location(table)
        if location is None:
            raise command_errors.not_built(name=table)
        stored = open_table(location)
        read = partial(scan_rows, stored, limit=limit)
        return matching_rows(stored.schema(), read, tests, by, beside)

    def column_times(self, table: str, column: str, snapshot: int) -> Sequence[int]:
        """See ``ports.Lake``; none without the table."""
        location = self.location(table)
        if location is None:
            return ()
        then = open_table(location).scan(snapshot_id=snapshot)
        return instants_of(then.select(column).to_arrow().drop_null(), column)

    def string_values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """See ``ports.Lake``; None also without the table."""
        location = self.location(table)
        if location is None:
            return None
        return column_values(open_table(location), column, snapshot, limit)

    def location(self, table: str) -> str | None:
        """Where the table's newest metadata is, or None when there is no such table."""
        return self._find((table,)).get(self._key(table))

    def _find(self, tables: Iterable[str]) -> Mapping[Key, str]:
        """Where the metadata of tables is: of one that is held back, as infold wrote it."""
        keys = {self._key(table) for table in tables}
        if self.published or not self.catalog.at_once:
            return self.catalog.find(keys)
        own = {
            (space, publishing.unpublished(name)): (space, name)
            for space, name in keys
            if space == self.namespace
        }
        locations = self.catalog.find({*keys, *own})
        return {
            **{key: at for key, at in locations.items() if key in keys},
            **{own[key]: at for key, at in locations.items() if key in own},
        }

    def _key(self, table: str) -> tuple[str, str]:
        namespace, _, name = table.rpartition(".")
        return (namespace or self.namespace, name)


# Several catalogs may have tables in one warehouse, and none of them knows those of the others. So
# a new table gets a folder that nobody else names, and only a folder is deleted that the catalog,
# or a step of the ledger, named as the table's.
#
# Only the catalog in a file of the warehouse itself puts tables into folders without a suffix,
# where none is yet. Its own renamed table may still lie in one, or that of another catalog: earlier
# versions put those there, too. So a folder that nobody named is deleted only without a table's
# metadata. What a death leaves with metadata stays, unless a step of the ledger knows the place:
# files that nobody deletes are better than another's that are deleted.

METADATA = ".metadata.json"
"""A part of the name of each metadata file, packed or not."""


@dataclass(frozen=True, slots=True)
class Folders:
    """
    The folders of the tables of a namespace, in a warehouse; in none, nothing is made or deleted.

    ``alone``: the catalog is the one that lies in the warehouse.
    """

    catalog: TableCatalog
    namespace: str
    warehouse: str | None
    alone: bool = False

    def for_new(self, table: str) -> str | None:
        """The folder for a table that is made."""
        if self.warehouse is None:
            return None
        usual = places.below(places.absolute(self.warehouse), self.namespace, table)
        if self.alone and not self._holds_table(usual) and not places.is_folder(usual):
            return usual
        return f"{usual}__{uuid4().hex[:8]}"

    def delete_of(self, location: str) -> None:
        """Delete the folder of the table whose metadata was there; see :meth:`delete`."""
        self.delete(places.folder_of(location))

    def delete_left(self, namespace: str, table: str) -> None:
        """Delete what a table left in the usual folder, where no other catalog's can be."""
        if not self.alone or self.warehouse is None:
            return
        usual = places.below(self.warehouse, namespace, table)
        if not any(METADATA in name for name in places.names(places.below(usual, "metadata"))):
            self.delete(usual)

    def delete(self, folder: str) -> None:
        """Delete a folder of the namespace, if it is there and no table lies in it."""
        if self.warehouse is None:
            return
        if not places.is_inside(folder, places.below(self.warehouse, self.namespace)):
            return
        if places.is_folder(folder) and not self._holds_table(folder):
            places.delete_folder(folder)
            write_points.point(f"delete {folder.rpartition('/')[2]}: after")

    def holds(self, location: str) -> bool:
        """Whether metadata lies where tables of the namespace do."""
        if self.warehouse is None:
            return True
        return places.is_inside(location, places.below(self.warehouse, self.namespace))

    def is_free(self, namespace: str, name: str) -> bool:
        """Whether no table has a name, in any case, and no files are where one would be."""
        known = set(self.catalog.names(namespace))
        if self.warehouse is not None:
            known |= set(places.names(places.below(self.warehouse, namespace)))
        return name.lower() not in {one.lower() for one in known}

    def _holds_table(self, folder: str) -> bool:
        """Whether the metadata of a table is somewhere in a folder."""
        locations = self.catalog.locations(self.namespace).values()
        return any(places.is_inside(at, folder) for at in locations)


# To find out which files a snapshot needs, its manifests have to be read, which takes most of a
# second. So a run that ends records the names of the files in each table's folder. A table is not
# checked further while it has not changed and has exactly these names.

_UNNAMED = (".metadata.json", ".crc", "version-hint.text")
"""Metadata files, which the catalog names."""


def names_digest(location: str) -> str:
    """
    A digest of the names of all files of the table whose metadata is at ``location``.

    Empty where that file is gone: the catalog names it, and no digest has the name.
    """
    names = set(places.file_names(places.folder_of(location)))
    if "/".join(location.rsplit("/", 2)[1:]) not in names:
        return ""
    digest = blake2b(digest_size=16)
    for name in sorted(name for name in names if not name.endswith(_UNNAMED)):
        digest.update(name.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def missing_data_files(location: str) -> tuple[str, ...]:
    """The files that the newest snapshot of a table needs and that are not there, or are empty."""
    try:
        stored = open_table(location)
    except InfoldError:
        return (places.shown(location),)
    try:
        tasks = list(stored.scan().plan_files())
    except OSError as error:  # of those that say which files there are
        return _missing_manifests(stored) or (str(error.filename or error),)
    except (EOFError, ValueError):  # one of those is damaged; who reads the table says how
        return _missing_manifests(stored)
    needed = dict.fromkeys(
        file.file_path for task in tasks for file in (task.file, *task.delete_files)
    )
    return tuple(places.missing(tuple(needed)))


def _missing_manifests(stored: StaticTable) -> tuple[str, ...]:
    """Those of the files that say which files a snapshot has that are not there, or empty."""
    snapshot = stored.current_snapshot()
    if snapshot is None:
        return ()
    if missing := places.missing((snapshot.manifest_list,)):
        return tuple(missing)
    try:
        manifests = snapshot.manifests(stored.io)
    except (EOFError, ValueError):
        return ()
    return tuple(places.missing([one.manifest_path for one in manifests]))


def column_values(stored: StaticTable, column: str, snapshot: int, limit: int) -> pa.Array | None:
    """
    The values of a column of strings at a snapshot, each once, NULL left out.

    Values of rows that were deleted may be among them: data files are read, not delete files. When
    there are more than ``limit``, some that are more than that. None: there is no such snapshot, no
    such column of strings, or a file was written when it had another name.
    """
    from pyiceberg.types import StringType

    from infold.lake.chosen_rows import distinct_values

    if stored.snapshot_by_id(snapshot) is None:
        return None
    then = stored.scan(snapshot_id=snapshot)
    field = {field.name.lower(): field for field in then.projection().fields}.get(column.lower())
    if field is None or not isinstance(field.field_type, StringType):
        return None
    files = (
        stored.io.new_input(task.file.file_path).open()
        for task in then.select(field.name).plan_files()
    )
    return distinct_values(files, field.name, limit)


@dataclass(frozen=True, slots=True)
class IcebergSnapshotReader:
    """
    The snapshots that tables still have; each table's metadata is read once.

    Files are pruned by times, and technical columns are read only if they are named.
    """

    lake: IcebergLake
    _opened: dict[str, StaticTable | None] = field(default_factory=dict)

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""
        stored = self._open(table)
        if stored is None:
            return frozenset()
        return frozenset(snapshot.snapshot_id for snapshot in stored.metadata.snapshots)

    def rows_equal_to(
        self,
        table: str,
        any_of: Sequence[Mapping[str, Any]],
        *,
        columns: Sequence[str] | None = None,
        near: TimeSpan | None = None,
        where: str | None = None,
        snapshot: int | None = None,
    ) -> pa.Table | None:
        """See ``ports.SnapshotReader``; None also where a run expires the snapshot meanwhile."""
        stored = self._open(table)
        if stored is None or (snapshot is not None and not stored.snapshot_by_id(snapshot)):
            return None
        from infold.lake.chosen_rows import columns_beside, truth_of_equality
        from infold.lake.iceberg.scan import scan_rows

        schema = _schema(stored, snapshot)
        chosen = columns_beside(schema, any_of, near, columns)
        if chosen is None:
            return None
        own, names = chosen
        rows = truth_of_equality(schema, any_of, near, where)
        try:
            table_rows = scan_rows(stored, rows, own, snapshot=snapshot)
        except FileNotFoundError:  # expired by a run since the metadata was read
            return None
        return table_rows.select(own).rename_columns(names)

    def _open(self, table: str) -> StaticTable | None:
        if table not in self._opened:
            location = self.lake.location(table)
            self._opened[table] = None if location is None else open_table(location)
        return self._opened[table]


def _schema(stored: StaticTable, snapshot: int | None) -> Schema:
    """The columns that a table had at a snapshot."""
    entry = stored.current_snapshot() if snapshot is None else stored.snapshot_by_id(snapshot)
    if entry is None or entry.schema_id is None:
        return stored.schema()
    return stored.schemas()[entry.schema_id]
