"""The catalog of a target or a source, as infold.yml declares it, opened without a JVM."""

from __future__ import annotations

from pathlib import Path

from infold.core.catalogs import Catalog, CatalogType
from infold.core.project import Project
from infold.lake.iceberg.copied_warehouse import CatalogInWarehouse
from infold.lake.iceberg.sqlite_catalog import SqliteDatabase, sqlite_catalog
from infold.lake.iceberg.table_catalog import TableCatalog


def open_catalog(project: Project) -> TableCatalog:
    """The target's catalog. Nothing is connected to before it is needed, and nothing made."""
    declared = project.target.catalog
    if declared.type is not CatalogType.SQLITE:
        return open_server(declared, project.root, f"catalog of target {project.target.name}")
    file = project.catalog_db
    if not project.target.in_store and file.parent == project.warehouse:
        return CatalogInWarehouse(
            SqliteDatabase(file), warehouse=str(project.warehouse), namespace=project.namespace
        )
    return sqlite_catalog(file)


def open_server(declared: Catalog, root: Path, key: str) -> TableCatalog:
    """A catalog that is no file, of a target or a source; ``key`` is what errors call it."""
    if declared.type is CatalogType.JDBC:
        from infold.lake.iceberg.jdbc_catalog import jdbc_catalog

        return jdbc_catalog(declared.uri, root, key)
    if declared.type is CatalogType.REST:
        from infold.lake.iceberg.rest_catalog import rest_catalog

        return rest_catalog(declared, root, key)
    from infold.lake.iceberg.hive_catalog import hive_catalog

    return hive_catalog(declared, root, key)
