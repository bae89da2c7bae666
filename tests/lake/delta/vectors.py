"""Deletion vectors as the protocol of Delta Lake has them inside of a commit, without an engine."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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


def mark_deleted(folder: Path, column: str, values: Collection[Any]) -> None:
    """Delete rows where they are: of each file with such rows, another version."""
    marked = _deleted(folder)
    actions: list[Mapping[str, Any]] = []
    for add in _added(folder).values():
        name = unquote(add["path"])
        found = pq.read_table(folder / name, columns=[column], partitioning=None)[column]
        before = marked.get(Path(name).name, ())
        gone = {at for at, value in enumerate(found.to_pylist()) if value in values}
        if gone - {*before}:
            actions += deleting(add, sorted(gone | {*before}), before)
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


def deleting(
    add: Mapping[str, Any], positions: Sequence[int], before: Sequence[int] = ()
) -> list[Mapping[str, Any]]:
    """The actions that let these rows of a file be deleted, by the action that added the file."""
    gone = {
        "path": add["path"],
        "dataChange": True,
        "deletionTimestamp": 1,
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
        **({"deletionVector": _marks(before)} if before else {}),
    }
    return [{"remove": gone}, {"add": {**add, "deletionVector": _marks(positions)}}]


def _marks(positions: Sequence[int]) -> Mapping[str, Any]:
    data = _bitmap(sorted(positions))
    return {
        "storageType": "i",
        "pathOrInlineDv": _z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(positions),
    }


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
