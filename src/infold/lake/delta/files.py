"""
The files of a version of a Delta table, by its log, and vectors of the rows deleted in them.

Who knows them here needs no job of Spark to find them. A vector is what the protocol has: a bitmap
in Roaring's portable form, in a file beside the rows with others of its commit.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import UUID, uuid4
from zlib import crc32

from infold.core.interval import (
    DAY,
    MAX,
    MIN,
    Granularity,
    Interval,
    Ranges,
    now,
    parse_instant_text,
)
from infold.core.own_columns import PARTITION
from infold.core.ports import StoredLayout
from infold.lake.delta.commit import LOG, Action, fingerprint, read_actions
from infold.lake.delta.log import Log
from infold.lake.stores import places
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa

_MILLISECOND = 1000
_FIRST, _END = parse_instant_text("0001-01-01"), parse_instant_text("9999-12-31")
"""Of what reaches so far no predicate is made."""

# -- the files of a version

_known_files: dict[str, tuple[int, str, Mapping[str, Action]]] = {}
"""Of each folder the newest version asked for, what tells its commit from others, its files."""


def live_files(log: Log, version: int) -> Mapping[str, Action] | None:
    """
    What the log says of each file with rows of a version, by its place below the folder.

    None where a part of the log is missing for that, or is in several files.
    """
    known = _known_files.get(log.folder)
    files: dict[str, Action] = {}
    after = -1
    if known is not None and known[0] <= version and _mark(log, known[0]) == known[1]:
        after, files = known[0], {**known[2]}
    elif log.commits[0] > 0:
        checkpoint = log.checkpoint(version)
        if checkpoint is None:
            return None
        after = checkpoint
        file = places.below(log.folder, LOG, f"{checkpoint:020}.checkpoint.parquet")
        files = {unquote(add["path"]): add for add in files_in_checkpoint(file)}
    if not {*range(after + 1, version + 1)} <= {*log.commits}:
        return None
    for later in range(after + 1, version + 1):
        # A file whose vector changes is removed with the old one, and added with the new one.
        actions = read_actions(log.file(later), log.mark(later))
        for removed in (action["remove"] for action in actions if "remove" in action):
            files.pop(unquote(removed["path"]), None)
        added = (action["add"] for action in actions if "add" in action)
        files.update((unquote(add["path"]), add) for add in added)
    if version in log.commits:
        _known_files[log.folder] = (version, _mark(log, version), files)
    return files


def newest_files(log: Log) -> Mapping[str, Action]:
    """The same of the newest version. Raises ``metadata_missing`` where a part of the log is."""
    files = live_files(log, log.newest)
    if files is None:
        raise run_errors.metadata_missing(path=log.folder, why="its log has a gap")
    return files


def _mark(log: Log, version: int) -> str:
    there = version in log.commits
    return fingerprint(log.file(version), log.mark(version)) if there else ""


def without_statistics_of_removed(checkpoint: bytes) -> bytes:
    """A checkpoint without values of rows that were in files which the table has no longer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(checkpoint))
    removed = table["remove"].combine_chunks()
    parts = [
        pa.nulls(len(removed), part.type) if part.name == "stats" else removed.field(part.name)
        for part in removed.type
    ]
    plain = pa.StructArray.from_arrays(parts, fields=[*removed.type], mask=removed.is_null())
    at = table.column_names.index("remove")
    content = pa.BufferOutputStream()
    pq.write_table(table.set_column(at, table.schema.field(at), plain), content)
    return bytes(content.getvalue())


def files_in_checkpoint(file: str) -> Iterator[Action]:
    """The files of the version that a checkpoint sums up."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferReader(places.read(file))
    # At most a row for each file of the table.
    for add in pq.read_table(content, columns=["add"])["add"].to_pylist():
        if add is not None and add.get("path"):
            values = {key: value for key, value in add.items() if value is not None}
            values["partitionValues"] = dict(add.get("partitionValues") or ())
            if "tags" in values:
                values["tags"] = dict(values["tags"])
            values.pop("stats_parsed", None)
            values.pop("partitionValues_parsed", None)
            yield values


def files_during(
    log: Log, files: Iterable[Action], column: str, ranges: Ranges, layout: StoredLayout
) -> list[Action]:
    """The files that may have rows with a time in some ranges, in a column of dates or instants."""
    fields = {str(one["name"]).lower(): one for one in log.schema().fields}
    field = fields.get(column.lower(), {})
    at_any_time = any(part.start <= _FIRST and part.end >= _END for part in ranges)
    if at_any_time or field.get("type") not in ("date", "timestamp"):
        return list(files)  # those without a time, too
    unit = layout.partition if column.lower() == (layout.column or "").lower() else None
    name, type_ = str(field["name"]), str(field["type"])
    return [
        file
        for file in files
        if (unit is None or _is_partition_of(file, unit, ranges))
        and ((bounds := _bounds(file, name, type_)) is None or ranges.overlaps(bounds))
    ]


def files_of_partitions(files: Iterable[Action], unit: Granularity, ranges: Ranges) -> list[Action]:
    """The files of the partitions, each of a unit of time, that some ranges touch."""
    return [file for file in files if _is_partition_of(file, unit, ranges)]


def partition_of(file: Action) -> str | None:
    """The start of the partition that a file is in, as the log has it; None also without one."""
    start: str | None = file["partitionValues"].get(PARTITION)
    return start or None


def partition_files(files: Iterable[Action]) -> Iterator[tuple[str | None, int, int, int]]:
    """For each partition the files with data, those of them with deleted rows, and the bytes."""
    parts: dict[str | None, list[Action]] = {}
    for file in files:
        parts.setdefault(partition_of(file), []).append(file)
    for start, own in parts.items():
        marked = sum(1 for file in own if file.get("deletionVector"))
        yield start, len(own), marked, sum(file["size"] for file in own)


def _is_partition_of(file: Action, unit: Granularity, ranges: Ranges) -> bool:
    start = partition_of(file)  # none of rows without a time
    return start is not None and ranges.overlaps(unit.cell(parse_instant_text(start)))


def _bounds(file: Action, column: str, type_: str) -> Interval | None:
    """From the earliest time in a file to past the latest; None if it does not say."""
    try:
        stats = json.loads(file.get("stats") or "{}")
        first = parse_instant_text(stats["minValues"][column])
        last = parse_instant_text(stats["maxValues"][column])
    except (KeyError, TypeError, ValueError):  # also of a year that Python does not know
        return None
    # Instants are cut off to milliseconds.
    length = DAY if type_ == "date" else 2 * _MILLISECOND
    return Interval(max(MIN, first - _MILLISECOND), min(MAX, last + length))


def as_json(actions: Iterable[Mapping[str, Any]]) -> str:
    """Actions of one kind as the protocol names what they say."""
    return json.dumps([*map(dict, actions)])


def removal(file: Action, *, changes: bool = True) -> Mapping[str, Any]:
    """
    The action by which a file, with its vector, is no longer one of the table's.

    Without the statistics of the file, which would have values of its rows when it is gone.
    """
    kept = ("path", "partitionValues", "size", "tags", "deletionVector")
    return {
        **{key: file[key] for key in kept if file.get(key) is not None},
        "deletionTimestamp": now() // _MILLISECOND,
        "dataChange": changes,
        "extendedFileMetadata": True,
    }


# -- rows that are deleted in them


def with_deleted(
    folder: str, files: Mapping[str, Action], rows: Mapping[str, pa.Array]
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Action]]:
    """
    What is removed from a table, and added, so that rows are deleted: some positions of files.

    The vectors are written, all in one file. A file without any other rows is removed as a whole.
    """
    content, number = bytearray(b"\x01"), uuid4()
    removed, added = [], []
    for path, positions in rows.items():
        file = files[path]
        before = file.get("deletionVector")
        deleted = bitmap_of(read_vector(folder, before) if before else ())
        for at in range(0, len(positions), _AT_ONCE):
            deleted.update(positions.slice(at, _AT_ONCE).to_pylist())
        removed.append(removal(file))
        statistics = json.loads(file.get("stats") or "{}")
        if statistics.get("numRecords") == len(deleted):
            continue
        bitmap = _MAGIC + deleted.serialize()
        vector = {
            "storageType": "u",
            "pathOrInlineDv": base64.b85encode(number.bytes).decode().translate(_TO_Z85),
            "offset": len(content),
            "sizeInBytes": len(bitmap),
            "cardinality": len(deleted),
        }
        content += struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", crc32(bitmap))
        wide = {"stats": json.dumps({**statistics, "tightBounds": False})} if statistics else {}
        added.append({**file, **wide, "deletionVector": vector, "dataChange": True})
    if added:
        places.write(places.below(folder, _vector_file(number)), bytes(content))
    return removed, added


def read_vector(folder: str, vector: Mapping[str, Any]) -> Iterator[int]:
    """The positions of the rows that a vector marks as deleted, in order."""
    text = vector["pathOrInlineDv"]
    if vector["storageType"] == "i":
        return decoded(base64.b85decode(text.translate(_TO_B85))[: vector["sizeInBytes"]])
    name = vector_file(vector)
    assert name is not None, "no other table has files of infold's"
    start = int(vector.get("offset") or 0) + 4
    return decoded(_vectors(places.below(folder, name))[start : start + vector["sizeInBytes"]])


@lru_cache(maxsize=16)
def _vectors(file: str) -> bytes:
    """A file of vectors, whose name no other one ever has."""
    return places.read(file)


def files_of(add: Action) -> Iterator[str]:
    """The file that is added, and the one that marks rows of it as deleted, below the folder."""
    yield unquote(add["path"])
    if name := vector_file(add.get("deletionVector") or {}):
        yield name


def vector_file(vector: Mapping[str, Any]) -> str | None:
    """The file with a vector, below the folder; None of one in the log itself."""
    if vector.get("storageType") != "u":
        return None
    text = str(vector["pathOrInlineDv"])
    folder, number = text[:-20], base64.b85decode(text[-20:].translate(_TO_B85))
    name = _vector_file(UUID(bytes=number))
    return f"{folder}/{name}" if folder else name


def _vector_file(number: UUID) -> str:
    return f"deletion_vector_{number}.bin"


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85, _TO_Z85 = str.maketrans(_Z85, _B85), str.maketrans(_B85, _Z85)
"""Python knows another alphabet of base 85 than the protocol's."""

_MAGIC = struct.pack("<i", 1681511377)


_AT_ONCE = 100_000


def bitmap_of(positions: Iterable[int]) -> Any:
    """Positions as the protocol's bitmap, but for its first four bytes."""
    from pyroaring import BitMap64

    return BitMap64(positions)


def decoded(content: bytes) -> Iterator[int]:
    """The positions in such a bitmap, in order, whoever wrote it. Raises ``ValueError``."""
    from pyroaring import BitMap64

    if not content.startswith(_MAGIC):
        raise ValueError(f"a vector of deleted rows begins with {content[:4].hex()}")
    return iter(BitMap64.deserialize(content[4:]))
