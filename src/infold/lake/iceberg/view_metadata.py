"""
What a view for readers says: the columns of a table but infold's own.

It is metadata by Iceberg's specification of views. It has its query twice, for Spark and for Trino,
as each reads its own only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from infold.core.own_columns import is_own
from infold.lake.iceberg.sql_catalog import NAME

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
        now = {"timestamp-ms": time.time_ns() // 1_000_000}
        return {
            **self.metadata,
            "versions": [{**one, **now} for one in self.metadata["versions"]],
            "version-log": [{**one, **now} for one in self.metadata["version-log"]],
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
