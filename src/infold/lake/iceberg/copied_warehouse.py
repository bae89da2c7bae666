"""
A warehouse that was copied, or moved, with the catalog that lies in it.

Iceberg's tables name their files by full paths. So the catalog of the copy still names the files of
the original, and both would commit there and delete what the other one needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infold.lake.iceberg.sql_catalog import SqlCatalog
from infold.lake.iceberg.table_catalog import Key
from infold.lake.stores import places
from infold.messages import mismatches


@dataclass(frozen=True, slots=True)
class CatalogInWarehouse(SqlCatalog):
    """The tables of a catalog that lies in the warehouse, of which none is in another one."""

    warehouse: str = ""

    def find(self, tables: Iterable[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``. Raises ``mismatches.copied_warehouse``."""
        # Written out: a class with slots is made anew, and super() knows the one before it.
        found = SqlCatalog.find(self, {*tables})
        inside = f"{self.warehouse}/"
        for (namespace, _), at in found.items():
            if at.removeprefix("file:").startswith(inside) or places.is_inside(at, self.warehouse):
                continue
            folder = Path(places.folder_of(at))
            # What others registered has no such folder, and is told otherwise.
            if folder.parent.name == namespace:
                raise mismatches.copied_warehouse(
                    warehouse=self.warehouse, files=str(folder.parent.parent)
                )
        return found
