"""Stored values are those in the file, for every type and format, or the row is set aside.

Texts in many notations go through the three formats that contain text. What one
accepts, all accept alike, and a plan's estimate accepts the same texts for timestamps.
"""

from __future__ import annotations

import json
import zoneinfo
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.spark.reading.folder import Folder, utc

from infold.core.interval import micros_of
from infold.lake.reading import event_times
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES = """
2024-03-01 | 2024-03-01T10 | 2024-03-01T10Z | 2024-03-01T10+01 | 2024-03-01T10:00
2024-03-01T10:00Z | 2024-03-01 10:00Z | 2024-03-01T10:00+05:30 | 2024-03-01T10:00 -08:00
2024-03-01T10:00 Europe/Berlin | 2024-03-01T10:00:00 | 2024-03-01T10:00:00Z
2024-03-01T10:00:00 Z | 2024-03-01T10:00:00+0530 | 2024-03-01T10:00:00+5
2024-03-01T10:00:00UTC | 2024-03-01T10:00:00 GMT | 2024-03-01T10:00:00GMT+1
2024-03-01T10:00:00UTC-03:30 | 2024-03-01T10:00:00.1 | 2024-03-01T10:00:00.123456Z
2024-03-01T10:00:00.123456789 | 2024-03-01T10:00:00.123456000 | 2024-03-01T10:00:00.1234567Z
2024-03-01T10:00:00.000000001Z | 2024-03-01T10:00:00. | 2024-3-1 1:2:3 | +2024-03-01T1:2:3
2024-03-01T24:00:00 | 2024-03-01T10:60:00 | 2024-03-01T10:00:60 | 2024-02-30 | 2023-02-29
2024-02-29 | 2024-03-01t10:00:00z | 2024-03-01T10:00:00,5 | 2024-03-01Z | 2024-03 | 2024
20240301 | 2024-03-01T | 2024-W09-5 | 20240301T100000Z | 2024-03-01T1000 | 2024-03-01T100000
10:00 | T10:00 | soon | 1709287200 | 2024-03-01T10:00:00+19:00 | 2024-03-01T10:00:00+18:00
2024-03-01T10:00:00-00:00 | 2024-03-01  10:00:00 | 2024-03-01T10:00:00+01:30:15
2024-03-01T10:00: | 2024-03-01T10: | 2024-03-01T10:0:00 | 2024-03-01 x
2024-03-01T10:00:00 Nowhere/City | 2024-03-01T10:00:00 America/New_York
2024-03-10 02:30:00 America/New_York | 2024-11-03 01:30:00 America/New_York | 0001-01-01
9999-12-31T23:59:59.999999 | 1969-12-31T23:59:59.999999Z | 1582-10-10T00:00:00
2024-07-01T10:00:00PST | 2024-07-01 10:00 BST | 2024-07-01T10 CST | 2024-03-01T10:00:00 IST
2024-03-01T10:00:00 EST | 2024-03-01T10:00:00 CET
2024-03-01T10:00:00Z junk | 2024-03-01T10:00:00ZZ | 2024-03-01T10:00:00+1:5
"""
_GUESSED = """
ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST
EDT CEST pst SystemV/PST8
"""
GUESSED = _GUESSED.split()
NOTATIONS = [text.strip() for text in TIMES.replace("\n", "|").split("|") if text.strip()]


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Folder:
    """An empty folder."""
    return Folder(tmp_path, spark)


def by_text(folder: Folder, type_: str, texts: list[str], **others: Any) -> dict[str, Any]:
    """What each text is in a column of a type; "unparsable" is one answer."""
    columns = {"text": "string", "v": type_}
    found = folder.rows(columns, **others)
    folder.files.clear()
    at = iter(sorted(texts))
    rows = sorted(found, key=lambda row: row["text"] or "")
    kept = {row["text"]: row["v"] for row in rows if row["_problem"] is None}
    assert len(rows) == len(texts)
    assert {row["_problem"] for row in rows} <= {None, f"unparsable: v is not {type_}"}
    return {text: kept.get(text, "unparsable") for text in at}


DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31)]
LONG_AGO = [utc(1, 1, 2), utc(1582, 10, 4, 12), utc(1700, 2, 28, 23, 59, 59), utc(1899, 12, 31)]


def in_every_format(
    folder: Folder, type_: str, texts: list[str], **others: Any
) -> tuple[dict[str, Any], ...]:
    """The same of a CSV, a JSON and (of times) a Parquet file."""
    quoted = [text.replace('"', '""') for text in texts]
    folder.put("a.csv", "text,v\n" + "".join(f'"{t}","{t}"\n' for t in quoted))
    found = [by_text(folder, type_, texts, **others)]
    folder.put("a.json", "".join(json.dumps({"text": t, "v": t}) + "\n" for t in texts))
    found.append(by_text(folder, type_, texts, **others))
    if type_ in ("timestamp", "date", "timestamp_ntz"):
        folder.put("a.parquet", pa.table({"text": texts, "v": texts}))
        found.append(by_text(folder, type_, texts, **others))
    return tuple(found)


class TestTimestamps:
    """A timestamp is stored to the microsecond, or its row is set aside."""

    def test_formats_and_the_estimate_agree(self, folder: Folder) -> None:
        """Spark reads from each format the timestamps that the plan's estimate reads."""
        texts = sorted(set(NOTATIONS))
        csv, jsons, pq = in_every_format(folder, "timestamp", texts)
        estimate = {text: event_times.iso(text) for text in texts}
        stored = {
            text: None if value == "unparsable" else micros_of(value) for text, value in csv.items()
        }
        assert {t: (stored[t], estimate[t]) for t in texts if stored[t] != estimate[t]} == {}
        assert csv == jsons == pq
        assert csv["2024-03-01T10:00Z"] == utc(2024, 3, 1, 10)
        assert csv["2024-03-01T10Z"] == utc(2024, 3, 1, 10)
        assert csv["2024-03-01T10:00+05:30"] == utc(2024, 3, 1, 4, 30)
        assert csv["2024-03-01T10:00:00.123456000"] == utc(2024, 3, 1, 10, 0, 0, 123456)
        assert csv["2024-03-01T10:00:00.123456789"] == "unparsable"
        assert csv["2024-03-01T10:00:00.000000001Z"] == "unparsable"

    def test_zones_are_those_of_the_database(self, folder: Folder) -> None:
        """A name that Java has beside those of IANA's, as short ones that mean several, is none."""
        known = zoneinfo.available_timezones()
        texts = {f"2015-07-01T10:00:00 {name}": name for name in (*known, *GUESSED)}
        folder.put("a.csv", "text,v\n" + "".join(f"{text},{text}\n" for text in sorted(texts)))

        found = by_text(folder, "timestamp", sorted(texts))

        read = {text: value for text, value in found.items() if value != "unparsable"}
        assert {texts[text] for text in read} - known == set()
        estimates = {text: event_times.iso(text) for text in read}
        assert {text: micros_of(value) for text, value in read.items()} == estimates
        assert len(read) > 550

    @pytest.mark.parametrize(
        ("written", "good", "finer", "other"),
        [
            ("epoch_seconds", "1709287200.000001", "1709287200.0000001", "2024-03-01"),
            ("epoch_millis", "1709287200000.001", "1709287200000.0001", "x"),
            ("epoch_micros", "1.709287200000001e15", "1709287200000001.5", "9" * 20),
            (
                "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
                "2024-03-01 10:00:00.000001000",
                "2024-03-01 10:00:00.000001001",
                "2024-03-01",
            ),
        ],
    )
    def test_no_part_of_a_microsecond_is_cut_off(
        self, folder: Folder, written: str, good: str, finer: str, other: str
    ) -> None:
        """Only the declared notation is accepted; no part of a microsecond is cut off in any."""
        texts = sorted([good, finer, other])
        wanted: dict[str, Any] = dict.fromkeys(texts, "unparsable")
        wanted[good] = utc(2024, 3, 1, 10, 0, 0, 1)
        for found in in_every_format(folder, "timestamp", texts, timestamp_format=written):
            assert found == wanted
        parse = event_times.timestamp_parser(written)
        if parse is not None:
            assert parse(good) == micros_of(wanted[good])
            assert parse(finer) is None

    @pytest.mark.parametrize("unit", ["us", "ns"])
    def test_fractions_of_orc(self, folder: Folder, unit: str) -> None:
        """Fractions of ORC are stored if they are whole microseconds after 1970; the others are
        set aside.
        """
        second = {"us": 10**6, "ns": 10**9}[unit]
        near, odd = 1_709_287_200 * second + 123457 * second // 10**6, 1_709_287_200 * second + 1
        times = [near, odd, None, -second, -second // 2, -1_800_000_000 * second, 0]
        column = pa.array(times, pa.timestamp(unit))
        folder.put("a.orc", pa.table({"id": list("abcdefg"), "v": column}))
        aside = ("unparsable: v is not timestamp",)
        assert folder.values({"id": "string", "v": "timestamp"}) == [
            ("a", utc(2024, 3, 1, 10, 0, 0, 123457)),
            ("b", utc(2024, 3, 1, 10, 0, 0, 1)) if unit == "us" else aside,
            ("c", None),
            ("d", utc(1969, 12, 31, 23, 59, 59)),
            aside,
            ("f", utc(1912, 12, 17, 16)),
            ("g", utc(1970, 1, 1)),
        ]

    @pytest.mark.parametrize("ending", ["avro", "orc"])
    def test_times_of_long_ago(self, folder: Folder, ending: str) -> None:
        """
        Times of long ago are read by today's calendar in Avro, and in ORC by the calendar that
        Spark and Hive write them in.
        """
        columns = {"at": pa.array(LONG_AGO, pa.timestamp("us", "UTC")), "day": pa.array(DAYS)}
        if ending == "avro":
            folder.put("a.avro", pa.table(columns))
        else:
            written = folder.spark.createDataFrame(pa.table(columns)).coalesce(1)
            written.write.orc(str(folder.root / "written"))
            (file,) = (folder.root / "written").glob("*.orc")
            folder.put("a.orc", file.read_bytes())

        found = folder.values({"at": "timestamp", "day": "date"})

        assert sorted(found) == sorted(zip(LONG_AGO, DAYS, strict=True))

    @pytest.mark.parametrize("old", [False, True])
    def test_times_of_long_ago_are_what_is_written(self, folder: Folder, old: bool) -> None:
        """Times of long ago are read by today's calendar in every format and column type."""
        days = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31)]
        at = [datetime(1700, 2, 28, 23, 59, 59, tzinfo=UTC), datetime(1899, 12, 31, tzinfo=UTC)]
        at = at if old else [utc(1, 1, 2), utc(1582, 10, 4, 12), *at]
        days = days[-len(at) :]
        path = folder.root / "a.parquet"
        columns = {"at": pa.array(at, pa.timestamp("us", "UTC")), "day": pa.array(days)}
        parquet.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=old)
        folder.put("a.parquet", path.read_bytes())

        assert folder.values({"at": "timestamp", "day": "date"}) == list(zip(at, days, strict=True))

    def test_nanoseconds_of_the_old_kind_are_drift(self, folder: Folder) -> None:
        """Nanoseconds of the old INT96 type are drift, because Spark cannot check them row by
        row.
        """
        for name, nanos in (("a", 1_000), ("b", 1_001)):
            path = folder.root / f"{name}.parquet"
            table = pa.table({"v": pa.array([nanos, None], pa.timestamp("ns"))})
            parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
            folder.put(f"{name}.parquet", path.read_bytes())
        with pytest.raises(InfoldError) as raised:
            folder.rows({"v": "timestamp"})
        assert raised.value.facts == (("b.parquet", "column v has parts of a microsecond"),)


NUMBERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "int": ({"1": 1, "-0": 0, "1.0": 1, "1.": 1, "+7": 7}, ["1.5", "1e3", "2147483648", "x", ""]),
    "bigint": ({"9223372036854775807": 2**63 - 1}, ["9223372036854775808", "1.01"]),
    "tinyint": ({"-128": -128, "127.00": 127}, ["128"]),
    "boolean": ({"true": True, "False": False}, ["maybe", "2"]),
    "decimal(5,2)": ({"1.5": Decimal("1.50"), "1.5e1": Decimal("15.00")}, ["1.505", "1000", "x"]),
    "double": ({"0.1": 0.1, "1e-3": 0.001}, ["1e400", "1d", "x"]),
    "array<decimal(5,2)>": ({"[1.5,2]": [Decimal("1.50"), Decimal("2.00")]}, ["[1.239]", "7"]),
    "array<timestamp>": (
        {'["2024-03-01T10:00Z",null]': [utc(2024, 3, 1, 10), None]},
        ['["2024-03-01T10:00:00.123456789Z"]', '["soon"]'],
    ),
    "array<string>": ({"[1.50,1.5,true]": ["1.50", "1.5", "true"]}, ['["\\ud800"]', '["a"']),
    "map<string,int>": ({'{"a":1}': [("a", 1)], "{}": []}, ['{"a":1.5}', '{"a":1,"a":2}']),
    "map<int,int>": ({'{"1":2}': [(1, 2)]}, ['{"x":1}', '{"1":1,"01":2}']),
    "struct<a:int,b:array<struct<c:double>>>": (
        {'{"a":1,"b":[{"c":0.5},null]}': {"a": 1, "b": [{"c": 0.5}, None]}},
        ['{"a":"x"}', '{"b":[{"c":1e400}]}', '{"a":1},"x":{"a":2}', "[1]"],
    ),
    "array<array<int>>": ({"[[1],null,[]]": [[1], None, []]}, ["[[1],7]", "[[1.5]]"]),
}  # fmt: skip


def test_values_fit_exactly_or_not_at_all(folder: Folder) -> None:
    """Values in CSV and JSON, nested ones too, fit exactly or make their row unparsable."""
    columns = {"id": "string"} | {f"c{at}": type_ for at, type_ in enumerate(NUMBERS)}
    rows: list[dict[str, str]] = []
    wanted: list[Any] = []
    for at, (type_, (good, bad)) in enumerate(NUMBERS.items()):
        for text in [*good, *bad]:
            rows.append({"id": f"{len(rows):02}", f"c{at}": text})
            wanted.append(good.get(text, f"unparsable: c{at} is not {type_}"))

    def found(name: str, lines: list[str]) -> list[Any]:
        folder.files.clear()
        folder.put(name, "\n".join(lines))
        return [
            row["_problem"]
            or next((row[one] for one in [*columns][1:] if row[one] is not None), None)
            for row in folder.rows(columns)
        ]

    full = dict.fromkeys(columns) | rows[0]  # so that no key is missing
    assert found("a.json", [json.dumps(row) for row in (full, *rows[1:])]) == wanted
    cells = [[row.get(one, "").replace('"', '""') for one in columns] for row in rows]
    lines = [",".join(f'"{cell}"' if cell else "" for cell in row) for row in cells]
    empty = next(at for at, row in enumerate(rows) if "" in row.values())
    wanted[empty] = None  # an empty field of CSV is NULL
    assert found("a.csv", [",".join(columns), *lines]) == wanted


WIDE = {"id": "int", "n": "bigint", "x": "double", "d": "decimal(20,2)"}
FILES: dict[str, tuple[dict[str, pa.DataType], dict[str, Any]]] = {
    "old": (
        {"id": pa.int32(), "n": pa.int32(), "x": pa.float32(), "d": pa.decimal128(5, 2)},
        {"id": 1, "n": 2**31 - 1, "x": 0.5, "d": Decimal("999.99")},
    ),
    "new": (
        {"id": pa.int32(), "n": pa.int64(), "x": pa.float64(), "d": pa.decimal128(20, 2)},
        {"id": 2, "n": 2**31, "x": 0.1, "d": Decimal("12345678901234567.89")},
    ),
}


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_files_from_before_and_after_a_type_became_wider(folder: Folder, ending: str) -> None:
    """In each format the values are the ones in the files."""
    for name, (types, row) in FILES.items():
        contents = {
            "csv": ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n",
            "json": "{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}",
            "parquet": pa.Table.from_pylist([row], pa.schema([*types.items()])),
        }
        folder.put(f"{name}.{ending}", contents[ending])

    assert folder.by_name(WIDE) == {
        f"{name}.{ending}": [tuple(row.values())] for name, (_, row) in FILES.items()
    }


PARTS = {"l": "array<bigint>", "m": "map<string,double>", "s": "struct<a:decimal(20,2),b:bigint>"}


@pytest.mark.parametrize("ending", ["orc", "parquet"])
def test_parts_from_before_and_after_their_type_became_wider(folder: Folder, ending: str) -> None:
    """In lists, maps and objects, as in columns."""
    for name, kinds in (
        ("new", (pa.int64(), pa.float64(), pa.decimal128(20, 2))),
        ("old", (pa.int32(), pa.float32(), pa.decimal128(5, 2))),
    ):
        types = {
            "l": pa.list_(kinds[0]),
            "m": pa.map_(pa.string(), kinds[1]),
            "s": pa.struct([("a", kinds[2]), ("b", kinds[0])]),
        }
        row = {"l": [1, None], "m": [("k", 0.5)], "s": {"a": Decimal("1.50"), "b": 7}}
        folder.put(f"{name}.{ending}", pa.Table.from_pylist([row], pa.schema([*types.items()])))

    found = folder.by_name(PARTS)

    assert found[f"old.{ending}"] == found[f"new.{ending}"] == [tuple(row.values())]
