"""A file is written again without some rows, and is the same in everything else."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from infold.core.files import stat_fingerprint
from infold.core.formats import Format
from infold.core.model import Column, Source
from infold.lake.reading.row_texts import NotReadError
from infold.lake.reading.source_file import SourceFile
from infold.lake.rewritten_files import write_without

COLUMNS = (Column("who", "string"), Column("url", "string"), Column("x", "string", optional=True))
JSON = Source("raw.s", Format.JSON, COLUMNS, path="l/*")
CSV, STORED = replace(JSON, format=Format.CSV), replace(JSON, format=Format.PARQUET)
LINES = b'{"who":"a", "url": 1 }\r\nnothing\n{"who":"cat","url":2}\n{"url":3,"who":"b"}'
KEPT = b'{"who":"a", "url": 1 }\r\nnothing\n{"url":3,"who":"b"}'


def rewrite(path: Path, source: Source, fingerprint: str = "") -> os.stat_result:
    """Write a file again without the rows of a cat."""
    status = path.stat()
    file = SourceFile(str(path), status.st_size)
    listed = fingerprint or stat_fingerprint(status)
    return write_without(file, source, ["who"], lambda texts: texts[0] == "cat", listed)


def test_lines_stay_byte_for_byte(tmp_path: Path) -> None:
    """So do the mode of the file and its time; nothing is left beside it."""
    path = tmp_path / "f.json"
    path.write_bytes(LINES)
    path.chmod(0o640)
    os.utime(path, ns=(1, 1_700_000_000_123_456_789))
    before = path.stat()
    after = rewrite(path, JSON)
    assert path.read_bytes() == KEPT
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert after == path.stat()
    assert [*tmp_path.iterdir()] == [path]


def test_packed_lines_are_packed_again(tmp_path: Path) -> None:
    """What unpacks from it is the same; a link goes on leading to it."""
    path, link = tmp_path / "f.csv.gz", tmp_path / "link.csv.gz"
    path.write_bytes(gzip.compress(b'who,url\n"cat",1\ncat,"a\nb"\ndog,2'))
    link.symlink_to(path)
    rewrite(link, CSV)
    assert gzip.decompress(path.read_bytes()) == b"who,url\ndog,2"
    assert link.is_symlink()


def stored(path: Path, **options: Any) -> None:
    """A Parquet file of two groups, with what other writers do."""
    at = pa.array([datetime(2024, 1, 1), None, datetime(9000, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001
    columns = {
        "who": pa.array(["a", "cat", "cat"]),
        "at": at,
        "amount": pa.array([Decimal("1.20"), None, Decimal("0.01")], pa.decimal128(10, 2)),
        "tags": pa.array([{"t": [1.0, float("nan")]}, None, {"t": []}]),
    }
    table = pa.table(columns).replace_schema_metadata({"writer": "someone"})
    parquet.write_table(table, path, row_group_size=2, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"compression": {"who": "gzip", "amount": "snappy"}, "store_decimal_as_integer": True},
        {"compression": "none", "use_deprecated_int96_timestamps": True},
    ],
)
def test_parquet_has_the_same_schema(tmp_path: Path, options: dict[str, Any]) -> None:
    """Types as they are stored, codecs by column, what its writer noted; and the other rows."""
    path = tmp_path / "f.parquet"
    stored(path, **options)

    def facts() -> tuple[object, ...]:
        with parquet.ParquetFile(path) as file:
            group = file.metadata.row_group(0)
            codecs = [group.column(at).compression for at in range(group.num_columns)]
            return str(file.schema).partition("\n")[2], codecs, file.schema_arrow.metadata

    before, rows = facts(), parquet.read_table(path, coerce_int96_timestamp_unit="us")
    rewrite(path, STORED)
    assert facts() == before
    after = parquet.read_table(path, coerce_int96_timestamp_unit="us")
    assert str(after.to_pylist()) == str(rows.slice(0, 1).to_pylist())  # a NaN is no other's equal


def _refuse(*_: object) -> None:
    raise PermissionError


def test_files_that_are_left(tmp_path: Path) -> None:
    """Each as it was, with nothing beside it, and why."""
    path = tmp_path / "f.json"
    path.write_bytes(LINES)

    def left(why: str, source: Source = JSON, at: Path = path, fingerprint: str = "") -> None:
        before = at.read_bytes()
        with pytest.raises(NotReadError, match=why):
            rewrite(at, source, fingerprint)
        assert at.read_bytes() == before

    left("changed", fingerprint="1:1.1:1")
    left("over lines", replace(JSON, multiline=True))
    (tmp_path / "f.json.bz2").touch()
    left("packed", at=tmp_path / "f.json.bz2")
    other = tmp_path / "other.json"
    other.hardlink_to(path)
    left("another name")
    other.write_bytes(b'{"who":"cat","url":1}\n{"who":"dog","x":1}\n')
    other.unlink()
    path.write_bytes(b'{"who":"cat","url":1}\n{"who":"dog"}\n')
    left("no row would have url")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "chown", _refuse)
        path.write_bytes(LINES)
        left("another user")
    nanos = pa.table({"who": ["a"], "at": pa.array([1], pa.timestamp("ns"))})
    parquet.write_table(nanos, tmp_path / "n.parquet", use_deprecated_int96_timestamps=True)
    left("parts of a microsecond", STORED, tmp_path / "n.parquet")
    lists = pa.table({"who": ["a"], "l": [[1]]})
    parquet.write_table(lists, tmp_path / "l.parquet", use_compliant_nested_type=False)
    left("other types", STORED, tmp_path / "l.parquet")
    assert not [*tmp_path.glob("_*")]


def test_all_rows_may_go(tmp_path: Path) -> None:
    """Then there are none: of lines an empty file, of Parquet one with its columns."""
    (tmp_path / "f.json").write_bytes(b'{"who":"cat","url":1}\n')
    assert rewrite(tmp_path / "f.json", JSON).st_size == 0
    parquet.write_table(pa.table({"who": ["cat"]}), tmp_path / "f.parquet")
    rewrite(tmp_path / "f.parquet", STORED)
    assert parquet.read_table(tmp_path / "f.parquet").column_names == ["who"]
