"""Stored values are those in the file, for every type and format, or the row is set aside.

Texts in many notations go through the three formats that contain text. What one
accepts, all accept alike, and a plan's estimate accepts the same texts for timestamps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.spark.reading.folder import Folder, utc

from infold.core.interval import micros_of
from infold.lake.reading import timestamp_text
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
2024-03-01T10:00:00Z junk | 2024-03-01T10:00:00ZZ | 2024-03-01T10:00:00+1:5
"""
NOTATIONS = [text.strip() for text in TIMES.replace("\n", "|").split("|") if text.strip()]


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Iterator[Folder]:
    """An empty folder."""
    return Folder(tmp_path, spark)  # type: ignore[return-value]


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
        estimate = {text: timestamp_text.iso(text) for text in texts}
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

    @pytest.mark.parametrize(
        ("written", "good", "finer"),
        [
            ("epoch_seconds", "1709287200.000001", "1709287200.0000001"),
            ("epoch_millis", "1709287200000.001", "1709287200000.0001"),
            ("epoch_micros", "1.709287200000001e15", "1709287200000001.5"),
            (
                "yyyy-MM-dd HH:mm:ss.SSSSSSSSS",
                "2024-03-01 10:00:00.000001000",
                "2024-03-01 10:00:00.000001001",
            ),
        ],
    )
    def test_no_part_of_a_microsecond_is_cut_off(
        self, folder: Folder, written: str, good: str, finer: str
    ) -> None:
        """A part of a microsecond is never cut off, in any notation."""
        texts = sorted([good, finer])
        wanted: dict[str, Any] = {good: utc(2024, 3, 1, 10, 0, 0, 1), finer: "unparsable"}
        for found in in_every_format(folder, "timestamp", texts, timestamp_format=written):
            assert found == wanted
        parse = timestamp_text.parser(written)
        if parse is not None:
            assert parse(good) == micros_of(wanted[good])
            assert parse(finer) is None

    def test_nanoseconds_of_parquet(self, folder: Folder) -> None:
        """Nanoseconds of Parquet are stored if they are whole microseconds, and set aside if
        not.
        """
        near, odd = 1_709_287_200_123_457_000, 1_709_287_200_123_456_001
        column = pa.array([near, odd, None, -1_000, -1], pa.timestamp("ns"))
        folder.put("a.parquet", pa.table({"id": ["a", "b", "c", "d", "e"], "v": column}))
        assert folder.values({"id": "string", "v": "timestamp"}) == [
            ("a", utc(2024, 3, 1, 10, 0, 0, 123457)),
            ("unparsable: v is not timestamp",),
            ("c", None),
            ("d", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
            ("unparsable: v is not timestamp",),
        ]

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

    def test_times_of_long_ago_in_avro(self, folder: Folder) -> None:
        """Times of long ago are read by today's calendar in Avro too."""
        columns = {"at": pa.array(LONG_AGO, pa.timestamp("us", "UTC")), "day": pa.array(DAYS)}
        folder.put("a.avro", pa.table(columns))

        found = folder.values({"at": "timestamp", "day": "date"})

        assert sorted(found) == sorted(zip(LONG_AGO, DAYS, strict=True))

    def test_times_of_long_ago_in_orc(self, folder: Folder) -> None:
        """Times of long ago in ORC are read by the calendar that Spark and Hive write them in."""
        columns = {"at": pa.array(LONG_AGO, pa.timestamp("us", "UTC")), "day": pa.array(DAYS)}
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


class TestTexts:
    """Two ids that differ in the file differ in the table."""

    def test_numbers_in_a_string_column(self, folder: Folder) -> None:
        """Numbers in a string column are stored as written, nested ones too."""
        numbers = ["1.5", "1.50", "15e-1", "1.5E0", "-0", "0", "-0.0", "1e400", "10", "1e1"]
        lines = [f'{{"id": {number}, "o": {{"v": [{number}]}}}}' for number in numbers]
        folder.put("a.json", "\n".join(lines))
        found = folder.in_order("a.json", {"id": "string", "o": "string"})
        assert [row["id"] for row in found] == numbers
        assert [row["o"] for row in found] == [f'{{"v":[{number}]}}' for number in numbers]

    def test_what_is_no_number_is_none(self, folder: Folder) -> None:
        """Reading numbers as text does not make valid JSON of anything that is not."""
        bad = ["01", "1.", ".5", "+1", "-", "1e", "0x1", "1_0", "1 2", "NaN", "-Infinity", "{1:2}"]
        folder.put("a.json", "\n".join(f'{{"id":{text}}}' for text in bad))
        found = folder.rows({"id": "string"})
        assert {row["_problem"] for row in found} == {"unparsable: not one JSON object"}
        assert len(found) == len(bad)

    def test_half_of_a_pair_of_surrogates(self, folder: Folder) -> None:
        """Four ids with half a surrogate pair do not become
        one question mark; a whole pair is a character.
        """
        bad = ["\\ud800", "\\ud801", "\\uDFFF", "x\\udc00", "\\ud83d\\ud83d", "\\\\\\ud800"]
        good = {"\\ud83d\\ude00": "\U0001f600", "\\\\ud800": "\\ud800", "\\u00e4": "\u00e4"}
        lines = [f'{{"id":"{text}"}}' for text in (*bad, *good)]
        folder.put("a.json", "\n".join(lines))
        found = folder.in_order("a.json", {"id": "string"})
        problem = "unparsable: half of a pair of surrogates"
        assert [row["_problem"] for row in found] == [problem] * len(bad) + [None] * len(good)
        assert [row["id"] for row in found[len(bad) :]] == list(good.values())

    def test_bytes_of_parquet_that_are_not_utf8(self, folder: Folder) -> None:
        """Parquet bytes that are not UTF-8, in a column declared as text, set the row aside."""
        texts = pa.array([b"u\xe4", b"good"]).view(pa.string())
        folder.put("a.parquet", pa.table({"id": texts}))
        assert sorted(folder.values({"id": "string"})) == [
            ("good",),
            ("unparsable: id is not string",),
        ]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_lines_of_control_characters_are_rows(self, folder: Folder, name: str) -> None:
        """Only a line of spaces and tabs is blank; a line
        of NUL bytes is a row that cannot be used.
        """
        folder.put(name, b"id,n\na,1\n\0\0\0\n\0,2\n\x01\x02\n\t\n  \n\n\x0b\nb\0,3\n\0")
        found = folder.rows({"id": "string", "n": "int"})
        assert sorted((row["id"] or row["_raw"], row["n"]) for row in found if row["n"]) == [
            ("\0", 2),
            ("a", 1),
            ("b\0", 3),
        ]
        assert sorted(row["_raw"] for row in found if row["_problem"]) == [
            "\0",
            "\0\0\0",
            "\x01\x02",
            "\x0b",
        ]

    def test_a_line_of_tabs_is_a_row_where_tabs_are_delimiters(self, folder: Folder) -> None:
        """Where tabs separate fields, a line of tabs is a row of NULLs."""
        folder.put("a.csv", "id\tn\na\t1\n\t\n\t\t\n\n")
        found = folder.rows({"id": "string", "n": "int"}, delimiter="\t")
        assert sorted((row["_raw"], row["_problem"]) for row in found) == [
            ("\t", None),
            ("\t\t", "unparsable: wrong number of fields"),
            ("a\t1", None),
        ]


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


@pytest.mark.parametrize("type_", list(NUMBERS))
def test_values_fit_exactly_or_not_at_all(folder: Folder, type_: str) -> None:
    """Values in CSV and JSON, nested ones too, fit exactly or make their row unparsable."""
    good, bad = NUMBERS[type_]
    wanted = {**good, **dict.fromkeys(bad, "unparsable")}
    csv, jsons = in_every_format(folder, type_, sorted(wanted))
    if "" in wanted:
        csv[""] = "unparsable"  # an empty field of CSV is NULL
    assert csv == wanted
    assert jsons == wanted
