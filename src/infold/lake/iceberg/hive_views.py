"""
Views in a Hive metastore, as Iceberg's HiveCatalog keeps them.

A view is a table of the metastore of the kind ``VIRTUAL_VIEW``, with the place of its metadata
among its parameters. They change one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from infold.lake.hive_client import user_name
from infold.lake.iceberg import view_metadata
from infold.lake.iceberg.hive_catalog import LOCATION, PREVIOUS, HiveCatalog
from infold.lake.iceberg.view_metadata import View
from infold.lake.stores import places
from infold.lake.views import FoundViews, RefusedError


@dataclass(frozen=True, slots=True)
class HiveViews:
    """See ``CatalogViews``."""

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
        """See ``CatalogViews``."""
        return self.found(namespace).others

    def change(
        self,
        namespace: str,
        wanted: Mapping[str, View],
        gone: Collection[str],
        found: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: one after the other; a view's file is there before the view is."""
        space = namespace.lower()
        if wanted and not found.there:
            self._have_database(space, wanted)
        left = []
        for name, view in wanted.items():
            known = found.own.get(name)
            at = view_metadata.write_view_file(view)
            try:
                if known is None:
                    made = _table(space, name, view, at)
                    self.catalog.client.change(lambda hive, made=made: hive.create_table(made))  # type: ignore[misc]
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

        def moved(found: Any) -> bool:
            if found.parameters.get(LOCATION) != before:
                return False
            found.parameters |= {LOCATION: at, PREVIOUS: before}
            found.viewOriginalText = found.viewExpandedText = _query(view)
            return True

        return self.catalog.change_table(key, moved)

    def _have_database(self, space: str, wanted: Mapping[str, View]) -> None:
        """Make the namespace, in the folder of the views' own."""
        folder = next(iter(wanted.values())).folder.rpartition("/")[0]
        if not places.in_store(folder):
            folder = f"file:{folder}"
        self.catalog.client.have_namespace(space, folder)


def _table(space: str, name: str, view: View, location: str) -> Any:
    """What the metastore is to have of a view; those who can read it read its metadata."""
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor, Table

    now = int(time.time())
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
        createTime=now,
        lastAccessTime=now,
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
