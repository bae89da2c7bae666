"""
Views of Iceberg: which there are to be in a catalog, with their files in a warehouse.

The catalog knows the digest of each view that infold made: see :mod:`infold.lake.views`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from infold.lake.iceberg import view_metadata
from infold.lake.iceberg.metadata_file import STEP, current_fields, read_metadata
from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.iceberg.view_metadata import CatalogViews, View, view_of
from infold.lake.stores import places
from infold.lake.views import SUFFIX, FoundViews, refresh, refuse_shared
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.lake.iceberg.table_catalog import TableCatalog


def views_in(catalog: TableCatalog) -> CatalogViews:
    """How views are kept in a catalog, which differs for SQL, REST and Hive."""
    if isinstance(catalog, SqlCatalog):
        return SqlViews(catalog)
    from infold.lake.iceberg.rest_catalog import RestCatalog

    if isinstance(catalog, RestCatalog):
        from infold.lake.iceberg.rest_catalog import RestViews

        return RestViews(catalog)
    from infold.lake.iceberg.hive_catalog import HiveCatalog, HiveViews

    assert isinstance(catalog, HiveCatalog)
    return HiveViews(catalog)


@dataclass(frozen=True, slots=True)
class ReaderViews:
    """
    The views of the tables of a namespace, with their files in a warehouse.

    Several catalogs may have one warehouse, so each view has a folder of its catalog. The catalog
    that lies in the warehouse, ``alone``, has those by the names of the tables.
    """

    catalog: TableCatalog
    namespace: str
    warehouse: str
    alone: bool = False

    def check(self, *, wanted: bool) -> None:
        """
        Raise where views are ``wanted`` and there can be none, or where two projects would share a
        namespace: one has views there, and one tables.
        """
        if self.namespace.lower().endswith(SUFFIX):
            own = sorted(views_in(self.catalog).found(self.namespace).own)
            refuse_shared(self.catalog.place, self.namespace, own, "views")
        if wanted:
            views, space = views_in(self.catalog), self.namespace + SUFFIX
            views.check()
            at = self.catalog.find([(space, name) for name in views.others(space)])
            own = sorted(name for (_, name), location in at.items() if _is_of_infold(location))
            refuse_shared(self.catalog.place, space, own, "tables")

    def refresh(self, tables: Collection[str], *, only_new: bool) -> Sequence[str]:
        """
        Have exactly the views of some tables, as far as these are there; names that were taken.

        With ``only_new``, views that are there already are taken for right: no file is read for
        them.
        """
        views = views_in(self.catalog)
        view_names = {views.name(table) for table in tables}
        names_taken, lost = refresh(
            views,
            self.namespace + SUFFIX,
            lambda: view_names & {*self.catalog.names(self.namespace)} if view_names else (),
            self._locations,
            self._view,
            wanted=bool(tables),
            only_new=only_new,
        )
        for name in lost:
            self._delete_files(self._folder(name))
        return names_taken

    def _locations(self, names: Sequence[str]) -> Mapping[str, str]:
        locations = self.catalog.find([(self.namespace, name) for name in names])
        return {name: location for (_, name), location in locations.items()}

    def _view(self, table: str, location: str) -> View:
        """The view of the table with its metadata at ``location``, as it is to be."""
        fields = current_fields(read_metadata(location))
        return view_of(self.namespace, table, self._folder(table), fields)

    def _delete_files(self, folder: str) -> None:
        """Delete the files of a view; in a folder that is not named for views, only those."""
        if self.alone:
            view_metadata.delete_all_view_files(folder)
        elif places.is_folder(folder):
            places.delete_folder(folder)

    def _folder(self, table: str) -> str:
        space = places.below(places.absolute(self.warehouse), self.namespace + SUFFIX)
        if self.alone:
            return places.below(space, table)
        of_catalog = sha256(self.catalog.place.encode()).hexdigest()[:8]
        return places.below(space, f"{table}__{of_catalog}")


def _is_of_infold(location: str) -> bool:
    """Whether a table is one that infold committed to, as far as it can be read."""
    try:
        snapshots = read_metadata(location).get("snapshots") or []
    except InfoldError:
        return False
    return any(STEP in (one.get("summary") or {}) for one in snapshots)


@dataclass(frozen=True, slots=True)
class SqlViews:
    """
    See ``CatalogViews``: all change in one transaction.

    Files come before it, so that a row never names a file that is not there; a death leaves files
    that nobody reads, and the next change deletes them.
    """

    catalog: SqlCatalog

    def check(self) -> None:
        """See ``CatalogViews``: infold's catalogs have the column that says what a row is."""

    def name(self, table: str) -> str:
        """The name of the table: the catalog keeps the case of letters."""
        return table

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: one query."""
        rows = self.catalog.rows(namespace)
        own = view_metadata.own_view_files({name: row.location for name, row in rows.items()})
        return FoundViews(own, [name for name in rows if name not in own])

    def others(self, namespace: str) -> Collection[str]:
        """All names but those of infold's views; one query."""
        return self.found(namespace).others

    def change(
        self,
        namespace: str,
        views: Mapping[str, View],
        gone: Collection[str],
        present: FoundViews,
    ) -> Collection[str]:
        """See ``Views``: all of it, or nothing where one name has moved meanwhile."""
        from infold.lake.iceberg.table_catalog import Row

        places = {name: view_metadata.write_view_file(view) for name, view in views.items()}
        known = {name: one.location for name, one in present.own.items()}
        rows = {name: Row(at, type="VIEW") for name, at in places.items()}
        before = {name: known.get(name) for name in (*views, *gone)}
        if self.catalog.change(namespace, before, dict.fromkeys(gone) | rows) is not None:
            return {*views, *gone}
        for name, view in views.items():
            view_metadata.delete_old_view_files(view, known.get(name))
        return ()
