"""
Sets a table back to an earlier snapshot, without an engine.

It is what Iceberg's ``rollback_to_snapshot`` does: the main branch points to the earlier snapshot,
and later ones stay in the metadata until they expire. The columns stay too, so only a snapshot with
the present ones is taken. A table that was replaced as a whole has no snapshot before that in its
main branch.

A catalog in a database is given a new metadata file, a server is asked for the change. Both only if
nobody committed since. A death before that leaves a file that nothing names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from infold.lake.iceberg.commits import main_branch
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.stores import places


def is_version_kept(metadata: Mapping[str, Any], snapshot: int) -> bool:
    """Whether a snapshot is in a table's main branch, with the columns that the table has now."""
    found = next((one for one in main_branch(metadata) if one["snapshot-id"] == snapshot), None)
    return found is not None and found.get("schema-id") == metadata.get("current-schema-id")


def metadata_file_of(location: str, snapshot: int) -> str:
    """Where a new metadata file is, by which a table has the rows of ``snapshot`` again."""
    folder, _, old = location.rpartition("/")
    number = old.partition("-")[0]
    following = f"{int(number) + 1:05}" if number.isdigit() else "00000"
    new = f"{folder}/{following}-{uuid4()}.metadata.json"
    metadata = read_metadata(location)
    now = max(time.time_ns() // 1_000_000, metadata.get("last-updated-ms", 0))
    places.write(new, json.dumps(_set_back(metadata, location, snapshot, now)).encode())
    return new


def commit_of(metadata: Mapping[str, Any], snapshot: int) -> Mapping[str, Any]:
    """The same as a request to a server of Iceberg's REST protocol."""
    main = _main(metadata, snapshot)
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {
                "type": "assert-ref-snapshot-id",
                "ref": "main",
                "snapshot-id": metadata["current-snapshot-id"],
            },
        ],
        "updates": [{"action": "set-snapshot-ref", "ref-name": "main", **main}],
    }


def _main(metadata: Mapping[str, Any], snapshot: int) -> dict[str, Any]:
    """The main branch at another snapshot."""
    refs = metadata.get("refs") or {}
    return {**refs.get("main", {"type": "branch"}), "snapshot-id": snapshot}


def _set_back(
    metadata: Mapping[str, Any], location: str, snapshot: int, now: int
) -> dict[str, Any]:
    """The metadata with another newest snapshot; all else stays, but for its own history."""
    before = {"metadata-file": location, "timestamp-ms": metadata.get("last-updated-ms", now)}
    return {
        **metadata,
        "current-snapshot-id": snapshot,
        "refs": {**(metadata.get("refs") or {}), "main": _main(metadata, snapshot)},
        "last-updated-ms": now,
        "snapshot-log": [
            *(metadata.get("snapshot-log") or []),
            {"snapshot-id": snapshot, "timestamp-ms": now},
        ],
        "metadata-log": [*(metadata.get("metadata-log") or []), before],
    }
