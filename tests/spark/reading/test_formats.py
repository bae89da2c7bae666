"""The registries of formats, and that all formats say the same."""

from __future__ import annotations

import bz2
import csv
import hashlib
import json
from datetime import date
from decimal import Decimal
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from bench.stages import stages
from pyspark.sql import SparkSession
from tests.spark.reading.folder import Folder, utc

from infold.core.formats import PACKINGS, Format
from infold.core.model import Drift
from infold.lake.reading.formats import MODULES, FormatFiles, files_of
from infold.spark.reading.formats import READERS


def test_both_registries_have_every_format() -> None:
    """A format is read with Spark, and its files are listed without."""
    assert set(READERS) == set(MODULES) == set(Format)
    functions = [name for name in vars(FormatFiles) if name[:1] != "_"]
    assert all(hasattr(files_of(one), name) for one in Format for name in functions)


COLUMNS = {
    "id": "string",
    "at": "timestamp",
    "day": "date",
    "amount": "decimal(18,2)",
    "n": "int",
    "many": "bigint",
    "part": "double",
    "yes": "boolean",
}
TYPES = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("amount", pa.decimal128(18, 2)),
        ("n", pa.int32()),
        ("many", pa.int64()),
        ("part", pa.float64()),
        ("yes", pa.bool_()),
    ]
)
DAY_ONE = date(2024, 2, 29)
LAST, OLD = utc(9999, 12, 31, 23, 59, 59, 999999), date(1900, 1, 1)
VALUES: list[tuple[Any, ...]] = [
    ("a", utc(2024, 3, 9, 1, 2, 3, 456789), DAY_ONE, Decimal("1.50"), 1, 2**62, 0.1, True),
    ('"b"', utc(1969, 12, 31, 23, 59, 59, 500000), OLD, Decimal("-0.01"), -1, 0, -1e300, False),
    ("c\u00fc\U0001f600", LAST, LAST.date(), Decimal(10**15), 2**31 - 1, -(2**63), 1e-300, None),
    ("d\\", utc(1900, 1, 1), date(1970, 1, 1), None, None, None, None, True),
    ('e, {"x": [1]}', utc(2262, 4, 12), None, Decimal(0), 0, 1, 0.0, None),
]  # fmt: skip
WAYS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "csv": (("a.csv", *(f"packed.csv{ending}" for ending in PACKINGS)), {}),
    "tsv": (
        ("places.tsv.gz", "places.tsv"),
        {"positions": tuple(COLUMNS), "quoted": False, "delimiter": "\t"},
    ),
    "json": (("lines.json", *(f"lines.json{ending}" for ending in PACKINGS)), {}),
    "whole json": (("whole.json", "whole.json.zst"), {"multiline": True}),
    "parquet": (("a.parquet",), {}),
    "orc": (("a.orc",), {}),
    "avro": (("a.avro",), {}),
}
"""Names of files, and the keys of a source that has such files."""


def as_text(value: Any) -> Any:
    """A value as programs write it to CSV and JSON."""
    return value.isoformat() if isinstance(value, date) else str(value)


def content(name: str) -> pa.Table | str:
    """The rows in a way."""
    if name.endswith((".parquet", ".orc", ".avro")):
        return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in VALUES], TYPES)
    if ".json" in name:
        texts = [[None if one is None else as_text(one) for one in row] for row in VALUES]
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in texts]
        whole = json.dumps(rows[:2], indent=1) + "".join(map(json.dumps, rows[2:]))
        return whole if "whole" in name else "".join(json.dumps(row) + "\n" for row in rows)
    cells = [["" if one is None else as_text(one) for one in row] for row in VALUES]
    if ".tsv" in name:
        return "".join("\t".join(row) + "\n" for row in cells)
    out = StringIO()
    csv.writer(out).writerows([list(COLUMNS), *cells])
    return out.getvalue()


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS)
def test_all_formats_say_the_same(folder: Folder, way: str) -> None:
    """The same rows come out of every format and packing, with every value as it was written."""
    names, keys = WAYS[way]
    for name in names:
        folder.put(name, content(name))

    found = folder.by_name(COLUMNS, **keys)

    wanted = list(VALUES)
    if way == "orc":  # fractions of a second before 1970 say several things
        [[_, problem]] = [row for row in found["a.orc"] if len(row) == 2]
        assert problem == "unparsable: at is not timestamp"
        found["a.orc"] = [row for row in found["a.orc"] if len(row) > 2]
        del wanted[1]
    assert found == dict.fromkeys(names, sorted(wanted, key=str))


@pytest.mark.spark
def test_many_files_are_listed_by_few_tasks(folder: Folder, spark: SparkSession) -> None:
    """Spark lists many files by a job, which has no task for each of them."""
    for number in range(40):
        folder.put(f"{number}.parquet", content("a.parquet"))
    before = max((stage.id for stage in stages(spark)), default=-1)

    rows = folder.frame(COLUMNS)

    [listing] = stages(spark, before)
    assert listing.tasks == 16
    assert len(rows.inputFiles()) == 40


@pytest.mark.spark
@pytest.mark.parametrize("ending", ["parquet", "orc", "avro", "json"])
def test_files_say_how_many_rows_they_have(folder: Folder, ending: str) -> None:
    """
    Formats with a footer say how many rows there are to read, also of files that drift.

    So do small files of lines, which were read.
    """
    rows = content(f"a.{ending}")
    folder.put(f"a.{ending}", rows)
    folder.put(f"b.{ending}", rows.slice(0, 2) if isinstance(rows, pa.Table) else rows)
    columns = {**COLUMNS, "yes": "date"}
    keys: dict[str, Any] = {"on_drift": Drift.SET_ASIDE}

    said = folder.said(columns, **keys)

    read_rows = folder.rows(columns, **keys)
    counts = {id_: sum(row["_source_file"] == id_ for row in read_rows) for id_ in (1, 2)}
    if ending == "json":
        assert said == counts == {1: 5, 2: 5}
    elif ending in ("parquet", "orc"):
        assert said == counts == {1: 5, 2: 2}
        (folder.root / f"b.{ending}").write_bytes(b"broken")
        assert folder.said(columns, **keys, on_unreadable=Drift.SET_ASIDE) is None
    else:
        assert said is None


@pytest.mark.spark
def test_quoted_fields_by_their_places(folder: Folder) -> None:
    """A file without a header may have quotes, and a mark of its encoding unless one follows."""
    good, bad = ("a.csv", "a.csv.gz"), ("b.csv", "b.csv.gz")
    for name in good:
        folder.put(name, '\ufeffa,"1\n2"\n"b",""\n,3\n\ufeffc,4\n')
    for name in bad:
        folder.put(name, '\ufeff"a",1\n')
    keys: dict[str, Any] = {"positions": ("id", "n"), "on_unreadable": Drift.SET_ASIDE}

    found = folder.by_name({"id": "string", "n": "string"}, **keys)

    for name in good:
        assert found[name] == [("a", "1\n2"), ("b", ""), ("c", "4"), (None, "3")]
    for name in bad:
        why = "unreadable: there is a mark of its encoding before the first quote"
        assert [problem for _, problem in found[name]] == [why]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_packed_file_in_several_parts(folder: Folder, spark: SparkSession, kind: str) -> None:
    """Lines packed by bzip2 are read by several tasks, each line by one of them."""
    ids = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(12_000)]
    lines = [f'{{"id": "{id_}"}}\n' if kind == "json" else f"{id_}\n" for id_ in ids]
    header = "id\n" if kind == "csv" else ""
    halves = header + "".join(lines[:6_000]), "".join(lines[6_000:])
    packed = b"".join(bz2.compress(half.encode(), 1) for half in halves)
    (folder.root / f"a.{kind}.bz2").write_bytes(packed)
    folder.listed(f"a.{kind}.bz2")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    try:
        rows = folder.frame({"id": "string"})
        parts = rows.rdd.getNumPartitions()
        found = rows.toArrow()["id"].to_pylist()
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")

    assert parts > 1
    assert sorted(found) == sorted(ids)
