"""
The catalog on a server of Iceberg's REST protocol.

The protocol gives one table at a time, and renames one at a time. So many tables are asked for side
by side, and renamed one after the other (``one_by_one``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from infold.core.catalogs import Catalog
from infold.core.swap import Renaming
from infold.lake.iceberg import table_catalog
from infold.lake.iceberg.commits import commit_of
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.iceberg.rest_client import RejectedError, RestClient
from infold.lake.iceberg.table_catalog import Key
from infold.lake.views import RefusedError

SIDE_BY_SIDE = 8
"""How many tables are asked for at the same time."""


def rest_catalog(declared: Catalog, root: Path, key: str) -> RestCatalog:
    """The catalog that a target declares; nothing is asked for yet."""
    known = (declared, root)
    if known not in _clients:
        _clients[known] = RestClient(declared, root, key)
    return RestCatalog(_clients[known])


_clients: dict[tuple[Catalog, Path], RestClient] = {}
"""The servers that this process knows."""


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """See ``TableCatalog``."""

    client: RestClient

    @property
    def at_once(self) -> bool:
        """The protocol renames one table at a time."""
        return False

    @property
    def place(self) -> str:
        """See ``TableCatalog``."""
        return self.client.place

    def find(self, tables: Collection[Key]) -> Mapping[Key, str]:
        """See ``TableCatalog``; each table as it is when it is asked for."""
        wanted = list(dict.fromkeys(tables))
        if len(wanted) < 3:
            found = list(map(self._location, wanted))
        else:
            with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(wanted))) as pool:
                found = list(pool.map(self._location, wanted))
        return {key: at for key, at in zip(wanted, found, strict=True) if at is not None}

    def locations(self, namespace: str) -> Mapping[str, str]:
        """See ``TableCatalog``."""
        found = self.find([(namespace, name) for name in self.names(namespace)])
        return {name: at for (_, name), at in found.items()}

    def names(self, namespace: str) -> Collection[str]:
        """See ``TableCatalog``."""
        found = self.client.get(f"namespaces/{self.client.namespace(namespace)}/tables") or {}
        return [str(one["name"]) for one in found.get("identifiers") or ()]

    def drop(self, namespace: str, names: Sequence[str]) -> None:
        """See ``TableCatalog``: one after the other."""
        for name in names:
            try:
                self.client.change(
                    "DELETE", f"{self._path((namespace, name))}?purgeRequested=false"
                )
            except RejectedError as error:
                if error.status != 404:
                    raise error.named from None

    def rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """See ``TableCatalog``."""
        return table_catalog.rename_one_by_one(self, namespace, renamings)

    def rename_one(self, namespace: str, table: str, to: str) -> None:
        """See ``RenamesOne``."""
        body = {
            "source": {"namespace": [namespace], "name": table},
            "destination": {"namespace": [namespace], "name": to},
        }
        try:
            self.client.change("POST", "tables/rename", body)
        except RejectedError as error:
            raise RefusedError(error.named) from None

    def set_back(self, table: Key, location: str, snapshot: int) -> bool:
        """See ``TableCatalog``: the server makes the metadata, if no commit came in between."""
        if self._location(table) != location:
            return False
        try:
            self.client.change(
                "POST", self._path(table), commit_of(read_metadata(location), snapshot)
            )
        except RejectedError:
            return False
        return True

    def finish_rename(self, namespace: str, renamings: Sequence[Renaming]) -> bool:
        """See ``TableCatalog``."""
        return table_catalog.finish_rename(self, namespace, renamings)

    def _location(self, table: Key) -> str | None:
        found = self.client.get(f"{self._path(table)}?snapshots=refs")
        at = (found or {}).get("metadata-location")
        return None if at is None else str(at)

    def _path(self, table: Key) -> str:
        namespace, name = table
        return f"namespaces/{self.client.namespace(namespace)}/tables/{quote(name, safe='')}"
