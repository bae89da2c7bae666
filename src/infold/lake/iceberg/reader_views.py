"""
Views of Iceberg for those who read tables: each with the columns of a table but infold's own.

The views of a namespace ``shop`` are in ``shop_views``, by the names of its tables. A view is a
metadata file and a row of the catalog, as Iceberg's own JDBC catalog writes them: no engine is
needed to make one. It has its query twice, for Spark and for Trino, as each reads its own only.

The name of the metadata file follows from what the view says. So whether a view is right is seen by
its row alone, and what anybody else made in that namespace is told apart and left alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from infold.core.own_columns import is_own
from infold.lake.iceberg.column_types import current_fields
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.iceberg.sql_catalog import NAME, SqlCatalog, Statements, TakenError
from infold.lake.stores import places
from infold.messages import run_errors
from infold.messages.errors import InfoldError

SUFFIX = "_views"
"""After the name of a namespace: that of the views of its tables."""

_OWN = "00000-infold-"
"""What the names of metadata files begin with that infold made for views."""

_FIELD = ("id", "name", "required", "type", "doc")
"""What a view says of a column; where a table has more, it is about its files."""


@dataclass(frozen=True, slots=True)
class _View:
    """A view as it is to be: where its metadata is, and what it says."""

    location: str
    metadata: Mapping[str, Any]


def refresh_views(
    catalog: SqlCatalog,
    namespace: str,
    warehouse: str,
    tables: Collection[str],
    *,
    only_new: bool,
) -> Sequence[str]:
    """
    Have exactly the views of some tables, as far as these are there; names that were taken.

    With ``only_new``, views that are there already are taken for right: no file is read for them.

    All change in one transaction. Files come before it, so that a row never names a file that is
    not there; a death leaves files that nobody reads, and the next call deletes them.
    """
    space = namespace + SUFFIX
    rows = catalog.rows(space)
    own = {name: row.location for name, row in rows.items() if _is_own(row.location)}
    there = catalog.rows(namespace) if tables else {}
    names = sorted(there.keys() & {*tables})
    taken = [name for name in names if name in rows and name not in own]
    gone = [name for name in own if name not in names]
    folder = places.below(places.absolute(warehouse), space)
    wanted: dict[str, _View] = {}
    for name in names:
        if name not in rows or (name in own and not only_new):
            view = _view(namespace, name, places.below(folder, name), there[name].location)
            if view is not None and own.get(name) != view.location:
                wanted[name] = view
    if not wanted and not gone:
        return taken
    for view in wanted.values():
        places.make_folder(view.location.rpartition("/")[0])
        places.write(view.location, json.dumps(_dated(view.metadata)).encode())
    with catalog.database.write(space) as statements:
        assert statements is not None  # there are tables, or views of them
        try:
            _change(statements, catalog, space, gone, wanted, own)
        except TakenError:  # somebody else has just made something there
            statements.undone = True
            return [*taken, *wanted]
    for name in gone:
        places.delete_folder(places.folder_of(own[name]))
    for name, view in wanted.items():
        _delete_old(view.location, own.get(name))
    return taken


def _change(
    statements: Statements,
    catalog: SqlCatalog,
    space: str,
    gone: Collection[str],
    wanted: Mapping[str, _View],
    own: Mapping[str, str],
) -> None:
    """Delete the rows of views that are gone or other ones now, and write those of the wanted."""
    for name in (*wanted, *gone):
        statements.change(
            f"DELETE FROM iceberg_tables WHERE {catalog.own}"
            " AND table_namespace = ? AND table_name = ? AND metadata_location = ?",
            (space, name, own.get(name, "")),
        )
    for name, view in wanted.items():
        statements.change(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
            " metadata_location, previous_metadata_location, iceberg_type)"
            " VALUES (?, ?, ?, ?, NULL, 'VIEW')",
            (NAME, space, name, view.location),
        )


def _view(namespace: str, table: str, folder: str, location: str) -> _View | None:
    """
    The view of the table with its metadata at ``location``, as it is to be in a folder.

    None for a table that nobody can read: who builds it says so, and its view stays as it was.
    """
    try:
        fields = current_fields(read_metadata(location))
    except InfoldError as error:
        if error.slug != run_errors.METADATA_MISSING:
            raise
        return None
    metadata = _metadata(namespace, table, folder, fields)
    digest = sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:32]
    return _View(places.below(folder, "metadata", f"{_OWN}{digest}.metadata.json"), metadata)


def _metadata(
    namespace: str, table: str, location: str, fields: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The metadata of a view by Iceberg's specification of views, but for its times."""
    shown = [one for one in fields if not is_own(one["name"])]
    columns = [{key: one[key] for key in _FIELD if key in one} for one in shown]
    names = [one["name"] for one in shown]
    return {
        "view-uuid": str(uuid5(NAMESPACE_URL, location)),
        "format-version": 1,
        "location": location,
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
                        "dialect": "spark",
                        "sql": _query(names, namespace, table, "`"),
                    },
                    {
                        "type": "sql",
                        "dialect": "trino",
                        "sql": _query(names, namespace, table, '"'),
                    },
                ],
            }
        ],
        "version-log": [{"version-id": 1}],
        "properties": {"comment": f"{namespace}.{table} without technical columns, by infold"},
    }


def _query(columns: Sequence[str], namespace: str, table: str, quote: str) -> str:
    def quoted(name: str) -> str:
        return quote + name.replace(quote, quote * 2) + quote

    return f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(namespace)}.{quoted(table)}"


def _dated(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same with the time at which the view came to be so."""
    now = {"timestamp-ms": time.time_ns() // 1_000_000}
    return {
        **metadata,
        "versions": [{**one, **now} for one in metadata["versions"]],
        "version-log": [{**one, **now} for one in metadata["version-log"]],
    }


def _is_own(location: str) -> bool:
    return location.rpartition("/")[2].startswith(_OWN)


def _delete_old(now: str, before: str | None) -> None:
    """Delete files of earlier views, but for the last: a reader may be about to open it."""
    folder = now.rpartition("/")[0]
    keep = {now.rpartition("/")[2], (before or "").rpartition("/")[2]}
    old = [name for name in places.names(folder) if name.startswith(_OWN) and name not in keep]
    if old:
        places.delete(*(places.below(folder, name) for name in old))
