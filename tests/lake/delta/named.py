"""Tables of Delta Lake with names in a metastore that is made up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.lake.delta.made import Made

from infold.core.catalogs import Catalog, CatalogType
from infold.lake.delta.metastore import Metastore
from infold.lake.delta.tables import DeltaLake
from infold.lake.hive_client import HiveClient

SPACE = "sales"
DECLARED = Catalog(CatalogType.HIVE, uri="thrift://hms:9083", namespace=SPACE)


@dataclass(frozen=True)
class Named(Made):
    """A warehouse whose tables have names in a metastore."""

    space: str = SPACE

    @property
    def lake(self) -> DeltaLake:
        """Its tables, as infold has them."""
        client = HiveClient(DECLARED, Path("/"), "catalog of target dev")
        return DeltaLake(self.at, "shop", Metastore(client, self.space))

    def make(self, *names: str) -> None:
        """Tables of infold's, with a row each."""
        for number, name in enumerate(names):
            self.write(name, {"n": [number]}, f"r1-{number}")

    def at_folder(self, name: str) -> str:
        """What an entry for a table has to say."""
        return f"file:{self.folder(name)}"
