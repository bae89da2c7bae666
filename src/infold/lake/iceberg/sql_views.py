"""Views in a database: rows beside those of tables, as Iceberg's own JDBC catalog writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from infold.lake.iceberg import view_files
from infold.lake.iceberg.sql_catalog import NAME, SqlCatalog, Statements, TakenError
from infold.lake.iceberg.view_metadata import View
from infold.lake.views import FoundViews


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
        """See ``CatalogViews``."""
        return table

    def found(self, namespace: str) -> FoundViews:
        """See ``Views``: one query."""
        rows = self.catalog.rows(namespace)
        own = view_files.own_view_files({name: row.location for name, row in rows.items()})
        return FoundViews(own, [name for name in rows if name not in own])

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
        """See ``Views``."""
        places = {name: view_files.write_view_file(view) for name, view in wanted.items()}
        before = {name: one.location for name, one in found.own.items()}
        with self.catalog.database.write(namespace) as statements:
            assert statements is not None  # there are tables, or views of them
            try:
                self._change(statements, namespace, gone, places, before)
            except TakenError:
                statements.undone = True
                return {*wanted, *gone}
        for name, view in wanted.items():
            view_files.delete_old_view_files(view, before.get(name))
        return ()

    def _change(
        self,
        statements: Statements,
        namespace: str,
        gone: Collection[str],
        wanted: Mapping[str, str],
        before: Mapping[str, str],
    ) -> None:
        """Delete the rows of views that are gone or other ones now; write those of the wanted."""
        for name in (*wanted, *gone):
            statements.change(
                f"DELETE FROM iceberg_tables WHERE {self.catalog.own}"
                " AND table_namespace = ? AND table_name = ? AND metadata_location = ?",
                (namespace, name, before.get(name, "")),
            )
        for name, location in wanted.items():
            statements.change(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                " metadata_location, previous_metadata_location, iceberg_type)"
                " VALUES (?, ?, ?, ?, NULL, 'VIEW')",
                (NAME, namespace, name, location),
            )
