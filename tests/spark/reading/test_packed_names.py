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


PACKED = [".gz", ".GZ", ".gzip", ".zstd", ".Bz2"]
PLAIN = [".lz4", ".snappy", ".deflate"]
HIDDEN = ["_a", ".b"]
"""Spark does not look at files that begin so, but these are named by their paths."""


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "long json", "csv"])
def test_a_file_says_the_same_whatever_its_name_and_size(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """
    Those that are packed as their names say are unpacked, and those of no such name are not. Lines
    of JSON are read in this process, or by Spark as those of long files. A file that is padded with
    zeros behind gzip is unreadable, and can be set aside as others can.
    """
    folder = Folder(tmp_path, spark)
    if kind == "long json":
        monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        kind = "json"
    text = '{"id": "a"}\n{"id": "b"}\n' if kind == "json" else "id\na\nb\n"
    names = [f"{at}.{kind}{ending}" for at, ending in enumerate(["", *PACKED, *PLAIN])]
    names += [f"{start}.{kind}" for start in HIDDEN]
    for name in names:
        folder.put(name, text)
    wanted = {name: [("a",), ("b",)] for name in names}

    assert folder.by_name({"id": "string"}) == wanted

    (tmp_path / f"z.{kind}.gz").write_bytes(gzip.compress(text.encode()) + b"\0" * 512)
    folder.listed(f"z.{kind}.gz")
    found = folder.by_name({"id": "string"}, on_unreadable=Drift.SET_ASIDE)
    [[_, problem]] = found.pop(f"z.{kind}.gz")
    assert problem.startswith("unreadable: ")
    assert found == wanted


@pytest.mark.spark
def test_a_long_packed_file_is_read_by_one_task(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be divided, however its name ends."""
    monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
    folder = Folder(tmp_path, spark)
    chosen = random.Random(7)
    lines = [f'{{"id": "{chosen.randbytes(30).hex()}"}}\n' for _ in range(5_000)]
    folder.put("a.json.gzip", "".join(lines))
    assert (tmp_path / "a.json.gzip").stat().st_size > 150_000
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        assert folder.frame({"id": "string"}).count() == 5_000
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
