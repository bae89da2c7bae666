"""Endings that Spark takes in another way than infold: a file is read by one of them alone."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.reading.folder import Folder

from infold.core.model import Drift
from infold.spark.reading.paths import LINKS, takeable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = {
    "a.json": None,
    "a.json.gz": None,
    "a.json.GZ": None,
    "a.json.zst": None,
    "a.json.gzip": ".gz",
    "a.json.GZIP": ".gz",
    "a.json.zstd": ".zst",
    "a.json.deflate": "",
    "a.json.lz4": "",
    "a.json.Snappy": "",
    "a:b.json.gz": ".gz",
    "a:b.json.gzip": ".gz",
    "a:b.json.lz4": "",
    "a:b.json": "",
    "_a.snappy": "",
}
"""Names of files, and the ending of the link that Spark is given in place of one."""


@pytest.mark.parametrize("name", SHOWN)
def test_what_spark_is_given(tmp_path: Path, name: str) -> None:
    """A file by its own name, or by a link whose ending says what infold takes it for."""
    (tmp_path / name).write_text("{}")

    given = Path(takeable(tmp_path, name))

    if SHOWN[name] is None:
        assert given == tmp_path / name
    else:
        assert given.parent == tmp_path / LINKS
        assert given.resolve() == (tmp_path / name).resolve()
        assert given.suffix == SHOWN[name]


@pytest.fixture(params=[True, False], ids=["small", "large"])
def folder(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Folder:
    """A folder whose lines of JSON are read in this process, or by Spark as those of long files."""
    if not request.param:
        monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
    return Folder(tmp_path, spark)


PACKED = [".gz", ".GZ", ".gzip", ".zstd", ".Bz2"]
PLAIN = [".lz4", ".snappy", ".deflate"]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_file_says_the_same_whatever_its_size(folder: Folder, kind: str) -> None:
    """Those that are packed as their names say are unpacked, and those of no such name are not."""
    text = '{"id": "a"}\n{"id": "b"}\n' if kind == "json" else "id\na\nb\n"
    names = [f"{number}.{kind}{ending}" for number, ending in enumerate(["", *PACKED, *PLAIN])]
    for name in names:
        folder.put(name, text)

    found = folder.rows({"id": "string"})

    expected = [(at, id_) for at in range(1, len(names) + 1) for id_ in "ab"]
    assert sorted((row["_source_file"], row["id"]) for row in found) == expected


@pytest.mark.spark
@pytest.mark.parametrize("ending", [".gz", ".gzip"])
def test_a_long_packed_file_is_read_by_one_task(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """It cannot be divided, however its name ends."""
    monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
    folder = Folder(tmp_path, spark)
    chosen = random.Random(7)
    lines = [f'{{"id": "{chosen.randbytes(30).hex()}"}}\n' for _ in range(5_000)]
    folder.put(f"a.json{ending}", "".join(lines))
    assert (tmp_path / f"a.json{ending}").stat().st_size > 150_000
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        assert folder.frame({"id": "string"}).count() == 5_000
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_zeros_behind_gzip(tmp_path: Path, folder: Folder, kind: str) -> None:
    """A padded file is unreadable whatever its size, and can be set aside as others can."""
    text = b'{"id": "a"}\n' if kind == "json" else b"id\na\n"
    folder.put(f"a.{kind}", text)
    (tmp_path / f"b.{kind}.gz").write_bytes(gzip.compress(text) + b"\0" * 512)
    folder.listed(f"b.{kind}.gz")

    found = folder.rows({"id": "string"}, on_unreadable=Drift.SET_ASIDE)

    assert [row["id"] for row in found] == ["a", None]
    assert found[1]["_problem"].startswith("unreadable: ")
