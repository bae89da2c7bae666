"""
What a view for readers says: the columns of a table but infold's own.

It is metadata by Iceberg's specification of views. It has its query twice, for Spark and for Trino,
as each reads its own only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol
from uuid import NAMESPACE_URL, uuid5

from infold.core.own_columns import is_own
from infold.lake.iceberg.sql_catalog import NAME
from infold.lake.stores import places
from infold.lake.views import FoundView, Views

_FIELD = ("id", "name", "required", "type", "doc")
"""What a view says of a column; where a table has more, it is about its files."""


@dataclass(frozen=True)
class View:
    """
    A view as it is to be, in a folder.

    ``metadata`` has no times: so its digest follows from what the view says, and from nothing else.
    """

    folder: str
    metadata: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """By which it is known whether a view that is there is this one."""
        return sha256(json.dumps(self.metadata, sort_keys=True).encode()).hexdigest()[:32]

    def dated(self) -> Mapping[str, Any]:
        """The metadata with the time at which the view came to be so: now."""
        stamp = {"timestamp-ms": time.time_ns() // 1_000_000}
        return {
            **self.metadata,
            "versions": [{**one, **stamp} for one in self.metadata["versions"]],
            "version-log": [{**one, **stamp} for one in self.metadata["version-log"]],
        }


def view_of(namespace: str, table: str, folder: str, fields: Sequence[Mapping[str, Any]]) -> View:
    """The view of a table with these columns, in a folder of its own."""
    shown = [one for one in fields if not is_own(one["name"])]
    columns = [{key: one[key] for key in _FIELD if key in one} for one in shown]
    names = [one["name"] for one in shown]
    queries = {"spark": "`", "trino": '"'}
    metadata = {
        "view-uuid": str(uuid5(NAMESPACE_URL, folder)),
        "format-version": 1,
        "location": folder,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": columns}],
        "current-version-id": 1,
        "versions": [
            {
                "version-id": 1,
                "schema-id": 0,
                "summary": {"engine-name": "infold"},
                # Trino resolves no name without a catalog; Spark's has this name as well.
                "default-catalog": NAME,
                "default-namespace": [namespace],
                "representations": [
                    {
                        "type": "sql",
                        "dialect": dialect,
                        "sql": _query(names, namespace, table, quote),
                    }
                    for dialect, quote in queries.items()
                ],
            }
        ],
        "version-log": [{"version-id": 1}],
        "properties": {"comment": f"{namespace}.{table} without technical columns, by infold"},
    }
    return View(folder, metadata)


def _query(columns: Sequence[str], namespace: str, table: str, quote: str) -> str:
    def quoted(name: str) -> str:
        return quote + name.replace(quote, quote * 2) + quote

    return f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(namespace)}.{quoted(table)}"


class CatalogViews(Views[View], Protocol):
    """The views of a catalog, all of one namespace at a time."""

    def check(self) -> None:
        """Raise ``catalog_errors.without_views`` where there can be none."""

    def name(self, table: str) -> str:
        """What the catalog calls the view of a table."""

    def others(self, namespace: str) -> Collection[str]:
        """The names of the tables there, and maybe of views that infold did not make."""


# The name of a file follows from what the view says. So whether a view is right, and whether infold
# made it, is seen by the catalog's entry alone.

_OWN, _END = "00000-infold-", ".metadata.json"
"""Around the digest, in the names of files that infold made."""


def file_of(view: View) -> str:
    """Where the metadata file of a view is to be."""
    return places.below(view.folder, "metadata", f"{_OWN}{view.digest}{_END}")


def digest_of(location: str) -> str | None:
    """The digest of the view with this metadata file; None if infold did not make it."""
    name = location.rpartition("/")[2]
    return name.removeprefix(_OWN).removesuffix(_END) if name.startswith(_OWN) else None


def own_view_files(locations: Mapping[str, str]) -> Mapping[str, FoundView]:
    """Those of the entries of a catalog, by their names, that are views that infold made."""
    digests = {name: digest_of(location) for name, location in locations.items()}
    return {
        name: FoundView(digest, locations[name])
        for name, digest in digests.items()
        if digest is not None
    }


def write_view_file(view: View) -> str:
    """Write the metadata file of a view; where it is."""
    location = file_of(view)
    places.make_folder(location.rpartition("/")[0])
    places.write(location, json.dumps(view.dated()).encode())
    return location


def delete_old_view_files(view: View, before: str | None) -> None:
    """
    Delete files of what a view was earlier, but for the last: a reader may be about to open it.

    Whoever died before the catalog named its file left one, which goes as well.
    """
    current = file_of(view)
    folder = current.rpartition("/")[0]
    keep = {current.rpartition("/")[2], (before or "").rpartition("/")[2]}
    old = [name for name in places.names(folder) if name.startswith(_OWN) and name not in keep]
    if old:
        places.delete(*(places.below(folder, name) for name in old))


def delete_all_view_files(folder: str) -> None:
    """Delete what infold wrote for the view in a folder; the folder too if that was all."""
    inside = places.below(folder, "metadata")
    own = [name for name in places.names(inside) if name.startswith(_OWN)]
    if own:
        places.delete(*(places.below(inside, name) for name in own))
    for left in (inside, folder):
        if places.is_folder(left) and not places.names(left):
            places.delete_folder(left)
