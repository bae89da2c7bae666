"""The commits of a table, as its metadata has them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from infold.core.ports import History
from infold.lake.iceberg.metadata_file import read_metadata
from infold.lake.stores import places
from infold.messages.errors import InfoldError

STEP = "infold.step"
RUN = "infold.run"
REWRITE = "replace"
"""The operation of a snapshot that has the rows of its parent in other files."""


def main_branch(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """
    The snapshots of the main branch, newest first, as far back as they are kept.

    Snapshots of other branches and staged ones are in the metadata too; they are not ancestors.
    """
    return _ancestors(metadata, metadata.get("current-snapshot-id"))


def _ancestors(metadata: Mapping[str, Any], newest: Any) -> Iterator[Mapping[str, Any]]:
    """A snapshot and those that it was made from, newest first, as far back as they are kept."""
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots") or []}
    while (snapshot := by_id.pop(newest, None)) is not None:
        yield snapshot
        newest = snapshot.get("parent-snapshot-id")


def known_history(
    metadata: Mapping[str, Any], read: Callable[[str], Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """
    The main branch, newest first, at least back to the last commit of infold's, if that is known.

    Where others wrote after it and had old snapshots expire, earlier metadata files still have
    them: a table names its last ones. ``read`` reads one and raises ``metadata_missing``.
    """
    history = list(main_branch(metadata))
    for entry in reversed(metadata.get("metadata-log") or []):
        parent = history[-1].get("parent-snapshot-id") if history else None
        if parent is None or any(map(is_ours, history)):
            break
        try:
            history.extend(_ancestors(read(entry["metadata-file"]), parent))
        except InfoldError:  # it was deleted, and so were those before it
            break
    return history


def kept_with_rows_of(
    snapshot: int, metadata: Mapping[str, Any], known: Sequence[Mapping[str, Any]]
) -> int | None:
    """
    The oldest kept snapshot, if it has the rows of one that is expired; else None.

    Others put its rows into other files, and had it expire. ``known``: see :func:`known_history`.
    """
    kept_count = len([*main_branch(metadata)])
    newest = sum(1 for _ in takewhile(lambda entry: operation(entry) == REWRITE, known))
    if not 0 < kept_count <= newest < len(known) or known[newest]["snapshot-id"] != snapshot:
        return None
    return int(known[kept_count - 1]["snapshot-id"])


def is_ours(snapshot: Mapping[str, Any]) -> bool:
    """Whether infold made a snapshot."""
    summary = snapshot.get("summary", {})
    return STEP in summary or RUN in summary


def foreign_snapshot(main: Iterable[Mapping[str, Any]]) -> int | None:
    """
    The newest snapshot of a history that changed content and is not infold's.

    It may lie below one of infold's: it came while a step was at work, and what the step committed
    on top of it has its rows as well.
    """
    for snapshot in main:
        if not is_ours(snapshot) and operation(snapshot) != REWRITE:
            return int(snapshot["snapshot-id"])
    return None


def operation(snapshot: Mapping[str, Any]) -> str:
    """What a commit did, in Iceberg's words."""
    return str(snapshot.get("summary", {}).get("operation", ""))


def may_add_files(snapshot: Mapping[str, Any]) -> bool:
    """Whether some partition may have more files, of data or of deletes, by this commit."""
    summary = snapshot.get("summary", {})

    def count(name: str) -> int:
        return int(summary.get(name, 0))

    data, deletes = count("added-data-files"), count("added-delete-files")
    if summary.get("changed-partition-count") != "1":  # which of them lost files is unknown
        return "changed-partition-count" not in summary or data + deletes > 0
    return data > count("deleted-data-files") or deletes > count("removed-delete-files")


def history_of(metadata: Mapping[str, Any]) -> History:
    """What has gathered in a table's metadata."""
    snapshots = metadata.get("snapshots") or []
    main = list(main_branch(metadata))
    commits = takewhile(lambda entry: operation(entry) != REWRITE, main)
    grew = [may_add_files(snapshot) for snapshot in commits]
    return History(
        snapshots=len(snapshots),
        oldest_at=min((entry["timestamp-ms"] for entry in snapshots), default=0) * 1000,
        since_rewrite=len(grew),
        steady=grew.index(True) if True in grew else len(grew),
        main=tuple(entry["snapshot-id"] for entry in main),
    )


# It is what Iceberg's `rollback_to_snapshot` does: the main branch points to the earlier snapshot,
# and later ones stay in the metadata until they expire. The columns stay too, so only a snapshot
# with the present ones is taken. A table that was replaced as a whole has no snapshot before that
# in its main branch.
#
# A catalog in a database is given a new metadata file, a server is asked for the change. Both only
# if nobody committed since. A death before that leaves a file that nothing names.


def is_version_kept(metadata: Mapping[str, Any], snapshot: int) -> bool:
    """Whether a snapshot is in a table's main branch, with the columns that the table has now."""
    entry = next((one for one in main_branch(metadata) if one["snapshot-id"] == snapshot), None)
    return entry is not None and entry.get("schema-id") == metadata.get("current-schema-id")


def metadata_file_of(location: str, snapshot: int) -> str:
    """Where a new metadata file is, by which a table has the rows of ``snapshot`` again."""
    folder, _, old = location.rpartition("/")
    number = old.partition("-")[0]
    following = f"{int(number) + 1:05}" if number.isdigit() else "00000"
    new = f"{folder}/{following}-{uuid4()}.metadata.json"
    metadata = read_metadata(location)
    now_ms = max(time.time_ns() // 1_000_000, metadata.get("last-updated-ms", 0))
    places.write(new, json.dumps(_set_back(metadata, location, snapshot, now_ms)).encode())
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
    metadata: Mapping[str, Any], location: str, snapshot: int, now_ms: int
) -> dict[str, Any]:
    """The metadata with another newest snapshot; all else stays, but for its own history."""
    before = {"metadata-file": location, "timestamp-ms": metadata.get("last-updated-ms", now_ms)}
    return {
        **metadata,
        "current-snapshot-id": snapshot,
        "refs": {**(metadata.get("refs") or {}), "main": _main(metadata, snapshot)},
        "last-updated-ms": now_ms,
        "snapshot-log": [
            *(metadata.get("snapshot-log") or []),
            {"snapshot-id": snapshot, "timestamp-ms": now_ms},
        ],
        "metadata-log": [*(metadata.get("metadata-log") or []), before],
    }
