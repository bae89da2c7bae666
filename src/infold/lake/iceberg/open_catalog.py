"""The catalog of a target or a source, as infold.yml declares it, opened without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.project import Project
from infold.core.storages import Catalog, CatalogType
from infold.lake.iceberg.sql_catalog import SqlCatalog, SqliteDatabase, sqlite_catalog
from infold.lake.stores import places
from infold.messages import mismatches

if TYPE_CHECKING:
    from infold.lake.iceberg.table_catalog import Key, TableCatalog


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


# Iceberg's tables name their files by full paths. So the catalog of the copy still names the files
# of the original, and both would commit there and delete what the other one needs.


@dataclass(frozen=True, slots=True)
class CatalogInWarehouse(SqlCatalog):
    """The tables of a catalog that lies in the warehouse; those of ``namespace`` lie there too."""

    warehouse: str = ""
    namespace: str = ""

    def find(self, tables: Iterable[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``. Raises ``mismatches.copied_warehouse``."""
        # Written out: a class with slots is made anew, and super() knows the one before it.
        locations = SqlCatalog.find(self, {*tables})
        for (namespace, _), at in locations.items():
            if namespace == self.namespace and (other := self._other_warehouse(at)):
                raise mismatches.copied_warehouse(warehouse=self.warehouse, files=other)
        return locations

    def _other_warehouse(self, location: str) -> str | None:
        """The warehouse that metadata lies in, if it is another one; None for a place in none."""
        if location.removeprefix("file:").startswith(f"{self.warehouse}/"):
            return None
        if places.is_inside(location, self.warehouse):
            return None
        folder = Path(places.folder_of(location))
        other = folder.parent.parent
        # What others registered has no such folder, and is told otherwise.
        if folder.parent.name != self.namespace or _is_same(other, self.warehouse):
            return None
        return str(other)


def _is_same(folder: Path, warehouse: str) -> bool:
    """Whether both are one folder: a mount, or a disk that takes capital letters for small ones."""
    try:
        return folder.samefile(warehouse)
    except OSError:
        return False
