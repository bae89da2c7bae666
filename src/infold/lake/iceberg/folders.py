"""
The folder of each table, and which folders may be deleted.

Several catalogs may have tables in one warehouse, and none of them knows those of the others. So a
new table gets a folder that nobody else names, and only a folder is deleted that the catalog, or a
step of the ledger, named as the table's.

Only the catalog in a file of the warehouse itself puts tables into folders without a suffix, where
none is yet. Its own renamed table may still lie in one, or that of another catalog: earlier
versions put those there, too. So a folder that nobody named is deleted only without a table's
metadata. What a death leaves with metadata stays, unless a step of the ledger knows the place:
files that nobody deletes are better than another's that are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from infold.core import write_points
from infold.lake.iceberg.table_catalog import TableCatalog
from infold.lake.stores import places

METADATA = ".metadata.json"
"""In the name of each metadata file, packed or not."""


@dataclass(frozen=True, slots=True)
class Folders:
    """
    The folders of the tables of a namespace, in a warehouse; in none, nothing is made or deleted.

    ``alone``: the catalog is the one that lies in the warehouse.
    """

    catalog: TableCatalog
    namespace: str
    warehouse: str | None
    alone: bool = False

    def for_new(self, table: str) -> str | None:
        """The folder for a table that is made."""
        if self.warehouse is None:
            return None
        usual = places.below(places.absolute(self.warehouse), self.namespace, table)
        if self.alone and not self._holds_table(usual) and not places.is_folder(usual):
            return usual
        return f"{usual}__{uuid4().hex[:8]}"

    def delete_of(self, location: str) -> None:
        """Delete the folder of the table whose metadata was there; see :meth:`delete`."""
        self.delete(places.folder_of(location))

    def delete_left(self, namespace: str, table: str) -> None:
        """Delete what a table left in the usual folder, where no other catalog's can be."""
        if not self.alone or self.warehouse is None:
            return
        usual = places.below(self.warehouse, namespace, table)
        if not any(METADATA in name for name in places.names(places.below(usual, "metadata"))):
            self.delete(usual)

    def delete(self, folder: str) -> None:
        """Delete a folder of the namespace, if it is there and no table lies in it."""
        if self.warehouse is None:
            return
        if not places.is_inside(folder, places.below(self.warehouse, self.namespace)):
            return
        if places.is_folder(folder) and not self._holds_table(folder):
            places.delete_folder(folder)
            write_points.point(f"delete {folder.rpartition('/')[2]}: after")

    def holds(self, location: str) -> bool:
        """Whether metadata lies where tables of the namespace do."""
        if self.warehouse is None:
            return True
        return places.is_inside(location, places.below(self.warehouse, self.namespace))

    def is_free(self, namespace: str, name: str) -> bool:
        """Whether no table has a name, in any case, and no files are where one would be."""
        known = set(self.catalog.names(namespace))
        if self.warehouse is not None:
            known |= set(places.names(places.below(self.warehouse, namespace)))
        return name.lower() not in {one.lower() for one in known}

    def _holds_table(self, folder: str) -> bool:
        """Whether the metadata of a table is somewhere in a folder."""
        found = self.catalog.locations(self.namespace).values()
        return any(places.is_inside(at, folder) for at in found)
