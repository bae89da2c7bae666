"""The files of a source are read exactly, or the row is unparsable with a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type
from tests.spark.reading.folder import Folder, utc
from tests.spark.reading.written import TABLES, avro

from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.model import Column, Drift, NewColumns, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW = {"id": "string", "n": "int"}
LENGTH = "unparsable: wrong number of fields"
NOT_UTF8 = "unparsable: not UTF-8"
NO_OBJECT = "unparsable: not one JSON object"
HALF = "unparsable: half of a pair of surrogates"


CSV: dict[str, tuple[str | bytes, list[Any]]] = {
    "a NUL is a character": ('id,n\na\0b,1\n"\0",2\n', [("\0", 2), ("a\0b", 1)]),
    "an empty field is NULL, a quoted one is empty": (
        'id,n\n,1\n"",2\n"3",""\n',
        [("", 2), (None, 1), ("3", None)],
    ),
    "wrong lengths, blank lines": (
        "id,n\na\n\nb,2\n  \nc,3,4\n",
        [("a", LENGTH), ("b", 2), ("c,3,4", LENGTH)],
    ),
    "a mark, doubled quotes, breaks, no escapes": (
        '\ufeffid,n\r\n"say ""hi""",1\r\n"two\nlines",2\r\nback\\slash,3\r\n"a,b",4\r\n',
        [('say "hi"', 1), ("two\nlines", 2), ("back\\slash", 3), ("a,b", 4)],
    ),
    "another order": ("n,id\n2,b\n", [("b", 2)]),
    "nothing": ("", []),
    "a header": ("id,n\n", []),
    "only spaces and tabs are blank": (
        b"id,n\na,1\n\0\0\0\n\0,2\n\x01\x02\n\t\n  \n\n\x0b\nb\0,3\n\0",
        [
            *(("a", 1), ("\0", 2), ("b\0", 3)),
            *((line, LENGTH) for line in ("\0", "\0\0\0", "\x01\x02", "\x0b")),
        ],
    ),
    "not UTF-8": (
        "\ufeffid,n\n\u00e4\u20ac\U0001f600\ufffd,1\n".encode() + b"u\xe4,2\nu\xfc,3\n\xff\nz,4\n",
        [
            *(("\u00e4\u20ac\U0001f600\ufffd", 1), ("z", 4)),
            *((line, NOT_UTF8) for line in ("u\ufffd,2", "u\ufffd,3", "\ufffd")),
        ],
    ),
}
"""Files, and the rows in them: values, or the raw text and what is wrong with it."""


class TestCsv:
    """CSV values are read as text and have to fit their declared types."""

    def test_rows_of_files(self, folder: Folder) -> None:
        """Rows are those of RFC 4180, by each file's own header, plain and packed."""
        for name, (content, _) in CSV.items():
            folder.put(f"{name}.csv", content)
            folder.put(f"{name}.csv.gz", content)

        found = folder.by_name(FEW)

        for name, (_, rows) in CSV.items():
            wanted = sorted(rows, key=str)
            assert (found[f"{name}.csv"], found[f"{name}.csv.gz"]) == (wanted, wanted), name

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

    def test_a_line_of_tabs_is_a_row_where_tabs_are_delimiters(self, folder: Folder) -> None:
        """Where tabs separate fields, a line of tabs is a row of NULLs."""
        folder.put("a.csv", "id\tn\na\t1\n\t\n\t\t\n\n")
        found = folder.by_name(FEW, delimiter="\t")["a.csv"]
        assert found == [("\t\t", LENGTH), ("a", 1), (None, None)]


LONG = "1234567890" * 4 + "1"
NUMBERS = ["1.5", "1.50", "15e-1", "1.5E0", "-0", "0", "-0.0", "1e400", "10", "1e1"]
NO_NUMBERS = ["01", "1.", ".5", "+1", "-", "1e", "0x1", "1_0", "1 2", "NaN", "-Infinity", "{1:2}"]
NO_OBJECTS = [
    *("{", "no record", "null", "5", "{'id':'a'}", '{"id":"a","id":"b"}', '[{"id":"a"}]'),
    *('{"id":"a"}{"id":"b"}', '{"id":"a"} junk', '{"id":"a"},{"id":"b"}', '{"id":"a","x":NaN}'),
]
HALVES = ["\\ud800", "\\ud801", "\\uDFFF", "x\\udc00", "\\ud83d\\ud83d", "\\\\\\ud800"]
KEPT = {
    "id": "string",
    "v": "decimal(38,2)",
    "x": "double",
    "text": "string",
    "list": "array<double>",
    "exact": "array<decimal(38,2)>",
    "tags": "array<int>",
    "who": "struct<name: string, age: int>",
}
LINES: list[tuple[str, dict[str, Any] | str]] = [
    # numbers are what is written
    ('{"id":"1","x":1e400}', "unparsable: x is not double"),
    (f'{{"id":"2","x":{LONG}}}', {"id": "2", "x": float(LONG)}),
    (f'{{"id":{LONG}}}', {"id": LONG}),
    ('{"id":1e5}', {"id": "1e5"}),
    ('{"id":"5","v":1e5}', {"id": "5", "v": Decimal("100000.00")}),
    ('{"id":"6","v":1.5e-2}', "unparsable: v is not decimal(38,2)"),
    ('{"id":"7","v":1.239}', "unparsable: v is not decimal(38,2)"),
    ('{"v":12345678901234567890e0}', {"v": Decimal("12345678901234567890.00")}),
    ('{"id":"9","v":1.00000000000000000001e0}', "unparsable: v is not decimal(38,2)"),
    (f'{{"id":"a","v":1.{"0" * 40}1}}', "unparsable: v is not decimal(38,2)"),
    (
        '{"id":12345678901234567890,"x":"Infinity"}',
        {"id": "12345678901234567890", "x": float("inf")},
    ),
    (f'{{"id":"{LONG}e5"}}', {"id": f"{LONG}e5"}),
    ('{"id":"100000.0"}', {"id": "100000.0"}),
    (
        '{"id":1e5,"v":1.5e-3,"x":-1e999}',
        "unparsable: v is not decimal(38,2), x is not double",
    ),
    *((f'{{"id":{n},"text":{{"v":[{n}]}}}}', {"id": n, "text": f'{{"v":[{n}]}}'}) for n in NUMBERS),
    *((f'{{"id":{text}}}', NO_OBJECT) for text in NO_NUMBERS),
    *((line, NO_OBJECT) for line in NO_OBJECTS),
    # in objects and lists as well, declared or kept as text
    (f'{{"text":{{"v":{LONG}}}}}', {"text": f'{{"v":{LONG}}}'}),
    ('{"text":[1, 1e400]}', {"text": "[1,1e400]"}),
    ('{"text":{"v":1e-400}}', {"text": '{"v":1e-400}'}),
    ('{"text":{"v":1e5}}', {"text": '{"v":1e5}'}),
    ('{"text":{"v":12345678901234567890123.5}}', {"text": '{"v":12345678901234567890123.5}'}),
    ('{"text":"[1e400]"}', {"text": "[1e400]"}),
    ('{"list":[1e400]}', "unparsable: list is not array<double>"),
    (f'{{"list":[{LONG}, 1e5]}}', {"list": [float(LONG), 1e5]}),
    ('{"list":[1.5,2]}', {"list": [1.5, 2.0]}),
    (f'{{"exact":[{LONG}]}}', "unparsable: exact is not array<decimal(38,2)>"),
    ('{"exact":[1e2]}', {"exact": [Decimal("100.00")]}),
    ('{"exact":[1.25]}', {"exact": [Decimal("1.25")]}),
    (
        '{"tags":[1,2],"who":{"name":"a","age":3},"text":{"k":[1]}}',
        {"tags": [1, 2], "who": {"name": "a", "age": 3}, "text": '{"k":[1]}'},
    ),
    ('{"tags":[1,"x"]}', "unparsable: tags is not array<int>"),
    ('{"tags":7}', "unparsable: tags is not array<int>"),
    ('{"who":{"age":"old"}}', "unparsable: who is not struct<name: string, age: int>"),
    # two ids that differ in the file differ in the table
    *((f'{{"id":"{text}"}}', HALF) for text in HALVES),
    ('{"id":"\\ud83d\\ude00"}', {"id": "\U0001f600"}),
    ('{"id":"\\\\ud800"}', {"id": "\\ud800"}),
    ('{"id":"\\u00e4"}', {"id": "\u00e4"}),
]
"""Lines of JSON, and their values that are not NULL, or what is wrong with them."""


class TestJson:
    """JSON lines have one complete object a line."""

    def test_what_a_line_says(self, folder: Folder) -> None:
        """Every digit is kept, nothing is rounded, and what does not fit is named."""
        folder.put("a.json", "\n".join(line for line, _ in LINES))

        found = [
            row["_problem"] or {name: row[name] for name in KEPT if row[name] is not None}
            for row in folder.in_order("a.json", KEPT)
        ]

        for (line, wanted), one in zip(LINES, found, strict=True):
            assert one == wanted, line

    def test_bytes_that_are_no_text(self, folder: Folder) -> None:
        """
        A line that is not UTF-8 is unparsable, plain and packed; a NUL, and a written U+FFFD, are
        text. A mark of UTF-8 before the first line is no part of it.
        """
        texts = '\ufeff{"id":"a\\u0000b","n":1}\n\n  \n{"id":"\\u0000","n":2}\n'
        texts += '{"id":"\u00e4\U0001f600\ufffd","n":3}\n'
        for name in ("b.json", "b.json.gz"):
            folder.put(name, texts.encode() + b'{"id":"u\xe4","n":2}\n{"id":"u\xfc","n":3}\n')

        found = folder.by_name(FEW)

        wanted: list[Any] = [("a\0b", 1), ("\0", 2), ("\u00e4\U0001f600\ufffd", 3)]
        wanted += [(f'{{"id":"u\ufffd","n":{n}}}', NOT_UTF8) for n in (2, 3)]
        assert found == dict.fromkeys(("b.json", "b.json.gz"), sorted(wanted, key=str))

    def test_keys_with_anything_in_them(self, folder: Folder) -> None:
        """Dots and quotes in JSON keys are part of the name."""
        folder.put("a.json", '{"a.b":"v","select":1,"it\'s":"w"}\n')
        columns = {"a.b": "string", "select": "int", "it's": "string"}
        assert folder.values(columns) == [("v", 1, "w")]


class TestParquet:
    """Parquet values are typed: wider types fit and narrower ones do not."""

    def test_wider_types_fit(self, folder: Folder) -> None:
        """
        Smaller integers, floats, decimals and timestamps of every kind fit wider declared types, as
        UTC. A file may ask readers of Arrow for views or long offsets: its own types are the same.
        """
        moment = datetime(2024, 3, 1, 10, 0, 0, 5)  # noqa: DTZ001 - without a zone on purpose
        micros = moment.replace(tzinfo=UTC)
        columns: dict[str, tuple[str, pa.Array, Any]] = {
            "i": ("bigint", pa.array([1], pa.int8()), 1),
            "u": ("bigint", pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
            "f": ("double", pa.array([0.5], pa.float32()), 0.5),
            "d": ("decimal(18,4)", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.5")),
            "naive": ("timestamp", pa.array([moment], pa.timestamp("us")), micros),
            "zoned": (
                "timestamp",
                pa.array([moment], pa.timestamp("ms", "Europe/Berlin")),
                micros.replace(microsecond=0),
            ),
            "nanos": ("timestamp", pa.array([moment], pa.timestamp("ns")), micros),
            "day": ("timestamp", pa.array([date(2024, 3, 1)]), utc(2024, 3, 1)),
            "cat": ("string", pa.array(["a"]).dictionary_encode(), "a"),
            "none": ("int", pa.nulls(1), None),
            "text": ("timestamp", pa.array(["2024-03-01"]), utc(2024, 3, 1)),
            "view": ("string", pa.array(["a"], pa.string_view()), "a"),
            "bytes": ("binary", pa.array([b"b"], pa.binary_view()), b"b"),
            "long": ("array<string>", pa.array([["c"]], pa.large_list(pa.large_string())), ["c"]),
        }
        folder.put("a.parquet", pa.table({name: one[1] for name, one in columns.items()}))

        found = folder.values({name: one[0] for name, one in columns.items()})

        assert found == [tuple(one[2] for one in columns.values())]

    def test_what_does_not_fit_row_by_row(self, folder: Folder) -> None:
        """
        Texts as timestamps follow the declared format, bytes declared as text have to be UTF-8, and
        nanoseconds have to be whole microseconds.
        """
        whole, part = 1_709_287_200_123_457_000, 1_709_287_200_123_456_001
        nanos = pa.array([whole, part, None, -1_000, -1, None, None], pa.timestamp("ns"))
        at = [None, None, None, None, None, "2024-03-01", "soon"]
        ids = pa.array([b"a", b"b", b"u\xe4", b"d", b"e", b"f", b"g"]).view(pa.string())
        folder.put("a.parquet", pa.table({"id": ids, "at": at, "nanos": nanos}))
        columns = {"id": "string", "at": "timestamp", "nanos": "timestamp"}

        rows = folder.rows(columns)

        assert sorted(tuple(row[c] for c in columns) for row in rows if not row["_problem"]) == [
            ("a", None, utc(2024, 3, 1, 10, 0, 0, 123457)),
            ("d", None, utc(1969, 12, 31, 23, 59, 59, 999999)),
            ("f", utc(2024, 3, 1), None),
        ]
        problems = [row["_problem"].removeprefix("unparsable: ") for row in rows if row["_problem"]]
        assert sorted(problems) == [
            *("at is not timestamp", "id is not string"),
            *["nanos is not timestamp"] * 2,
        ]
        assert '{"id":"g","at":"soon"}' in [row["_raw"] for row in rows]

    def test_a_type_that_might_lose_something_is_drift(self, folder: Folder) -> None:
        """A type that might lose something is drift, whatever the values are now."""
        types = {
            "int": pa.int64(),
            "float": pa.float64(),
            "double": pa.int64(),
            "decimal(5,2)": pa.decimal128(6, 2),
            "date": pa.timestamp("us"),
            "string": pa.int32(),
            "timestamp": pa.int64(),
            "boolean": pa.int32(),
        }
        rows = {f"c{at}": pa.nulls(1, found) for at, found in enumerate(types.values())}
        folder.put("a.parquet", pa.table(rows))
        with pytest.raises(InfoldError) as raised:
            folder.rows({f"c{at}": declared for at, declared in enumerate(types)})
        assert raised.value.slug == "drift"
        wrong = (
            f"column c{at} is {found}, declared {declared}"
            for at, (declared, found) in enumerate(types.items())
        )
        assert raised.value.facts == (("a.parquet", "; ".join(wrong)),)


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
            found["case.csv"] = "column ID in place of id"
        if format_ == "parquet":
            found["more.parquet"] += "; column n is int64, declared int"
        return found

    @pytest.mark.parametrize(
        ("format_", "in_process"),
        [("csv", True), ("json", True), ("parquet", True), ("json", False)],
    )
    def test_files_that_drift(
        self, folder: Folder, format_: str, in_process: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """
        Every file with drift is listed in one error, before any file is read. With `evolve` columns
        that are not declared stop nothing. All rows of files with drift can be set aside with raw
        text and reason; the others are read.
        """
        if not in_process:
            monkeypatch.setattr("infold.spark.reading.json_lines.IN_PROCESS", 0)
        for name, content in self.FILES[format_].items():
            folder.put(name, content)
        drift = self.expected(format_)

        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW)
        assert dict(raised.value.facts) == drift
        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW, on_drift=Drift.EVOLVE)
        without = {
            name: "; ".join(part for part in how.split("; ") if not part.startswith("extra column"))
            for name, how in drift.items()
        }
        assert dict(raised.value.facts) == {name: how for name, how in without.items() if how}

        found = folder.by_name(FEW, on_drift=Drift.SET_ASIDE)
        assert ("a", 1) in found.pop(f"good.{format_}")
        more = f"more.{format_}"
        assert format_ == "csv" or any("extra" in raw for raw, _ in found[more])
        if format_ == "json":
            assert found.pop("empty.json") == []
            assert found.pop("broken.json") == [("{", NO_OBJECT)]
        aside = {name: {problem for _, problem in rows} for name, rows in found.items()}
        assert aside == {name: {f"drift: {how}"} for name, how in drift.items()}

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
        monkeypatch.setattr("infold.spark.reading.json_lines._MOST_BYTES_READ_HERE", 10_000)
        folder.put("a.json.gz", '{"id":"a","n":1}\n' * 5_000)

        rows = folder.frame({"id": "string", "n": "bigint"})

        assert rows.count() == 5_000
        assert len(rows.inputFiles()) == 1

    def test_a_first_line_that_is_no_header(self, folder: Folder) -> None:
        """
        A first line that is no header is one row set aside, while an empty file and a bare header
        have none. A file with none of the declared columns drifts, even if all are optional.
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
        found = folder.by_name(FEW, on_drift=Drift.SET_ASIDE)
        drift = "drift: missing column id; missing column n; extra column"
        assert found.pop("c.csv")[0][0] == '{"id": "a"}'
        assert found == {
            "a.csv": [("a", 1)],
            "b.csv": [(page, f"{drift} {page}")],
            "d.csv": [],
            "e.csv": [],
            "f.csv.gz": [(page, f"{drift} {page}")],
        }

        with pytest.raises(InfoldError) as raised:
            folder.rows(FEW, optional=True, on_new_columns=NewColumns.IGNORE)
        why = "no column of the source is in its first line"
        assert dict(raised.value.facts) == dict.fromkeys(("b.csv", "c.csv", "f.csv.gz"), why)


OTHERS = {"csv": ".csv.gz .csv.bz2 .csv.zst", "json": ".json.gz .json.bz2 .json.zst"}
REALLY = {"parquet": "orc", "orc": "avro", "avro": "parquet"}
"""Files of a format begin as ones of another."""
WHAT = {"parquet": "a Parquet file", "orc": "an ORC file", "avro": "an Avro file"}


@pytest.mark.parametrize("format_", [*OTHERS, *REALLY])
def test_files_of_another_format(folder: Folder, format_: str) -> None:
    """They are an error that says so and names a file, or are set aside as a whole."""
    rows = pa.table({"id": ["a"], "n": ["1"]})
    for ending in OTHERS.get(format_, f".{format_}").split():
        (folder.root / f"a{ending}").write_bytes(b"not what it says")
        folder.listed(f"a{ending}")
    if other := REALLY.get(format_):
        TABLES[f".{other}"](rows, folder.root / f"b.{other}")
        folder.put(f"b.{format_}", (folder.root / f"b.{other}").read_bytes())

    with pytest.raises(InfoldError) as raised:
        folder.rows(FEW)
    assert raised.value.slug == "unreadable-file"
    assert dict(raised.value.facts)["file"] in [file.path for _, file in folder.files]

    found = folder.by_name(FEW, on_unreadable=Drift.SET_ASIDE)
    problems = {name: problem for name, [(_, problem)] in found.items()}
    assert len(problems) == len(folder.files)
    assert {problem.partition(": ")[0] for problem in problems.values()} == {"unreadable"}
    if other:
        why = f"it begins as {WHAT[other]} does, and not as {WHAT[format_]}"
        assert why in problems[f"b.{format_}"]


def test_rows_of_some_files_of_an_iceberg_table(
    folder: Folder, spark: SparkSession, warehouse: Path
) -> None:
    """Only rows of the data files asked for are read,
    though the table has others and has changed since.
    """
    from infold.lake.iceberg.sql_catalog import sqlite_catalog
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


class TestOrc:
    """Columns are found by their names, whatever these are."""

    def test_names_that_say_no_more_than_places(self, folder: Folder) -> None:
        """Old Hive wrote _col0, _col1 …: they are declared in any order, and not all of them."""
        row = {"_col0": "id1", "_col1": "Bern", "_col2": {"a": 1}, "_col3": 7}
        folder.put("a.orc", pa.Table.from_pylist([row]))

        ignore = {"on_new_columns": NewColumns.IGNORE}
        two = {"_col1": "string", "_col0": "string"}
        assert folder.values(two, **ignore) == [("Bern", "id1")]
        assert folder.values({"_col3": "bigint"}, **ignore) == [(7,)]
        found = folder.by_name({"_col0": "int", "_col3": "bigint"}, on_drift=Drift.SET_ASIDE)
        [(raw, problem)] = found["a.orc"]
        assert json.loads(raw) == row
        assert problem.startswith("drift: ")

    def test_names_with_anything_in_them(self, folder: Folder) -> None:
        """Dots, blanks and commas, of columns and of fields."""
        names = ["c.d", "e f", "g,h", "<", "é"]
        fields = {"Last, First": "x", "i:j": "y"}
        folder.put("a.orc", pa.table({name: [name] for name in names} | {"s": [fields]}))
        type_ = "struct<`Last, First`:string,`i:j`:string>"

        found = folder.values(dict.fromkeys(names, "string") | {"s": type_})

        assert found == [(*names, fields)]

    @pytest.mark.parametrize("rows", [{"a`b": ["x"]}, {"`": ["x"]}, {"s": [{"a`b": "x"}]}])
    def test_names_that_cannot_be_asked_for(self, folder: Folder, rows: dict[str, Any]) -> None:
        """A backtick ends a name for the library of ORC: such a file is refused by that."""
        folder.put("a.orc", pa.table(rows))

        with pytest.raises(InfoldError) as raised:
            folder.values({"id": "string"}, optional=True, on_new_columns=NewColumns.IGNORE)

        assert raised.value.slug == "unreadable-file"
        assert "a backtick in its name" in dict(raised.value.facts)["why"]

    def test_files_of_transactions(self, folder: Folder) -> None:
        """A file of a transactional table of Hive is refused by its name."""
        names = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
        folder.put("a.orc", pa.table({name: [0] for name in names} | {"row": [{"id": "a"}]}))

        with pytest.raises(InfoldError) as raised:
            folder.values({"row": "struct<id:string>"})

        assert raised.value.slug == "unreadable-file"
        assert "transactional table of Hive" in dict(raised.value.facts)["why"]


EDGES: dict[str, list[Any]] = {
    "bigint": [2**63 - 1, -(2**63)],
    "double": [float("inf"), -0.0, 5e-324],
    "string": ["", "\x00", "\U0010ffff"],
    "binary": [b"", b"\xff\x00"],
    "date": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4)],
    "timestamp": [utc(1, 1, 1), utc(9999, 12, 31, 23, 59, 59, 999999), utc(1969, 12, 31, 23)],
    "timestamp_ntz": [utc(9999, 12, 31, 1).replace(tzinfo=None)],
    "decimal(38,0)": [Decimal(10**38 - 1), Decimal(1 - 10**38)],
    "array<timestamp>": [[utc(9999, 12, 31)]],
    "boolean": [True],
}  # fmt: skip
COLUMN_OF_EACH = {f"c{at}": type_ for at, type_ in enumerate(EDGES)}


@pytest.mark.parametrize("ending", ["parquet", "orc", "avro"])
def test_a_file_is_set_aside_if_it_cannot_be_read(
    folder: Folder, spark: SparkSession, ending: str
) -> None:
    """The edges of each type, by two writers: the look into a file says what reading it does."""
    written_by_arrow(folder, ending)
    written_by_spark(folder, ending)
    aside = {"optional": True, "on_drift": Drift.SET_ASIDE}

    looked = folder.by_name(COLUMN_OF_EACH, **aside, on_unreadable=Drift.SET_ASIDE)

    bad = [one for one in folder.files if "unreadable" in str(looked[one[1].path])]
    assert "drift: " not in str(looked)
    folder.files = [one for one in folder.files if one not in bad]
    assert len(folder.files) > 30
    read = folder.by_name(COLUMN_OF_EACH, **aside)
    assert str(read) == str({name: looked[name] for name in read})
    for folder.files in [[one] for one in bad]:
        with pytest.raises(Exception):  # noqa: B017 (of another kind for each format)
            folder.by_name(COLUMN_OF_EACH, **aside)


def written_by_arrow(folder: Folder, ending: str) -> None:
    """A file of each value; those that there are, as the writer has not all types."""
    for name, type_ in COLUMN_OF_EACH.items():
        wanted = to_arrow_type(T.DataType.fromDDL(type_))
        for at, value in enumerate(EDGES[type_]):
            file = f"arrow-{name}-{at}.{ending}"
            try:
                rows = pa.table({name: pa.array([value], wanted)})
                TABLES[f".{ending}"](rows, folder.root / file)
            except (pa.ArrowException, ValueError, OverflowError, TypeError, KeyError):
                continue
            folder.listed(file)


def written_by_spark(folder: Folder, ending: str) -> None:
    """The same by Spark, all at once; without the types of which it writes others."""
    others = {"array<timestamp>", *(["timestamp_ntz"] if ending == "orc" else [])}
    types = {name: type_ for name, type_ in COLUMN_OF_EACH.items() if type_ not in others}
    ancient = [utc(1, 1, 1)] if ending == "parquet" else []  # as INT96 it refuses them
    values = [
        (name, value)
        for name, type_ in types.items()
        for value in EDGES[type_]
        if value not in ancient
    ]
    rows = [
        (at, *(value if one == name else None for one in types))
        for at, (name, value) in enumerate(values)
    ]
    schema = ", ".join(f"{name} {type_}" for name, type_ in {"at": "int", **types}.items())
    frame = folder.spark.createDataFrame(rows, schema).coalesce(1)
    writer = frame.write.partitionBy("at").format(ending)
    folder.spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    try:
        writer.save(str(folder.root / "parts"))
    finally:
        folder.spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    for part in (folder.root / "parts").glob(f"at=*/*.{ending}"):
        folder.listed(str(part.relative_to(folder.root)))


def test_one_bad_file_does_not_hold_up_others(folder: Folder) -> None:
    """Damage that only reading meets: each of two such files is set aside by itself."""
    many = pa.table({"id": [str(at) for at in range(50_000)], "n": range(50_000)})
    packed = {"parquet": BytesIO(), "orc": BytesIO(), "avro": BytesIO()}
    parquet.write_table(many, packed["parquet"])
    orc.write_table(many, packed["orc"], compression="zlib")
    avro(many, packed["avro"], "deflate")
    for ending, sink in packed.items():
        folder.files.clear()
        whole = sink.getvalue()
        folder.put(f"c.{ending}", whole)
        for name in ("a", "b"):
            folder.put(f"{name}.{ending}", whole[:2_000] + b"\xff" * 7_000 + whole[9_000:])

        found = folder.by_name({"id": "string", "n": "bigint"}, on_unreadable=Drift.SET_ASIDE)

        assert len(found[f"c.{ending}"]) == 50_000
        for name in ("a", "b"):
            [(_, problem)] = found[f"{name}.{ending}"]
            assert problem.startswith("unreadable: "), ending
