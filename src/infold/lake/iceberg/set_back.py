"""
Sets a table back to an earlier snapshot, without an engine: a new metadata file, and one row.

It is what Iceberg's ``rollback_to_snapshot`` does: the main branch points to the earlier snapshot,
and later ones stay in the metadata until they expire. The columns stay too, so only a snapshot with
the present ones is taken. A table that was replaced as a whole has no snapshot before that in its
main branch.

The row of the catalog is changed only if it still names the metadata that was read, as an engine's
commit does it. A death before that leaves a file that nothing names.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from infold.core import write_points
from infold.lake.iceberg import catalog
from infold.lake.iceberg.history import main_branch
from infold.messages import run_errors


def is_kept(metadata: Mapping[str, Any], snapshot: int) -> bool:
    """Whether a snapshot is in a table's main branch, with the columns that the table has now."""
    found = next((one for one in main_branch(metadata) if one["snapshot-id"] == snapshot), None)
    return found is not None and found.get("schema-id") == metadata.get("current-schema-id")


def set_back(catalog_db: Path, namespace: str, name: str, location: str, snapshot: int) -> None:
    """Let the table with its metadata at ``location`` have the rows of ``snapshot`` again."""
    metadata = catalog.metadata(location)
    if not is_kept(metadata, snapshot):
        raise ValueError(f"{name} has no snapshot {snapshot} to be set back to")
    folder, _, old = location.rpartition("/")
    number = old.partition("-")[0]
    following = f"{int(number) + 1:05}" if number.isdigit() else "00000"
    new = f"{folder}/{following}-{uuid4()}.metadata.json"
    part = catalog.local_path(f"{folder}/.{new.rpartition('/')[2]}.part")
    now = max(time.time_ns() // 1_000_000, metadata.get("last-updated-ms", 0))
    part.write_text(json.dumps(_set_back(metadata, location, snapshot, now)), encoding="utf-8")
    part.replace(catalog.local_path(new))
    write_points.point(f"set back {name}: before")
    try:
        with (
            closing(sqlite3.connect(catalog_db, timeout=catalog.BUSY_SECONDS)) as connection,
            connection,
        ):
            found = connection.execute(
                "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
                " WHERE table_namespace = ? AND table_name = ? AND metadata_location = ?",
                (new, location, namespace, name, location),
            )
            if found.rowcount != 1:
                raise run_errors.foreign_write(name, None)
    except sqlite3.DatabaseError as error:
        raise run_errors.catalog_unreadable(path=str(catalog_db), why=str(error)) from error
    write_points.point(f"set back {name}: after")


def _set_back(
    metadata: Mapping[str, Any], location: str, snapshot: int, now: int
) -> dict[str, Any]:
    """The metadata with another newest snapshot; all else stays, but for its own history."""
    refs = {**(metadata.get("refs") or {})}
    refs["main"] = {**refs.get("main", {"type": "branch"}), "snapshot-id": snapshot}
    before = {"metadata-file": location, "timestamp-ms": metadata.get("last-updated-ms", now)}
    return {
        **metadata,
        "current-snapshot-id": snapshot,
        "refs": refs,
        "last-updated-ms": now,
        "snapshot-log": [
            *(metadata.get("snapshot-log") or []),
            {"snapshot-id": snapshot, "timestamp-ms": now},
        ],
        "metadata-log": [*(metadata.get("metadata-log") or []), before],
    }
