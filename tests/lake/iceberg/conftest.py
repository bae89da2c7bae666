"""Tables of Iceberg that pyiceberg writes, as another program does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table


@dataclass(frozen=True)
class Warehouse:
    """A folder with tables of ``shop``, and a catalog of the engine's name."""

    folder: Path
    scheme: str = ""

    @cached_property
    def catalog(self) -> SqlCatalog:
        """As the other program has it."""
        from pyiceberg.catalog.sql import SqlCatalog

        at = f"sqlite:///{self.folder / 'catalog.db'}"
        made = SqlCatalog("infold", uri=at, warehouse=f"{self.scheme}{self.folder}")
        made.create_namespace("shop")
        return made

    @cached_property
    def lake(self) -> IcebergLake:
        """As infold sees it."""
        return IcebergLake(sqlite_catalog(self.folder / "catalog.db"), "shop", self.folder)

    def write(self, name: str, *parts: pa.Table, schema: pa.Schema | None = None) -> Table:
        """A table with a commit for each part of its rows."""
        table = self.catalog.create_table(f"shop.{name}", schema=schema or parts[0].schema)
        for part in parts:
            table.append(part)
        return table

    def snapshots(self, name: str) -> list[int]:
        """The snapshots of a table, the first one first."""
        return [entry.snapshot_id for entry in self.catalog.load_table(f"shop.{name}").history()]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One for the tests of a module."""
    return Warehouse(tmp_path_factory.mktemp("warehouse"))
