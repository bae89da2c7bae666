"""The files of a source are read exactly, or the row is unparsable with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark.reading.folder import Folder, utc
from tests.spark.reading.written import TABLES

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Column, Drift, NewColumns, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ALL = {
    "id": "string",
    "n": "int",
    "big": "bigint",
    "amount": "decimal(18,2)",
    "x": "double",
    "ok": "boolean",
    "day": "date",
    "at": "timestamp",
}
"""One column of each simple type."""

FEW = {"id": "string", "n": "int"}


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Iterator[Folder]:
    """An empty folder."""
    return Folder(tmp_path, spark)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'id,n\na\x00b,1\n"\x00",2\n'),
        ("a.json", '{"id":"a\\u0000b","n":1}\n{"id":"\\u0000","n":2}'),
    ],
)
def test_a_nul_is_a_character(folder: Folder, name: str, text: str) -> None:
    """A NUL character is part of a text in both formats, so that two ids do not become one."""
    folder.put(name, text)
    assert sorted(folder.values(FEW)) == [("\x00", 2), ("a\x00b", 1)]


class TestCsv:
    """CSV values are read as text and have to fit their declared types."""

    def test_values_of_each_type(self, folder: Folder) -> None:
        """CSV values of each type are read as people write them; an offset counts, none means
        UTC.
        """
        folder.put(
            "a.csv",
            "id,n,big,amount,x,ok,day,at\n"
            "a,1,9007199254740993,1.50,0.1,true,2024-03-01,2024-03-01T10:00:00.123456\n"
            "b,-1,-1,-0.5,1e3,false,2024-12-31,2024-03-01 10:00:00+05:30\n"
            "c,,,,,,,\n",
        )
        assert folder.values(ALL) == [
            (
                "a",
                1,
                9007199254740993,
                Decimal("1.50"),
                0.1,
                True,
                date(2024, 3, 1),
                utc(2024, 3, 1, 10, 0, 0, 123456),
            ),
            ("b", -1, -1, Decimal("-0.50"), 1e3, False, date(2024, 12, 31), utc(2024, 3, 1, 4, 30)),
            ("c", None, None, None, None, None, None, None),
        ]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_a_value_that_does_not_fit_makes_the_row_unparsable(
        self, folder: Folder, name: str
    ) -> None:
        """A CSV value that does not fit makes its row unparsable, and every such column is
        named.
        """
        wrong = {
            "n": ["x", "1.5", "3000000000"],
            "amount": ["1.239", "12345678901234567", "1,5"],
            "x": ["1d", "1e400", "."],
            "ok": ["maybe"],
            "day": ["2024-02-30", "2024-03-01 10:00", "1/3/2024"],
            "at": ["10:00", "T10:00", "1:00-08:00", "2024-13-01", "20240301", "1709287200"],
        }
        lines: list[str] = []
        expected: list[tuple[str]] = []
        for column, values in wrong.items():
            for value in values:
                fields = dict.fromkeys(ALL, "") | {"id": f"{len(lines):02}", column: f'"{value}"'}
                lines.append(",".join(fields.values()))
                expected.append((f"unparsable: {column} is not {ALL[column]}",))
        lines.append("98,x,,,,maybe,,")
        expected.append(("unparsable: n is not int, ok is not boolean",))
        folder.put(name, ",".join(ALL) + "\n" + "\n".join(lines) + "\n")
        assert folder.values(ALL) == expected

    @pytest.mark.parametrize(
        ("type_", "good", "bad"),
        [
            ("decimal(38,2)", ["1.230", "-1.2", ".5", "7.", "120e-2", "1.2e0"], ["1.239", "1e-3"]),
            ("decimal(37,2)", ["1.2300"], ["1.2301", "0.001", "12301e-4", "."]),
            ("decimal(38,0)", ["1" * 38, "1.5e1", "1000e-3", "0e-9"], ["1" * 39, "0.1", "1.5e0"]),
            ("decimal(38,38)", [f"0.{'1' * 38}"], [f"0.{'1' * 39}", "1"]),
            ("decimal(5,2)", [" 1.5 ", "1.5e2"], ["1.2345e1", "1e3", "1.5 x", "e5", ""]),
        ],
    )
    def test_a_decimal_is_never_rounded(
        self, folder: Folder, type_: str, good: list[str], bad: list[str]
    ) -> None:
        """A decimal with digits beyond its scale is unparsable; trailing zeros are not."""
        lines = [f"{at:02},{text}" for at, text in enumerate(good)]
        lines += [
            f"{at},x{text}" if not text else f"{at},{text}" for at, text in enumerate(bad, 50)
        ]
        folder.put("a.csv", "id,v\n" + "\n".join(lines) + "\n")
        assert folder.values({"id": "string", "v": type_}) == [
            *((f"{at:02}", Decimal(text)) for at, text in enumerate(good)),
            *((f"unparsable: v is not {type_}",) for _ in bad),
        ]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_bytes_that_are_not_utf8_make_the_row_unparsable(
        self, folder: Folder, name: str
    ) -> None:
        """Bytes that are not UTF-8 make a CSV row unparsable,
        as two users would become one; other text is unchanged.
        """
        good = "\ufeffid;n\n\u00e4\u20ac\U0001f600\ufffd;1\n".encode()
        folder.put(name, good + b"u\xe4;2\nu\xfc;3\n\xff\nz;4\n")
        found = folder.rows(FEW, delimiter=";")
        assert sorted(
            (row["id"] or "", row["n"], row["_problem"], row["_raw"]) for row in found
        ) == [
            ("", None, "unparsable: not UTF-8", "u\ufffd;2"),
            ("", None, "unparsable: not UTF-8", "u\ufffd;3"),
            ("", None, "unparsable: not UTF-8", "\ufffd"),
            ("z", 4, None, "z;4"),
            ("\u00e4\u20ac\U0001f600\ufffd", 1, None, "\u00e4\u20ac\U0001f600\ufffd;1"),
        ]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_a_delimiter_beyond_ascii(self, folder: Folder, name: str) -> None:
        """A delimiter beyond ASCII is one character, whatever its bytes."""
        folder.put(name, "id\u00a6n\n\u00e4\u00a61\n")
        assert folder.values(FEW, delimiter="\u00a6") == [("\u00e4", 1)]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_a_row_of_the_wrong_length_is_unparsable(self, folder: Folder, name: str) -> None:
        """A CSV row with too few or too many fields is unparsable; blank lines are ignored."""
        folder.put(name, "id,n\na\n\nb,2\n  \nc,3,4\n")
        found = folder.rows(FEW)
        assert [(row["_raw"], row["_problem"]) for row in found] == [
            ("a", "unparsable: wrong number of fields"),
            ("b,2", None),
            ("c,3,4", "unparsable: wrong number of fields"),
        ]

    def test_an_empty_field_is_null_and_a_quoted_one_is_an_empty_string(
        self, folder: Folder
    ) -> None:
        """In a string column an empty field is NULL and a
        quoted one is empty; an empty number is NULL.
        """
        folder.put("a.csv", 'id,n\n,1\n"",2\n"3",""\n')
        assert folder.values(FEW) == [("", 2), (None, 1), ("3", None)]

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
    def test_quotes_line_breaks_and_a_byte_order_mark(self, folder: Folder, name: str) -> None:
        """Quoted CSV fields follow RFC 4180: doubled quotes,
        line breaks, no escapes; a byte order mark is ignored.
        """
        text = '\ufeffid,n\r\n"say ""hi""",1\r\n"two\nlines",2\r\nback\\slash,3\r\n"a,b",4\r\n'
        folder.put(name, text)
        found = sorted(folder.values(FEW), key=lambda row: row[1])
        assert found == [('say "hi"', 1), ("two\nlines", 2), ("back\\slash", 3), ("a,b", 4)]

    def test_the_order_of_columns_may_differ_from_file_to_file(self, folder: Folder) -> None:
        """Each CSV file's own header gives its column order, and rows know their file."""
        folder.put("a.csv", "id,n\na,1\n")
        folder.put("b.csv.gz", "n,id\n2,b\n")
        folder.put("c.csv", "n,id\n3,c\n")
        folder.put("empty.csv", "")
        folder.put("header.csv", "id,n\n")
        found = [(row["_source_file"], row["id"], row["n"]) for row in folder.rows(FEW)]
        assert found == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]

    def test_names_with_anything_in_them(self, folder: Folder) -> None:
        """Dots, quotes, blanks and reserved words in
        columns, patterns and blanks in paths, are read.
        """
        columns = {"a.b": "string", "select": "int", "it's": "string", "back`tick": "int"}
        folder.put("x [1]{2}*?%20ü+.csv", "a.b,select,it's,back`tick\nv,1,w,2\n")
        folder.put("x 2.csv", "a.b,select,it's,back`tick\nv,3,w,4\n")
        assert folder.values(columns) == [("v", 1, "w", 2), ("v", 3, "w", 4)]

    def test_another_delimiter(self, folder: Folder) -> None:
        """With another delimiter the raw row set aside is as it was in the file."""
        folder.put("a.csv", "id;n\na,b;x\n")
        assert folder.rows(FEW, delimiter=";")[0]["_raw"] == "a,b;x"

    @pytest.mark.parametrize(
        ("written", "good", "bad"),
        [
            ("epoch_seconds", "1709287200.5", "2024-03-01"),
            ("epoch_millis", "1709287200500", "x"),
            ("epoch_micros", "1709287200500000", "99999999999999999999"),
            ("dd.MM.yyyy HH:mm:ss.S", "01.03.2024 10:00:00.5", "2024-03-01"),
        ],
    )
    def test_timestamp_formats(self, folder: Folder, written: str, good: str, bad: str) -> None:
        """Only the declared timestamp format is accepted."""
        folder.put("a.csv", f"id,at\n1,{good}\n2,{bad}\n")
        columns = {"id": "string", "at": "timestamp"}
        assert folder.values(columns, timestamp_format=written) == [
            ("1", utc(2024, 3, 1, 10, 0, 0, 500_000)),
            ("unparsable: at is not timestamp",),
        ]

    def test_a_timestamp_without_time_zone_is_taken_as_utc(self, folder: Folder) -> None:
        """A timestamp without time zone is UTC, and a written offset is applied."""
        folder.put("a.csv", "id,at\n1,2024-03-01T10:00:00+02:00\n")
        columns = {"id": "string", "at": "timestamp_ntz"}
        assert folder.values(columns) == [("1", utc(2024, 3, 1, 8).replace(tzinfo=None))]


class TestJson:
    """JSON lines have one complete object a line."""

    def test_values_of_each_type(self, folder: Folder) -> None:
        """JSON values of each type keep every digit; fitting
        strings are converted; a missing key is NULL.
        """
        folder.put(
            "a.json",
            '{"id":"a","n":1,"big":9007199254740993,"amount":1.50,"x":0.1,"ok":true,'
            '"day":"2024-03-01","at":"2024-03-01T10:00:00Z"}\n'
            '{"id":"b","n":"1","big":"9007199254740993","amount":"1.5","x":"0.1","ok":"true"}\n'
            '{"id":"c","n":null}\n',
        )
        first = ("a", 1, 9007199254740993, Decimal("1.50"), 0.1, True)
        assert folder.values(ALL) == [
            (*first, date(2024, 3, 1), utc(2024, 3, 1, 10)),
            ("b", *first[1:], None, None),
            ("c", *[None] * 7),
        ]

    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_what_is_not_one_object_is_unparsable(self, folder: Folder, name: str) -> None:
        """A line that is not one JSON object is unparsable, two objects on one line included."""
        bad = [
            "{",
            "no record",
            '{"id":"a"}{"id":"b"}',
            '{"id":"a"} junk',
            '{"id":"a"},{"id":"b"}',
            '[{"id":"a"}]',
            "null",
            "5",
            '{"id":"a","id":"b"}',
            "{'id':'a'}",
            '{"id":"a","n":NaN}',
        ]
        folder.put(name, '\ufeff{"id":"good","n":1}\n\n  \n' + "\n".join(bad) + "\n")
        found = {row["_raw"].lstrip("\ufeff"): row for row in folder.rows(FEW)}
        assert set(found) == {*bad, '{"id":"good","n":1}'}
        assert {found[line]["_problem"] for line in bad} == {"unparsable: not one JSON object"}
        assert found['{"id":"good","n":1}']["id"] == "good"

    def test_a_value_that_does_not_fit_is_named(self, folder: Folder) -> None:
        """A JSON value that does not fit is named: fractions
        are no integers, and decimals are not rounded.
        """
        folder.put(
            "a.json",
            '{"id":"1","n":1.5}\n{"id":"2","amount":0.005}\n{"id":"3","ok":2,"day":20240301}\n'
            '{"id":"4","n":""}\n{"id":"5","n":{"a":1}}\n{"id":"6","amount":12345678901234567.5}\n',
        )
        assert folder.values({name: ALL[name] for name in ("id", "n", "amount", "ok", "day")}) == [
            ("unparsable: n is not int",),
            ("unparsable: amount is not decimal(18,2)",),
            ("unparsable: ok is not boolean, day is not date",),
            ("unparsable: n is not int",),
            ("unparsable: n is not int",),
            ("unparsable: amount is not decimal(18,2)",),
        ]

    def test_numbers_are_what_is_written(self, folder: Folder) -> None:
        """JSON numbers are read as written: texts keep every digit and decimals are not rounded."""
        long = "1234567890" * 4 + "1"
        folder.put(
            "a.json",
            f'{{"id":"1","x":1e400}}\n{{"id":"2","x":{long}}}\n{{"id":{long}}}\n{{"id":1e5}}\n'
            '{"id":"5","v":1e5}\n{"id":"6","v":1.5e-2}\n{"id":"7","v":1.239}\n'
            '{"id":"8","v":12345678901234567890e0}\n{"id":"9","v":1.00000000000000000001e0}\n'
            f'{{"id":"a","v":1.{"0" * 40}1}}\n{{"id":12345678901234567890,"x":"Infinity"}}\n'
            f'{{"id":"{long}e5"}}\n{{"id":"100000.0"}}\n{{"id":1e5,"v":1.5e-3,"x":-1e999}}\n',
        )
        columns = {"id": "string", "v": "decimal(38,2)", "x": "double"}
        values = [
            row["_problem"] or (row["id"], row["v"], row["x"])
            for row in folder.in_order("a.json", columns)
        ]
        assert values == [
            "unparsable: x is not double",
            ("2", None, float(long)),
            (long, None, None),
            ("1e5", None, None),
            ("5", Decimal("100000.00"), None),
            "unparsable: v is not decimal(38,2)",
            "unparsable: v is not decimal(38,2)",
            ("8", Decimal("12345678901234567890.00"), None),
            "unparsable: v is not decimal(38,2)",
            "unparsable: v is not decimal(38,2)",
            ("12345678901234567890", None, float("inf")),
            (f"{long}e5", None, None),
            ("100000.0", None, None),
            "unparsable: v is not decimal(38,2), x is not double",
        ]

    def test_numbers_in_objects_are_what_is_written(self, folder: Folder) -> None:
        """JSON numbers inside of objects and lists are read as written, declared or kept as
        text.
        """
        long = "1234567890" * 4 + "1"
        folder.put(
            "a.json",
            f'{{"t":{{"v":{long}}}}}\n{{"t":[1, 1e400]}}\n{{"t":{{"v":1e-400}}}}\n'
            '{"t":{"v":1e5}}\n{"t":{"v":12345678901234567890123.5}}\n{"t":"[1e400]"}\n'
            f'{{"x":[1e400]}}\n{{"x":[{long}, 1e5]}}\n{{"x":[1.5,2]}}\n'
            f'{{"d":[{long}]}}\n{{"d":[1e2]}}\n{{"d":[1.25]}}\n',
        )
        columns = {"t": "string", "x": "array<double>", "d": "array<decimal(38,2)>"}
        values = [
            row["_problem"] or row["t"] or row["x"] or row["d"]
            for row in folder.in_order("a.json", columns)
        ]
        assert values == [
            f'{{"v":{long}}}',
            "[1,1e400]",
            '{"v":1e-400}',
            '{"v":1e5}',
            '{"v":12345678901234567890123.5}',
            "[1e400]",
            "unparsable: x is not array<double>",
            [float(long), 1e5],
            [1.5, 2.0],
            "unparsable: d is not array<decimal(38,2)>",
            [Decimal("100.00")],
            [Decimal("1.25")],
        ]

    @pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
    def test_bytes_that_are_not_utf8_make_the_row_unparsable(
        self, folder: Folder, name: str
    ) -> None:
        """Bytes that are not UTF-8 make a JSON row unparsable; a written U+FFFD is a text."""
        good = '{"id":"\u00e4\U0001f600\ufffd","n":1}\n'.encode()
        folder.put(name, good + b'{"id":"u\xe4","n":2}\n{"id":"u\xfc","n":3}\n')
        assert [(row["id"], row["_problem"], row["_raw"]) for row in folder.rows(FEW)] == [
            (None, "unparsable: not UTF-8", '{"id":"u\ufffd","n":2}'),
            (None, "unparsable: not UTF-8", '{"id":"u\ufffd","n":3}'),
            ("\u00e4\U0001f600\ufffd", None, '{"id":"\u00e4\U0001f600\ufffd","n":1}'),
        ]

    def test_nested_values(self, folder: Folder) -> None:
        """Nested JSON is read as declared lists and objects, or kept as text in a string column."""
        columns = {
            "id": "string",
            "tags": "array<int>",
            "who": "struct<name: string, age: int>",
            "raw": "string",
        }
        folder.put(
            "a.json",
            '{"id":"1","tags":[1,2],"who":{"name":"a","age":3},"raw":{"k":[1]}}\n'
            '{"id":"2","tags":[1,"x"]}\n{"id":"3","who":{"name":"a","age":"old"}}\n'
            '{"id":"4","tags":7}\n',
        )
        assert folder.values(columns) == [
            ("1", [1, 2], {"name": "a", "age": 3}, '{"k":[1]}'),
            ("unparsable: tags is not array<int>",),
            ("unparsable: who is not struct<name: string, age: int>",),
            ("unparsable: tags is not array<int>",),
        ]

    def test_keys_with_anything_in_them(self, folder: Folder) -> None:
        """Dots and quotes in JSON keys are part of the name."""
        folder.put("a.json", '{"a.b":"v","select":1,"it\'s":"w"}\n')
        columns = {"a.b": "string", "select": "int", "it's": "string"}
        assert folder.values(columns) == [("v", 1, "w")]


class TestParquet:
    """Parquet values are typed: wider types fit and narrower ones do not."""

    def test_wider_types_fit(self, folder: Folder) -> None:
        """Smaller integers, floats, decimals and timestamps
        of every kind fit wider declared types, as UTC.
        """
        moment = datetime(2024, 3, 1, 10, 0, 0, 5)  # noqa: DTZ001 - without a zone on purpose
        columns = {
            "i": "bigint",
            "u": "bigint",
            "f": "double",
            "d": "decimal(18,4)",
            "naive": "timestamp",
            "zoned": "timestamp",
            "nanos": "timestamp",
            "day": "timestamp",
            "cat": "string",
            "none": "int",
            "text": "timestamp",
        }
        folder.put(
            "a.parquet",
            pa.table(
                {
                    "i": pa.array([1], pa.int8()),
                    "u": pa.array([2**32 - 1], pa.uint32()),
                    "f": pa.array([0.5], pa.float32()),
                    "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
                    "naive": pa.array([moment], pa.timestamp("us")),
                    "zoned": pa.array([moment], pa.timestamp("ms", "Europe/Berlin")),
                    "nanos": pa.array([moment], pa.timestamp("ns")),
                    "day": pa.array([date(2024, 3, 1)]),
                    "cat": pa.array(["a"]).dictionary_encode(),
                    "none": pa.nulls(1),
                    "text": pa.array(["2024-03-01"]),
                }
            ),
        )
        assert folder.values(columns) == [
            (
                1,
                2**32 - 1,
                0.5,
                Decimal("1.5000"),
                moment.replace(tzinfo=UTC),
                moment.replace(microsecond=0, tzinfo=UTC),
                moment.replace(tzinfo=UTC),
                utc(2024, 3, 1),
                "a",
                None,
                utc(2024, 3, 1),
            )
        ]

    def test_values_held_in_another_way_are_the_same(self, folder: Folder) -> None:
        """A file may ask readers of Arrow for views or long offsets: its own types are the same."""
        views = {
            "text": pa.array(["a"], pa.string_view()),
            "bytes": pa.array([b"b"], pa.binary_view()),
            "long": pa.array([["c"]], pa.large_list(pa.large_string())),
        }
        folder.put("a.parquet", pa.table(views))
        columns = {"text": "string", "bytes": "binary", "long": "array<string>"}
        assert folder.values(columns) == [("a", b"b", ["c"])]

    def test_text_and_numbers_as_timestamps_are_judged_row_by_row(self, folder: Folder) -> None:
        """Texts and numbers in Parquet follow the declared
        timestamp format row by row, as in text files.
        """
        folder.put("a.parquet", pa.table({"id": ["1", "2"], "at": ["2024-03-01", "soon"]}))
        columns = {"id": "string", "at": "timestamp"}
        found = folder.rows(columns)
        assert [row["at"] for row in found] == [utc(2024, 3, 1), None]
        assert [row["_problem"] for row in found] == [None, "unparsable: at is not timestamp"]
        assert found[1]["_raw"] == '{"id":"2","at":"soon"}'

    @pytest.mark.parametrize(
        ("declared", "found"),
        [
            ("int", pa.int64()),
            ("float", pa.float64()),
            ("double", pa.int64()),
            ("decimal(5,2)", pa.decimal128(6, 2)),
            ("date", pa.timestamp("us")),
            ("string", pa.int32()),
            ("timestamp", pa.int64()),
            ("boolean", pa.int32()),
        ],
    )
    def test_a_type_that_might_lose_something_is_drift(
        self, folder: Folder, declared: str, found: pa.DataType
    ) -> None:
        """A type that might lose something is drift, whatever the values are now."""
        folder.put("a.parquet", pa.table({"v": pa.nulls(1, found)}))
        with pytest.raises(InfoldError) as raised:
            folder.rows({"v": declared})
        assert raised.value.slug == "drift"
        assert raised.value.facts == (("a.parquet", f"column v is {found}, declared {declared}"),)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.json"])
def test_the_plan_grows_with_the_columns_and_no_faster(
    folder: Folder, spark: SparkSession, name: str
) -> None:
    """The query plan grows linearly with the number of columns.

    Conditions on values and problems must not repeat the reading for each
    mention: the plan of a table of ten columns once filled a heap of 2 GB.
    """

    def length(columns: int) -> int:
        names = [f"c{at}" for at in range(columns)]
        lines = json.dumps(dict.fromkeys(names, 1)), ",".join(names)
        folder.files.clear()
        folder.put(name, lines["csv" in name] + "\n")
        rows = folder.frame(dict.fromkeys(names, "decimal(18,2)"))
        asked = rows.where("_problem IS NULL").selectExpr("*", "c0 + c1 AS c").where("c > c0")
        return len(asked._jdf.queryExecution().optimizedPlan().toString())

    spark.conf.set("spark.sql.debug.maxToStringFields", 100_000)
    try:
        assert length(16) < 3 * length(8)
        assert length(8) < 50_000
    finally:
        spark.conf.unset("spark.sql.debug.maxToStringFields")


class TestDrift:
    """Files with undeclared columns or types are an error that lists them, or set aside."""

    FILES: Mapping[str, Mapping[str, str | pa.Table]] = {
        "csv": {
            "good.csv": "id,n\na,1\n",
            "less.csv": "id\nb\n",
            "more.csv": "id,n,extra\nc,1,2\n",
            "twice.csv": "id,n,n\nd,1,2\n",
            "case.csv": "ID,n\ne,1\n",
        },
        "json": {
            "good.json": '{"id":"a","n":1}\n{"id":"a2"}\n',
            "less.json": '{"id":"b"}\n',
            "more.json": '{"id":"c","n":1,"extra":2}\n{"n":1}\n',
            "empty.json": "\n",
            "broken.json": "{\n",
        },
        "parquet": {
            "good.parquet": pa.table({"id": ["a"], "n": pa.array([1], pa.int32())}),
            "less.parquet": pa.table({"id": ["b"]}),
            "more.parquet": pa.table({"id": ["c"], "n": [1], "extra": [2]}),
        },
    }  # fmt: skip

    def expected(self, format_: str) -> dict[str, str]:
        """How each file drifts."""
        found = {
            f"less.{format_}": "missing column n",
            f"more.{format_}": "extra column extra",
        }
        if format_ == "csv":
            found["twice.csv"] = "column n is there twice"
            found["case.csv"] = "missing column id; extra column ID"
        if format_ == "parquet":
            found["more.parquet"] += "; column n is int64, declared int"
        return found

    @pytest.mark.parametrize(
        ("format_", "in_process"),
        [("csv", True), ("json", True), ("parquet", True), ("json", False)],
    )
    def test_every_file_is_listed(
        self, folder: Folder, format_: str, in_process: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every file with drift is listed in one error, before any file is read."""
        if not in_process:
            monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        for name, content in self.FILES[format_].items():
            folder.put(name, content)
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW)
        assert dict(raised.value.facts) == self.expected(format_)

    @pytest.mark.parametrize(
        ("format_", "in_process"),
        [("csv", True), ("json", True), ("parquet", True), ("json", False)],
    )
    def test_rows_of_drifted_files_can_be_set_aside(
        self, folder: Folder, format_: str, in_process: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All rows of files with drift can be set aside
        with raw text and reason; the others are read.
        """
        if not in_process:
            monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        for name, content in self.FILES[format_].items():
            folder.put(name, content)
        found = folder.rows(FEW, on_drift=Drift.SET_ASIDE)
        good = [row for row in found if row["_source_file"] == 1]
        assert [row["_problem"] for row in good] == [None] * len(good)
        names = {id_: file.path for id_, file in folder.files}
        aside = {
            names[row["_source_file"]]: row["_problem"]
            for row in found
            if (row["_problem"] or "").startswith("drift: ")
        }
        assert aside == {name: f"drift: {drift}" for name, drift in self.expected(format_).items()}
        more = next(row for row in found if names[row["_source_file"]] == f"more.{format_}")
        assert more["id"] is None
        assert "extra" in more["_raw"] or format_ == "csv"

    @pytest.mark.parametrize("multiline", [False, True])
    def test_small_files_are_opened_once(
        self, folder: Folder, multiline: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their lines are kept from the look at their keys on, those of files with drift too."""
        monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        for number in range(4):
            folder.put(f"{number}.json", f'{{"id":"{number}","n":1}}\n')
        folder.put("more.json", '{"id":"x","n":1,"other":true}\n')
        rows = folder.frame(FEW, on_drift=Drift.SET_ASIDE, multiline=multiline)
        for _, file in folder.files:
            (folder.root / file.path).unlink()

        found = {row["_source_file"]: row["_problem"] or row["id"] for row in rows.collect()}

        wanted = {number + 1: str(number) for number in range(4)}
        assert found == {**wanted, 5: "drift: extra column other"}

    def test_a_packed_file_that_is_far_longer_than_it_looks(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is Spark's to read, line by line, and not to be held in memory."""
        monkeypatch.setattr("infold.spark.reading.lines_here._LONGEST", 10_000)
        folder.put("a.json.gz", '{"id":"a","n":1}\n' * 5_000)

        rows = folder.frame({"id": "string", "n": "bigint"})

        assert rows.count() == 5_000
        assert len(rows.inputFiles()) == 1

    @pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
    def test_files_may_be_ahead_of_the_declaration(self, folder: Folder, format_: str) -> None:
        """With `evolve` columns that are not declared stop nothing; other drift does."""
        for name, content in self.FILES[format_].items():
            folder.put(name, content)
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW, on_drift=Drift.EVOLVE)
        refused = dict(raised.value.facts)
        without = {
            name: "; ".join(part for part in how.split("; ") if not part.startswith("extra column"))
            for name, how in self.expected(format_).items()
        }
        assert refused == {name: how for name, how in without.items() if how}

    def test_a_first_line_that_is_no_header(self, folder: Folder) -> None:
        """A first line that is no header is one row set aside,
        while an empty file and a bare header have none.
        """
        page = '<html lang="en">'
        for name, text in {
            "a.csv": "id,n\na,1\n",
            "b.csv": page,
            "c.csv": '{"id": "a"}\n \n\n',
            "d.csv": "id,n\n",
            "e.csv": "",
            "f.csv.gz": page,
        }.items():
            folder.put(name, text)
        found = folder.rows(FEW, on_drift=Drift.SET_ASIDE)
        assert [(row["_source_file"], row["_raw"]) for row in found] == [
            (1, "a,1"),
            (2, page),
            (3, '{"id": "a"}'),
            (6, page),
        ]
        missing = "drift: missing column id; missing column n; extra column"
        assert [row["_problem"] for row in found][:2] == [None, f"{missing} {page}"]

    def test_a_header_of_nothing_declared_drifts_though_all_is_optional(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file with none of the declared columns drifts, even if every column is optional."""
        folder.put("a.csv", "<html>\n<body>\n")
        columns = (Column("id", "string", optional=True),)
        source = replace(folder.source(FEW), columns=columns, on_new_columns=NewColumns.IGNORE)
        monkeypatch.setattr(folder, "source", lambda *_, **__: source)
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW)
        facts = dict(raised.value.facts)
        assert facts == {"a.csv": "no column of the source is in its first line"}

    @pytest.mark.parametrize(
        "name",
        [
            *("a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.json.gz", "a.json.bz2", "a.json.zst"),
            *("a.parquet", "a.orc", "a.avro"),
        ],
    )
    def test_a_file_of_another_format(self, folder: Folder, name: str) -> None:
        """A file of another format is an error that says so and names the file."""
        path = folder.root / name
        path.write_bytes(b"not what it says")
        folder.files.append((1, ListedFile(name, 16, 0, "")))
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW)
        assert raised.value.slug == "unreadable-file"
        assert raised.value.facts[0] == ("file", name)

    @pytest.mark.parametrize(
        ("name", "really"), [("a.parquet", ".orc"), ("a.orc", ".avro"), ("a.avro", ".parquet")]
    )
    def test_what_a_file_begins_as(self, folder: Folder, name: str, really: str) -> None:
        """An ORC file that is called Parquet is an error that says so, as are others."""
        at = folder.root / f"b{really}"
        TABLES[really](pa.table({"id": ["a"], "n": ["1"]}), at)
        folder.put(name, at.read_bytes())
        what = {".parquet": "a Parquet file", ".orc": "an ORC file", ".avro": "an Avro file"}
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW)
        why = dict(raised.value.facts)["why"]
        wanted = what[Path(name).suffix]
        assert why.startswith(f"it begins as {what[really]} does, and not as {wanted}")


class TestIceberg:
    """Rows of an Iceberg source come from the data files asked for."""

    def test_rows_of_some_files(self, folder: Folder, spark: SparkSession, warehouse: Path) -> None:
        """Only rows of the data files asked for are read,
        though the table has others and has changed since.
        """
        from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
        from infold.lake.reading.iceberg_table import data_files
        from infold.spark.reading.source_rows import read

        spark.sql("CREATE NAMESPACE IF NOT EXISTS infold.outside")
        spark.sql("CREATE TABLE infold.outside.rows (id string, n int) USING iceberg")
        spark.sql("INSERT INTO infold.outside.rows VALUES ('a', 1)")
        location = sqlite_catalog(warehouse / "catalog.db").locations("outside")["rows"]
        (first,) = data_files(location)
        spark.sql("INSERT INTO infold.outside.rows VALUES ('b', 2)")
        source = Source(
            "raw.rows",
            Format.ICEBERG,
            (Column("id", "string"), Column("n", "bigint")),
            table="outside.rows",
        )
        target = Target("dev", warehouse=str(warehouse))
        project = Project("p", folder.root, None, {source.name: source}, (), target)
        rows = read(spark, project, source, [(7, first)]).toArrow().to_pylist()
        assert [(row["id"], row["n"], row["_source_file"]) for row in rows] == [("a", 1, 7)]
        gone = ListedFile("elsewhere.parquet", 1, 0, "1")
        with pytest.raises(InfoldError) as raised:
            read(spark, project, source, [(8, gone)])
        assert raised.value.slug == "source-changed"
