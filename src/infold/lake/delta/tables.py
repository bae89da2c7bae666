"""
Delta tables behind ``ports.Lake``: each is a folder of the warehouse, found by its name.

The log of a table is read by infold itself, its rows by deltalake (:mod:`infold.lake.delta.rows`).
There is no catalog: what has a log in the folder of a name is the table of that name. A metastore
may have the names, too, for who looks for them there: nothing here is ever read from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from infold.core import write_points
from infold.core.interval import Ranges, instants_of
from infold.core.own_columns import first_state_part
from infold.core.ports import History, StoredLayout, TableMetadata, TimeSpan
from infold.core.swap import Renaming
from infold.core.type_changes import Type
from infold.lake.chosen_rows import (
    RowFilter,
    columns_beside,
    distinct_values,
    matching_rows,
    shown_columns,
    truth_of,
    truth_of_equality,
)
from infold.lake.delta import folders
from infold.lake.delta.commit import SET_BACK
from infold.lake.delta.files import files_of_partitions, newest_files
from infold.lake.delta.log import Log, layout_of, read_log, user_columns
from infold.lake.delta.metastore import Entry, Metastore, location_of, wrong_names
from infold.lake.delta.reader_views import ReaderViews
from infold.lake.delta.rows import columns_of, named_errors, open_table, read_rows
from infold.lake.renaming import OneAfterTheOther
from infold.lake.stores import places
from infold.messages import catalog_errors, command_errors, run_errors
from infold.messages.delta_errors import UNREADABLE
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyiceberg.expressions import BooleanExpression


_UNNAMED = (".crc", "_last_checkpoint")
"""Files of a log that every commit writes, or a reader: none of them is needed to read a table."""


class DeltaLake:
    """The tables below ``warehouse``; a name with a dot is ``namespace.table``."""

    def __init__(
        self, warehouse: Path | str, namespace: str, metastore: Metastore | None = None
    ) -> None:
        self.warehouse = str(warehouse)
        self.namespace = namespace
        self.metastore = metastore

    def folder(self, table: str) -> str:
        """The folder of a table, whether or not it is there: a path, or a URL in a store."""
        namespace, _, name = table.rpartition(".")
        return places.below(self.warehouse, namespace or self.namespace, name)

    def log(self, table: str) -> Log | None:
        """The log of a table as it is now."""
        return read_log(self.folder(table))

    # -- names

    def stored_name(self, table: str) -> str:
        """The same name: nothing is held back, so a table has one."""
        return table

    def location(self, table: str) -> str | None:
        """See ``ports.Lake``: the newest file of its log, with the id of the table."""
        log = self.log(table)
        return None if log is None else log.location

    def moved_tables(self, known: Mapping[str, str]) -> Mapping[str, str | None]:
        """By each table's log; one that cannot be read counts as moved."""
        present = {table: self._location_or_file(table) for table in known}
        return {table: location for table, location in present.items() if location != known[table]}

    def _location_or_file(self, table: str) -> str | None:
        """Where a table is, as far as its log can be read; who looks closer finds out why not."""
        log = self.log(table)
        if log is None:
            return None
        try:
            return log.location
        except InfoldError:
            return log.file(log.newest)

    def hold_back(self, tables: Iterable[str]) -> None:
        """See ``ports.Lake``; it cannot be done."""
        del tables
        self._refuse_together()

    def publish(self, *, hold_back: bool, tables: Collection[str] | None = None) -> Sequence[str]:
        """See ``ports.Lake``; nothing is ever held back."""
        del tables
        if hold_back:
            self._refuse_together()
        return ()

    def refresh_views(self, tables: Collection[str], *, only_new: bool = False) -> Sequence[str]:
        """See ``ports.Lake``: a table has a view where its name in the metastore leads to it."""
        if self.metastore is None:
            return ()
        with self.metastore.at_the_end():
            named = self._named(tables, self.metastore) if tables else {}
            return self._views(self.metastore).refresh(named, only_new=only_new)

    def check_views(self, tables: Collection[str] | None) -> None:
        """See ``ports.Lake``: a target that asks for them without a metastore is refused before."""
        if self.metastore is not None:
            self._views(self.metastore).check(tables)

    def _views(self, metastore: Metastore) -> ReaderViews:
        return ReaderViews(metastore, location_of(places.below(self.warehouse, self.namespace)))

    def _named(self, tables: Collection[str], metastore: Metastore) -> Mapping[str, Log]:
        """The logs of those of some tables that have their names, by these."""
        entries = metastore.entries(tables)
        logs = {
            table.lower(): self.log(table)
            for table in tables
            if (entry := entries.get(table.lower())) is not None
            and entry.is_right(location_of(self.folder(table)))
        }
        return {name: log for name, log in logs.items() if log is not None}

    def check_names(self, tables: Collection[str]) -> Collection[str]:
        """See ``ports.Lake``; none without a metastore, as folders have no owners."""
        if self.metastore is None:
            return ()
        return self.metastore.check({table: self.folder(table) for table in tables})

    def misnamed(self) -> Sequence[str]:
        """See ``ports.Lake``: a look at each folder, and at the log of those without a name."""
        if self.metastore is None:
            return ()
        entries = self.metastore.entries()
        own, gone = self._names(entries)
        return sorted({*wrong_names(own, entries), *gone})

    def register(self) -> Sequence[str]:
        """See ``ports.Lake``; a failure is named once all tables are as they should be."""
        if self.metastore is None:
            return ()
        with self.metastore.at_the_end():
            entries = self.metastore.entries()
            return self.metastore.change(*self._names(entries), entries)

    def _names(self, entries: Mapping[str, Entry]) -> tuple[Mapping[str, str], Sequence[str]]:
        """The folders of tables by the names that are to lead there, and names of no table."""
        parent = places.below(self.warehouse, self.namespace)
        own = [name for name in sorted(folders.names(parent)) if self._has_name(name, entries)]
        known = {name.lower() for name in own}
        above = location_of(parent)
        gone = [one.name for one in entries.values() if one.is_of(above) and one.name not in known]
        return {name: self.folder(name) for name in own}, gone

    def _has_name(self, table: str, entries: Mapping[str, Entry]) -> bool:
        """Whether a name leads to a folder: it does already, or there is a table of infold's."""
        entry = entries.get(table.lower())
        if entry is not None and entry.is_free_for(location_of(self.folder(table))):
            return self.log(table) is not None
        return self._has_steps(table)

    def _refuse_together(self) -> NoReturn:
        raise catalog_errors.not_together(catalog=self.warehouse)

    def drop(self, table: str) -> bool:
        """The folder goes; its name in a metastore goes with :meth:`register`."""
        return folders.drop(self.folder(table))

    def delete_folder(self, location: str) -> None:
        """See ``ports.Lake``: a table lies nowhere but in the folder of its name."""

    def rename(self, renamings: Sequence[Renaming]) -> bool:
        """See ``ports.Lake``: one after the other, once all are found where they are expected."""
        return self._one_by_one().rename(renamings)

    def was_renamed(self, renamings: Sequence[Renaming]) -> bool:
        """See ``ports.Lake``: a table is known by its id, also after a commit to it."""
        return self._one_by_one().finish(renamings)

    def _one_by_one(self) -> OneAfterTheOther:
        def find(names: Collection[str]) -> Mapping[str, str]:
            locations = {name: self.location(name) for name in names}
            return {
                name: location or ""
                for name, location in locations.items()
                if location is not None or folders.is_taken(self.folder(name))
            }

        return OneAfterTheOther(
            find,
            lambda table, to: folders.rename(self.folder(table), self.folder(to)),
            lambda location: location.split("#")[-1],
        )

    def folder_for_new(self, table: str) -> str | None:
        """None: a table is always in the folder of its name."""
        del table
        return None

    def is_free(self, table: str) -> bool:
        """See ``ports.Lake``: whatever case its letters have, as some file systems ignore that."""
        parent, _, own = self.folder(table).rpartition("/")
        same = [name for name in folders.names(parent) if name.lower() == own.lower()]
        return not any(folders.has_files(places.below(parent, name)) for name in same)

    def made_tables(self) -> Sequence[str]:
        """By a step of infold's in the log; tables of others may be in the same warehouse."""
        names = sorted(folders.names(places.below(self.warehouse, self.namespace)))
        return [name for name in names if self._has_steps(name)]

    def _has_steps(self, table: str) -> bool:
        try:
            head = self.metadata(table)
        except InfoldError:
            return False
        return head is not None and bool(head.steps)

    # -- what a table is

    def size(self, table: str) -> int:
        """The bytes of all files in the folder, those of old versions too."""
        return sum(size for _, size in places.sizes(self.folder(table)))

    def file_sizes(self, table: str, times: Ranges) -> Sequence[int]:
        """See ``ports.Lake``; by the log. Raises ``metadata_missing`` where that has a gap."""
        log = self.log(table)
        if log is None or not times:
            return ()
        files, unit = newest_files(log).values(), layout_of(log.schema().fields).partition
        chosen = files if unit is None else files_of_partitions(files, unit, times)
        return [file["size"] for file in chosen]

    def metadata(self, table: str) -> TableMetadata | None:
        """By the log; None also where the table is being deleted."""
        log = self.log(table)
        if log is None:
            return None
        newest = next((commit.version for commit in log.main()), None)
        return TableMetadata(
            table=table,
            location=log.location,
            snapshot=None if newest is None else log.snapshot(newest),
            steps={step: log.snapshot(version) for step, version in log.steps().items()},
            foreign=log.foreign(),
            state=first_state_part(str(one["name"]) for one in log.schema().fields),
        )

    def layout(self, table: str) -> StoredLayout | None:
        """By the columns of the newest schema."""
        log = self.log(table)
        return None if log is None else layout_of(log.schema().fields)

    def columns(self, table: str, snapshot: int | None = None) -> Mapping[str, Type]:
        """See ``ports.Lake``; none where the log does not go back to the snapshot."""
        log = self.log(table)
        if log is None:
            return {}
        version = log.newest if snapshot is None else log.version(snapshot)
        if version is None or version < log.commits[0]:
            return {}
        return user_columns(log.schema(version).fields)

    def history(self, table: str) -> History:
        """By the commits that the present rows come from, as far back as the log goes."""
        log = self.log(table)
        if log is None:
            return History()
        main = list(log.main())
        grew = [one.may_add_files for one in takewhile(lambda one: not one.rewrites, main)]
        return History(
            snapshots=len(main),
            oldest_at=min((one.at for one in main), default=0) * 1000,
            since_rewrite=len(grew),
            steady=grew.index(True) if True in grew else len(grew),
            main=tuple(log.snapshot(one.version) for one in main),
        )

    # -- its files

    def file_list_id(self, table: str) -> str:
        """By all names in the folder, except those of checksums and ``_last_checkpoint``."""
        log = self.log(table)
        if log is None:
            return ""
        names = places.file_names(log.folder)
        digest = blake2b(digest_size=16)
        for name in sorted(name for name in names if not name.endswith(_UNNAMED)):
            digest.update(name.encode(errors="surrogateescape") + b"\0")
        return digest.hexdigest()

    def lost_files(self, table: str) -> Sequence[str]:
        """See ``ports.Lake``; the folder itself where the table cannot be opened."""
        log = self.log(table)
        return () if log is None else missing_files(log.folder)

    def has_file(self, table: str, path: str) -> bool:
        """By the folder of the table's name, whether or not the table is there."""
        return places.is_inside(path, self.folder(table))

    # -- its rows

    def rows(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """See ``ports.Lake``; ``where`` is what it is for every storage."""
        from infold.lake.delta.rows import columns_of, read_rows

        folder = self._built(table)
        schema = columns_of(folder)
        names = shown_columns(schema, columns)
        if where is None:
            return read_rows(folder, names, limit=limit)
        from infold.lake.chosen_rows import RowFilter

        rows = RowFilter(truth_of(where, schema), schema)
        return read_rows(folder, names, rows=rows, limit=limit)

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
        from infold.lake.chosen_rows import RowFilter
        from infold.lake.delta.rows import columns_of, read_rows

        folder = self._built(table)
        schema = columns_of(folder)

        def read(truth: BooleanExpression, names: Sequence[str]) -> pa.Table:
            return read_rows(folder, names, rows=RowFilter(truth, schema), limit=limit)

        return matching_rows(schema, read, tests, by, beside)

    def _built(self, table: str) -> str:
        """The folder of a table. Raises ``not_built``."""
        log = self.log(table)
        if log is None:
            raise command_errors.not_built(name=table)
        return log.folder

    def column_times(self, table: str, column: str, snapshot: int) -> Sequence[int]:
        """See ``ports.Lake``; none without the table or its snapshot."""
        from infold.lake.delta.rows import read_rows

        log = self.log(table)
        version = None if log is None else log.version(snapshot)
        if log is None or version is None:
            return ()
        instants = read_rows(log.folder, [column], version=version)
        return instants_of(instants.drop_null(), column)

    def string_values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """See ``ports.Lake``; None also without the table or its snapshot."""
        log = self.log(table)
        version = None if log is None else log.version(snapshot)
        if log is None or version is None:
            return None
        return string_values(log.folder, version, column, limit)

    # -- as it was

    def can_set_back(self, table: str, snapshot: int) -> bool:
        """Not to other columns, nor to a version whose files are not all there."""
        log = self.log(table)
        version = None if log is None else log.version(snapshot)
        if log is None or version is None or version not in {one.version for one in log.main()}:
            return False
        present, then = log.schema(), log.schema(version)
        same = (present.fields, present.partitioned_by) == (then.fields, then.partitioned_by)
        return same and not missing_files(log.folder, version)

    def set_back(self, table: str, snapshot: int) -> None:
        """See ``ports.Lake``: by a commit, which says of itself what it is."""
        log = self.log(table)
        if log is None:
            return
        version = log.version(snapshot)
        if version is None or not self.can_set_back(table, snapshot):
            raise ValueError(f"{table} has no snapshot {snapshot} to be set back to")
        if not restore(log.folder, table, expected=log.newest, version=version):
            raise run_errors.foreign_write(table, None)


def data_files(stored: DeltaTable) -> tuple[str, ...]:
    """The files with the rows of a table."""
    return tuple(unquote(uri.removeprefix("file://")) for uri in stored.file_uris())


def missing_files(folder: str, version: int | None = None) -> Sequence[str]:
    """The files that a version needs and that are not there."""
    try:
        stored = open_table(folder, version)
        names = data_files(stored)
    except InfoldError as error:
        if error.slug != UNREADABLE:
            raise
        return (folder,)
    return places.missing(names) or _missing_deletes(stored, folder)


def _missing_deletes(stored: DeltaTable, folder: str) -> tuple[str, ...]:
    """A file of deletion vectors that is not there: they are read, as nothing names them."""
    from deltalake.exceptions import DeltaError

    try:
        for _ in stored.deletion_vectors():
            pass
    except (DeltaError, OSError, RuntimeError, ValueError) as error:
        named = [word.strip("'\"`:,;()") for word in str(error).split() if ".bin" in word]
        return (next(iter(named), folder),)
    return ()


def string_values(folder: str, version: int, column: str, limit: int) -> pa.Array | None:
    """See ``ports.Lake.string_values``; None also for a column of another type."""
    stored = open_table(folder, version)
    own = {field.name.lower(): field for field in stored.schema().fields}.get(column.lower())
    if own is None or str(getattr(own.type, "type", "")) != "string":
        return None
    files = (_opened(file) for file in data_files(stored))
    return distinct_values(files, own.name, limit)


def _opened(file: str) -> Path | AbstractContextManager[Any]:
    """A file to read; of one in a store, all of it is read."""
    return BytesIO(places.read(file)) if places.in_store(file) else Path(file)


def restore(folder: str, table: str, *, expected: int, version: int) -> bool:
    """Let a table have the rows of a version again; False where somebody committed meanwhile."""
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError

    properties = CommitProperties(custom_metadata={SET_BACK: str(version)})
    stored = open_table(folder)
    if stored.version() != expected:
        return False
    write_points.point(f"set back {table}: before")
    try:
        with named_errors(folder):
            stored.restore(version, commit_properties=properties)
    except InfoldError as error:
        if isinstance(error.__cause__, CommitFailedError):
            return False
        raise
    write_points.point(f"set back {table}: after")
    return True


@dataclass(frozen=True, slots=True)
class DeltaSnapshotReader:
    """The versions that tables still have."""

    lake: DeltaLake

    def kept_snapshots(self, table: str) -> frozenset[int]:
        """The snapshots that a table still has."""
        return frozenset(self.lake.history(table).main)

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
        """See ``ports.SnapshotReader``; None also where a run expires the version meanwhile."""
        log = self.lake.log(table)
        if log is None or (snapshot is not None and snapshot not in self.kept_snapshots(table)):
            return None
        version = log.newest if snapshot is None else log.version(snapshot)
        schema = columns_of(log.folder, version)
        chosen = columns_beside(schema, any_of, near, columns)
        if chosen is None:
            return None
        own, names = chosen
        rows = RowFilter(truth_of_equality(schema, any_of, near, where), schema)
        try:
            table_rows = read_rows(log.folder, own, version=version, rows=rows)
        except InfoldError as error:  # expired by a run since its log was read
            if error.slug != UNREADABLE:
                raise
            return None
        return table_rows.rename_columns(names)
