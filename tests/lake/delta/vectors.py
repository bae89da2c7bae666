"""Deletion vectors as the protocol of Delta Lake has them, in a commit or a file, by no engine."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4
from zlib import crc32

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet as pq

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC, _COOKIE = 1681511377, 12346

PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}
"""What a table's protocol is once it has some."""


def commit(folder: Path, *actions: Mapping[str, Any]) -> None:
    """A commit of these actions, as another program could make it."""
    log = folder / "_delta_log"
    version = 1 + max(int(path.stem) for path in log.glob("*.json"))
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def mark_deleted(
    folder: Path, column: str, values: Collection[Any], *, in_file: bool = False
) -> None:
    """
    Delete rows where they are: of each file with such rows, another version.

    Which they are is in the commit, or in a file beside the rows.
    """
    marked = _deleted(folder)
    actions: list[Mapping[str, Any]] = []
    for add in _added(folder).values():
        name = unquote(add["path"])
        found = pq.read_table(folder / name, columns=[column], partitioning=None)[column]
        before = marked.get(Path(name).name, ())
        gone = {at for at, value in enumerate(found.to_pylist()) if value in values}
        if gone - {*before}:
            marks = in_a_file(folder) if in_file else in_the_commit
            actions += deleting(add, sorted(gone | {*before}), before, marks)
    if actions:
        commit(folder, PROTOCOL, *actions)


def _added(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The actions that added the present files; the log is all there."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted((folder / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        found.update({one["add"]["path"]: one["add"] for one in actions if "add" in one})
    return found


def _deleted(folder: Path) -> Mapping[str, Sequence[int]]:
    """The positions that are deleted, by the names of files."""
    found = {}
    for batch in DeltaTable(folder.as_uri()).deletion_vectors():
        rows = pa.record_batch(batch).to_pydict()
        for uri, kept in zip(rows["filepath"], rows["selection_vector"], strict=True):
            name = Path(unquote(uri)).name
            found[name] = [at for at, is_kept in enumerate(kept) if not is_kept]
    return found


Marks = Callable[[Sequence[int]], Mapping[str, Any]]
"""How a commit says which rows are deleted."""


def in_the_commit(positions: Sequence[int]) -> Mapping[str, Any]:
    """It has them itself."""
    data = _bitmap(sorted(positions))
    return _named("i", _z85(data), data, positions)


def in_a_file(folder: Path) -> Marks:
    """It names a file with them, one for each."""

    def marks(positions: Sequence[int]) -> Mapping[str, Any]:
        data, name = _bitmap(sorted(positions)), uuid4()
        content = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", crc32(data))
        (folder / f"deletion_vector_{name}.bin").write_bytes(content)
        return {**_named("u", _z85(name.bytes), data, positions), "offset": 1}

    return marks


def _named(kind: str, at: str, data: bytes, positions: Sequence[int]) -> Mapping[str, Any]:
    return {
        "storageType": kind,
        "pathOrInlineDv": at,
        "sizeInBytes": len(data),
        "cardinality": len(positions),
    }


def deleting(
    add: Mapping[str, Any],
    positions: Sequence[int],
    before: Sequence[int] = (),
    marks: Marks = in_the_commit,
) -> list[Mapping[str, Any]]:
    """The actions that let these rows of a file be deleted, by the action that added the file."""
    gone = {
        "path": add["path"],
        "dataChange": True,
        "deletionTimestamp": 1,
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
        **({"deletionVector": add.get("deletionVector") or marks(before)} if before else {}),
    }
    return [{"remove": gone}, {"add": {**add, "deletionVector": marks(positions)}}]


def _bitmap(positions: Sequence[int]) -> bytes:
    """A Roaring bitmap of positions below 65,536, as the only one of an array of them."""
    values = struct.pack(f"<{len(positions)}H", *positions)
    one = struct.pack("<IIHHI", _COOKIE, 1, 0, len(positions) - 1, 16) + values
    return struct.pack("<IQI", _MAGIC, 1, 0) + one


def _z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    out = ""
    for (word,) in struct.iter_unpack(">I", data):
        out += "".join(_LETTERS[word // 85**place % 85] for place in range(4, -1, -1))
    return out
