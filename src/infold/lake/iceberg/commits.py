"""The commits of a table, as its metadata has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from infold.core.stored_table import History

STEP = "infold.step"
RUN = "infold.run"
REWRITE = "replace"
"""The operation of a snapshot that has the rows of its parent in other files."""


def main_branch(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """
    The snapshots of the main branch, newest first, as far back as they are kept.

    Snapshots of other branches and staged ones are in the metadata too; they are not ancestors.
    """
    by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots") or []}
    current = metadata.get("current-snapshot-id")
    while (snapshot := by_id.pop(current, None)) is not None:
        yield snapshot
        current = snapshot.get("parent-snapshot-id")


def foreign_snapshot(main: Sequence[Mapping[str, Any]]) -> int | None:
    """The newest snapshot after the last of ours that changed content."""
    for snapshot in main:
        summary = snapshot.get("summary", {})
        if STEP in summary or RUN in summary:
            return None
        if operation(snapshot) != REWRITE:
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
    kept = metadata.get("snapshots") or []
    main = list(main_branch(metadata))
    commits = takewhile(lambda entry: operation(entry) != REWRITE, main)
    grew = [may_add_files(snapshot) for snapshot in commits]
    return History(
        snapshots=len(kept),
        oldest_at=min((entry["timestamp-ms"] for entry in kept), default=0) * 1000,
        since_rewrite=len(grew),
        steady=grew.index(True) if True in grew else len(grew),
        main=tuple(entry["snapshot-id"] for entry in main),
    )
