"""The catalog of a target, as infold.yml declares it, opened without a JVM."""

from __future__ import annotations

from infold.core.catalogs import CatalogType
from infold.core.project import Project
from infold.lake.iceberg.copied_warehouse import CatalogInWarehouse
from infold.lake.iceberg.sqlite_catalog import SqliteDatabase, sqlite_catalog
from infold.lake.iceberg.table_catalog import TableCatalog


def open_catalog(project: Project) -> TableCatalog:
    """The target's catalog. Nothing is connected to before it is needed, and nothing made."""
    declared, key = project.target.catalog, f"catalog of target {project.target.name}"
    if declared.type is CatalogType.JDBC:
        from infold.lake.iceberg.jdbc_catalog import jdbc_catalog

        return jdbc_catalog(declared.uri, project.root, key)
    if declared.type is CatalogType.REST:
        from infold.lake.iceberg.rest_catalog import rest_catalog

        return rest_catalog(declared, project.root, key)
    file, warehouse = project.catalog_db, project.warehouse
    if not project.target.in_store and file.parent == warehouse:
        return CatalogInWarehouse(SqliteDatabase(file), warehouse=str(warehouse))
    return sqlite_catalog(file)
