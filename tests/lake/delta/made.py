"""Tables of Delta Lake like the engine's, made without an engine, some named in a metastore."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from infold.core.storages import Catalog, CatalogType
from infold.lake.delta.metastore import Metastore
from infold.lake.delta.tables import DeltaLake
from infold.lake.hive_client import HiveClient
from infold.lake.stores import places


@dataclass(frozen=True)
class Made:
    """A warehouse with the tables of ``shop``."""

    at: Path | str

    @property
    def warehouse(self) -> Path:
        """Its folder."""
        return Path(self.at)

    @property
    def lake(self) -> DeltaLake:
        """Its tables, read as infold does."""
        return DeltaLake(self.at, "shop")

    def folder(self, table: str) -> Path:
        """The folder of a table."""
        return Path(self.lake.folder(table))

    def write(
        self,
        table: str,
        rows: Mapping[str, list[Any]] | pa.Table,
        step: str | None,
        *,
        mode: Any = "append",
        **options: Any,
    ) -> int:
        """Commit rows, by a step of infold or by somebody else; the snapshot."""
        said = None
        if step is not None:
            own = json.dumps({"infold.step": step, "infold.run": "r"})
            said = CommitProperties(custom_metadata={"userMetadata": own})
        arrow = rows if isinstance(rows, pa.Table) else pa.table(dict(rows))
        folder, uri = self.folder(table), self.lake.folder(table)
        if not places.in_store(uri):
            folder.parent.mkdir(parents=True, exist_ok=True)
            uri = folder.as_uri()
        stored = dict(places.delta_options(self.lake.folder(table)))
        write_deltalake(
            uri, arrow, mode=mode, commit_properties=said, storage_options=stored, **options
        )
        log = self.lake.log(table)
        assert log is not None
        return log.snapshot(log.newest)

    def numbers(self, table: str) -> list[int]:
        """The column ``n`` of all rows now, in order."""
        return sorted(self.lake.rows(table, columns=["n"])["n"].to_pylist())

    def commit(self, table: str, *actions: Mapping[str, Any]) -> None:
        """A commit of these actions, as another program could make it."""
        log = self.lake.log(table)
        assert log is not None
        text = "\n".join(json.dumps(action) for action in actions)
        Path(log.file(log.newest + 1)).write_text(text, encoding="utf-8")


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
