"""
The catalog in a Hive metastore, as Iceberg's HiveCatalog keeps it: tables, and views for readers.

A table of Iceberg's is one of the metastore with the place of its metadata among its parameters.
Where many tables are is one request. A change reads the table, and gives it back with something
else in it. So it holds the table's lock meanwhile, as commits of Iceberg's do, and says what it has
read: a metastore that commits without locks compares that.

A metastore knows names in lower case only.

A view is a table of the kind ``VIRTUAL_VIEW``, with the place of its metadata among its parameters.

pyiceberg's catalog renames without the lock, so a commit meanwhile would be lost, opens the
metadata of each table, and has no views (docs/decisions/0130).
"""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infold.core.storages import Catalog
from infold.lake.hive_client import HiveClient, alter, user_name
from infold.lake.iceberg import view_metadata
from infold.lake.iceberg.metadata_file import metadata_file_of
from infold.lake.iceberg.table_catalog import Key, OneByOne
from infold.lake.iceberg.view_metadata import View
from infold.lake.stores import places
from infold.lake.views import FoundViews, RefusedError

LOCK_SECONDS = 60.0
"""Seconds that a lock is waited for that somebody else holds."""

LOCATION, PREVIOUS = "metadata_location", "previous_metadata_location"


def hive_catalog(declared: Catalog, root: Path, key: str) -> HiveCatalog:
    """The catalog that a target declares; nothing is asked for yet."""
    return HiveCatalog(HiveClient(declared, root, key))


@dataclass(frozen=True, slots=True)
class HiveCatalog(OneByOne):
    """A Hive metastore as ``TableCatalog``: each change is by itself, under its lock."""

    client: HiveClient

    @property
    def place(self) -> str:
        """The address without secrets, as messages name it."""
        return self.client.place

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``: a request for each namespace."""
        names = defaultdict[str, dict[str, str]](dict)
        for namespace, name in tables:
            names[namespace][name.lower()] = name
        return {
            (namespace, spellings[name]): at
            for namespace, spellings in names.items()
            for name, at in self._locations(namespace, list(spellings)).items()
        }

    def locations(self, namespace: str) -> Mapping[str, str]:
        """By the names, then their entries; tables that are none of Iceberg's are left out."""
        return self._locations(namespace, list(self.names(namespace)))

    def names(self, namespace: str) -> Collection[str]:
        """See ``TableCatalog``; also of tables that are none of Iceberg's."""
        return self.client.names(namespace)

    def drop(self, namespace: str, names: Sequence[str]) -> None:
        """See ``TableCatalog``: one after the other."""
        for name in names:
            self.client.drop(namespace, name)

    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """An alteration of the entry, under the table's lock."""

        def renamed(entry: Any) -> None:
            entry.tableName = to.lower()

        self.change_table((namespace, table), renamed)

    def set_back(self, table: Key, location: str, snapshot: int) -> bool:
        """
        See ``TableCatalog``: a new metadata file, and the place of it.

        The file is written before anything is asked for: where that fails, nothing was lost on the
        way. A change that the metastore refuses is a commit of somebody else's only if the table
        has moved.
        """
        new = metadata_file_of(location, snapshot)

        def moved(entry: Any) -> bool:
            if entry.parameters.get(LOCATION) != location:
                return False
            entry.parameters[LOCATION] = new
            entry.parameters[PREVIOUS] = location
            return True

        try:
            return self.change_table(table, moved)
        except RefusedError as error:
            if self.find([table]).get(table) == location:
                raise error.named from None
            return False

    def _locations(self, namespace: str, names: Sequence[str]) -> Mapping[str, str]:
        """Where the metadata of tables is; those of others than Iceberg have none."""
        try:
            entries = self.client.tables(namespace, names)
        except RefusedError:  # there is no such namespace
            return {}
        places = {str(entry.tableName): (entry.parameters or {}).get(LOCATION) for entry in entries}
        return {name: str(at) for name, at in places.items() if at is not None}

    def change_table(self, table: Key, edit: Callable[[Any], bool | None]) -> bool:
        """Change what the metastore has of a table; False where ``edit`` finds that it may not."""
        key = (table[0].lower(), table[1].lower())

        def ask(hive: Any) -> bool:
            from hive_metastore.ttypes import MetaException

            unlock = self._lock(hive, key)
            try:
                entry = hive.get_table(*key)
                entry.parameters = dict(entry.parameters or {})
                read = entry.parameters.get(LOCATION, "")
                if edit(entry) is False:
                    return False
                try:
                    alter(
                        hive,
                        key,
                        entry,
                        expected_parameter_key=LOCATION,
                        expected_parameter_value=read,
                    )
                except MetaException as error:
                    if "has been modified" in str(error.message):
                        raise self._refused(str(error.message)) from None
                    raise
            finally:
                unlock()
            return True

        return self.client.change(ask)

    def _lock(self, hive: Any, table: Key) -> Callable[[], None]:
        """
        Take the lock that a commit of Iceberg's takes, too; what gives it back.

        That is no context manager: an exception of Thrift's cannot be changed, and would become
        another one on its way through a generator's, which notes a traceback in it.
        """
        from hive_metastore.ttypes import (
            CheckLockRequest,
            LockComponent,
            LockLevel,
            LockRequest,
            LockState,
            LockType,
            UnlockRequest,
        )

        part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, *table)
        request = LockRequest([part], user=user_name(), hostname=socket.gethostname())
        lock, until = hive.lock(request), time.monotonic() + LOCK_SECONDS

        def unlock() -> None:
            hive.unlock(UnlockRequest(lockid=lock.lockid))

        try:
            while lock.state == LockState.WAITING and time.monotonic() < until:
                time.sleep(0.1)
                lock = hive.check_lock(CheckLockRequest(lockid=lock.lockid))
            if lock.state != LockState.ACQUIRED:
                # Nobody knows that the table has moved: it is no change of somebody else's yet.
                why = f"somebody else holds the lock of {'.'.join(table)}"
                raise self.client.refused(why)
        except BaseException:
            unlock()
            raise
        return unlock

    def _refused(self, why: str) -> RefusedError:
        return RefusedError(self.client.refused(why))


@dataclass(frozen=True, slots=True)
class HiveViews:
    """Views as entries of the metastore, each with a metadata file."""

    catalog: HiveCatalog

    def check(self) -> None:
        """See ``CatalogViews``: to a metastore, a view is a table."""

    def name(self, table: str) -> str:
        """See ``CatalogViews``: it has small letters only."""
        return table.lower()

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: two requests."""
        names = self.catalog.names(namespace)
        own = view_metadata.own_view_files(self.catalog.locations(namespace) if names else {})
        return FoundViews(own, [name for name in names if name not in own], there=bool(names))

    def others(self, namespace: str) -> Collection[str]:
        """All names but those of infold's views."""
        return self.found(namespace).others

    def change(
        self,
        namespace: str,
        views: Mapping[str, View],
        gone: Collection[str],
        present: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: one after the other; a view's file is there before the view is."""
        space = namespace.lower()
        if views and not present.there:
            self._have_database(space, views)
        left = []
        for name, view in views.items():
            known = present.own.get(name)
            at = view_metadata.write_view_file(view)
            try:
                if known is None:
                    table = _new_view(space, name, view, at)
                    self.catalog.client.change(lambda hive, table=table: hive.create_table(table))  # type: ignore[misc]
                elif not self._replace((space, name), view, at, known.location):
                    left.append(name)
            except RefusedError:
                left.append(name)
            if name not in left:
                view_metadata.delete_old_view_files(view, None if known is None else known.location)
        self.catalog.drop(space, [*gone])
        return left

    def _replace(self, key: tuple[str, str], view: View, at: str, before: str) -> bool:
        """Make a view say something else, if it is still as it was found."""

        def moved(entry: Any) -> bool:
            if entry.parameters.get(LOCATION) != before:
                return False
            entry.parameters |= {LOCATION: at, PREVIOUS: before}
            entry.viewOriginalText = entry.viewExpandedText = _query(view)
            return True

        return self.catalog.change_table(key, moved)

    def _have_database(self, space: str, views: Mapping[str, View]) -> None:
        """Make the namespace, in the folder of the views' own."""
        folder = next(iter(views.values())).folder.rpartition("/")[0]
        if not places.in_store(folder):
            folder = f"file:{folder}"
        self.catalog.client.have_namespace(space, folder)


def _new_view(space: str, name: str, view: View, location: str) -> Any:
    """What the metastore is to have of a view; those who can read it read its metadata."""
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    seconds = int(time.time())
    stored = StorageDescriptor(
        cols=[],
        location=view.folder,
        inputFormat="org.apache.hadoop.mapred.FileInputFormat",
        outputFormat="org.apache.hadoop.mapred.FileOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    return Table(
        tableName=name,
        dbName=space,
        owner=user_name(),
        createTime=seconds,
        lastAccessTime=seconds,
        sd=stored,
        partitionKeys=[],
        parameters={
            **view.metadata["properties"],
            "uuid": view.metadata["view-uuid"],
            "table_type": "ICEBERG-VIEW",
            LOCATION: location,
        },
        viewOriginalText=_query(view),
        viewExpandedText=_query(view),
        tableType="VIRTUAL_VIEW",
    )


def _query(view: View) -> str:
    """The query that stands in the metastore itself, as Iceberg has it there: that for Spark."""
    first: str = view.metadata["versions"][0]["representations"][0]["sql"]
    return first
