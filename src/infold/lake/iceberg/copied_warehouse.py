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
    """The tables of a catalog that lies in the warehouse; those of ``namespace`` lie there too."""

    warehouse: str = ""
    namespace: str = ""

    def find(self, tables: Iterable[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``. Raises ``mismatches.copied_warehouse``."""
        # Written out: a class with slots is made anew, and super() knows the one before it.
        found = SqlCatalog.find(self, {*tables})
        for (namespace, _), at in found.items():
            if namespace == self.namespace and (other := self._other_warehouse(at)):
                raise mismatches.copied_warehouse(warehouse=self.warehouse, files=other)
        return found

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
