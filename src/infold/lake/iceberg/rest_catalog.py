"""
The catalog on a server of Iceberg's REST protocol.

The protocol gives one table at a time, and renames one at a time. So many tables are asked for side
by side, and an exchange of several takes several requests: whoever reads in between finds some
under their new names and some under their old ones. Intent and order are in the ledger, so one that
died in the middle is finished by the next command.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from infold.core import write_points
from infold.core.catalogs import Catalog
from infold.core.swap import Renaming
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.iceberg.rest_client import RejectedError, RestClient
from infold.lake.iceberg.set_back import commit_of
from infold.lake.iceberg.table_catalog import Key

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
        """See ``TableCatalog``: nothing is begun unless all tables are where they are expected."""
        found = self._of(namespace, renamings)
        if any(found.get(one.table) != one.location for one in renamings):
            return False
        leaving = {one.table for one in renamings}
        if any(one.to in found and one.to not in leaving for one in renamings):
            return False
        return self._rename_all(namespace, renamings, begun=False)

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
        """
        Whether renamings were begun; those that are left are done then.

        A table that somebody committed to meanwhile is renamed too: who looks at it next finds out.
        """
        found = self._of(namespace, renamings)
        if not any(_is_at(found.get(one.to), one) for one in renamings):
            return False
        left = [one for one in renamings if _is_at(found.get(one.table), one)]
        return self._rename_all(namespace, left, begun=True)

    def _rename_all(self, namespace: str, renamings: Iterable[Renaming], *, begun: bool) -> bool:
        """
        One after the other; a name that another one has to leave first comes after that.

        False where the server refuses before any was renamed, because somebody else was quicker.
        """
        left = list(renamings)
        while left:
            taken = {one.table for one in left}
            one = next((one for one in left if one.to not in taken), left[0])
            write_points.point(f"rename {one.table}: before")
            body = {
                "source": {"namespace": [namespace], "name": one.table},
                "destination": {"namespace": [namespace], "name": one.to},
            }
            try:
                self.client.change("POST", "tables/rename", body)
            except RejectedError as error:
                if begun:
                    raise error.named from None
                return False
            begun = True
            write_points.point(f"rename {one.table}: after")
            left.remove(one)
        return True

    def _of(self, namespace: str, renamings: Sequence[Renaming]) -> Mapping[str, str]:
        names = {name for one in renamings for name in (one.table, one.to)}
        found = self.find([(namespace, name) for name in sorted(names)])
        return {name: at for (_, name), at in found.items()}

    def _location(self, table: Key) -> str | None:
        found = self.client.get(f"{self._path(table)}?snapshots=refs")
        at = (found or {}).get("metadata-location")
        return None if at is None else str(at)

    def _path(self, table: Key) -> str:
        namespace, name = table
        return f"namespaces/{self.client.namespace(namespace)}/tables/{quote(name, safe='')}"


def _is_at(location: str | None, one: Renaming) -> bool:
    """
    Whether metadata is of the table that is renamed, also after a commit to it.

    A commit writes its metadata beside that of before, and no two tables have one folder.
    """
    return location is not None and location.rpartition("/")[0] == one.location.rpartition("/")[0]
