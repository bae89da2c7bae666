"""The metadata file of a table, read without an Iceberg library, and what commits say."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from infold.core.interval import DAY, HOUR, Granularity, Interval, parse_instant_text
from infold.core.ports import History
from infold.core.type_changes import Type
from infold.lake.stores import places
from infold.messages import run_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table. Raises ``metadata_missing`` where it cannot be read."""
    try:
        raw = places.read(location)
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        metadata = json.loads(raw)
        if not isinstance(metadata, dict):
            raise TypeError("it is no JSON object")
    except OSError as error:
        why = error.strerror or str(error)
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    except (EOFError, TypeError, ValueError, zlib.error) as error:
        why = f"it is damaged: {error}"
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    return metadata


def open_table(location: str) -> StaticTable:
    """A table as one metadata file describes it. Raises ``metadata_missing``."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(location, dict(places.properties(location)))
    except OSError as error:
        why = error.strerror or str(error).partition("\n")[0]
    except ValidationError as error:
        why = f"it is damaged: {str(error).partition(': ')[0].splitlines()[-1].strip()}"
        if "view-uuid" in read_metadata(location):
            why = "it is that of a view, which has no rows of its own"
    raise run_errors.metadata_missing(path=places.shown(location), why=why)


def scan_where(
    stored: StaticTable, columns: Sequence[str], where: str | None, limit: int | None
) -> pa.Table:
    """
    The rows of a table that a comparison of columns with values leaves; all without one.

    Raises ``command_errors.bad_filter``.
    """
    from pyiceberg.expressions import AlwaysTrue

    from infold.lake.chosen_rows import truth_of
    from infold.lake.iceberg.scan import scan_rows

    if where is None:
        return scan_rows(stored, AlwaysTrue(), columns, limit=limit)
    rows = truth_of(where, stored.schema())
    return scan_rows(stored, rows, columns, limit=limit)


def partition_cell(unit: Granularity, value: Any) -> Interval:
    """
    The times of a partition that is a unit of time long, by Iceberg's value for it.

    That is a number of hours, days, months or years since 1970, or a date.
    """
    if unit is Granularity.MONTH:
        return unit.cell(parse_instant_text(f"{1970 + value // 12:04}-{value % 12 + 1:02}-01"))
    if unit is Granularity.YEAR:
        return unit.cell(parse_instant_text(f"{1970 + value:04}-01-01"))
    if isinstance(value, int):
        return unit.cell(value * (HOUR if unit is Granularity.HOUR else DAY))
    return unit.cell(parse_instant_text(value.isoformat()))


_NAMES = {
    "int": "integer",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
}
"""Iceberg's names of types where Spark has others."""


def user_columns(metadata: Mapping[str, Any], snapshot: int | None = None) -> Mapping[str, Type]:
    """The columns of the current schema, or of a snapshot's, but infold's own."""
    from infold.core.own_columns import is_own

    current = metadata.get("current-schema-id")
    if snapshot is not None:
        every = metadata.get("snapshots") or []
        schema_ids = [one.get("schema-id") for one in every if one["snapshot-id"] == snapshot]
        if not schema_ids:
            return {}
        current = schema_ids[0]
    schemas: Sequence[Mapping[str, Any]] = metadata.get("schemas") or []
    [fields] = [one["fields"] for one in schemas if one["schema-id"] == current] or [[]]
    return {one["name"]: spark_type(one["type"]) for one in fields if not is_own(one["name"])}


def column_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of all columns of the current schema."""
    return tuple(str(one["name"]) for one in current_fields(metadata))


def current_fields(metadata: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The columns of the current schema, as metadata has them."""
    current, schemas = metadata.get("current-schema-id"), metadata.get("schemas") or []
    [fields] = [one["fields"] for one in schemas if one["schema-id"] == current] or [[]]
    columns: Sequence[Mapping[str, Any]] = fields
    return columns


def spark_type(type_: str | Mapping[str, Any]) -> Type:
    """A type of a table as Spark sees it."""
    if isinstance(type_, str):
        if type_.startswith("fixed"):
            return "binary"
        return _NAMES.get(type_, type_.replace(" ", ""))
    if type_["type"] == "list":
        return {"type": "array", "elementType": spark_type(type_["element"])}
    if type_["type"] == "map":
        keys, values = spark_type(type_["key"]), spark_type(type_["value"])
        return {"type": "map", "keyType": keys, "valueType": values}
    fields = [{"name": one["name"], "type": spark_type(one["type"])} for one in type_["fields"]]
    return {"type": "struct", "fields": fields}


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
