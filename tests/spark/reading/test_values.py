"""Stored values are those in the file, for every type and format, or the row is set aside.

Texts in many notations go through the three formats that contain text. What one
accepts, all accept alike, and a plan's estimate accepts the same texts for timestamps.
"""

from __future__ import annotations

import json
import zoneinfo
from datetime import date
from decimal import Decimal, localcontext
from io import BytesIO
from random import Random
from string import ascii_letters
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyarrow import parquet
from tests.spark.reading.folder import Folder, utc

from infold.core.interval import micros_of
from infold.declare.sources import find_pattern_fault
from infold.lake.reading import event_times
from infold.lake.reading.avro_types import arrow_type
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def by_text(folder: Folder, texts: list[str], **others: Any) -> dict[str, Any]:
    """What each text is in a column of timestamps; "unparsable" is one answer."""
    found = folder.rows({"text": "string", "v": "timestamp"}, **others)
    folder.files.clear()
    kept = {row["text"]: row["v"] for row in found if row["_problem"] is None}
    assert len(found) == len(texts)
    assert {row["_problem"] for row in found} <= {None, "unparsable: v is not timestamp"}
    return {text: kept.get(text, "unparsable") for text in texts}


DAYS = [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31)]
LONG_AGO = [utc(1, 1, 2), utc(1582, 10, 4, 12), utc(1700, 2, 28, 23, 59, 59), utc(1899, 12, 31)]


def in_every_format(folder: Folder, texts: list[str], **others: Any) -> list[dict[str, Any]]:
    """The same of a CSV, a JSON and a Parquet file."""
    found = []
    for name, content in {
        "a.csv": "text,v\n" + "".join(f'"{text}","{text}"\n' for text in texts),
        "a.json": "".join(json.dumps({"text": text, "v": text}) + "\n" for text in texts),
        "a.parquet": pa.table({"text": texts, "v": texts}),
    }.items():
        folder.put(name, content)
        found.append(by_text(folder, texts, **others))
    return found


@pytest.mark.spark
class TestTimestamps:
    """A timestamp is stored to the microsecond, or its row is set aside."""

    def test_formats_and_the_estimate_agree(self, folder: Folder) -> None:
        """Spark reads from each format the timestamps that the plan's estimate reads."""
        texts = sorted(set(NOTATIONS))
        csv, jsons, pq = in_every_format(folder, texts)
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

        found = by_text(folder, sorted(texts))

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
        for found in in_every_format(folder, texts, timestamp_format=written):
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

    @pytest.mark.parametrize("kind", ["avro", "orc", "parquet", "INT96"])
    def test_times_of_long_ago(self, folder: Folder, kind: str) -> None:
        """
        Times of long ago are read by today's calendar in every format and column type, and in ORC
        by the calendar that Spark and Hive write them in.
        """
        times = [utc(1700, 2, 28, 23, 59, 59), utc(1899, 12, 31)] if kind == "INT96" else LONG_AGO
        days = DAYS[-len(times) :]
        rows = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "day": pa.array(days)})
        if kind == "orc":
            written = folder.spark.createDataFrame(rows).coalesce(1)
            written.write.orc(str(folder.root / "written"))
            (file,) = (folder.root / "written").glob("*.orc")
            folder.put("a.orc", file.read_bytes())
        elif kind == "INT96":
            parquet.write_table(
                rows, folder.root / "a.parquet", use_deprecated_int96_timestamps=True
            )
            folder.listed("a.parquet")
        else:
            folder.put(f"a.{kind}", rows)

        found = folder.values({"at": "timestamp", "day": "date"})

        assert sorted(found) == sorted(zip(times, days, strict=True))

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
    "decimal(5,2)": (
        {"1.5": Decimal("1.50"), " 1.5 ": Decimal("1.50"), "1.5e1": Decimal("15.00")},
        ["1.505", "1000", "1.2345e1", "1e3", "1.5 x", "e5", "1,5", "x"],
    ),
    "decimal(38,2)": (
        {text: Decimal(text) for text in ("1.230", "-1.2", ".5", "7.", "120e-2", "1.2e0")},
        ["1.239", "1e-3"],
    ),
    "decimal(37,2)": ({"1.2300": Decimal("1.23")}, ["1.2301", "0.001", "12301e-4", "."]),
    "decimal(38,0)": (
        {text: Decimal(text) for text in ("1" * 38, "1.5e1", "1000e-3", "0e-9")},
        ["1" * 39, "0.1", "1.5e0"],
    ),
    "decimal(38,38)": ({f"0.{'1' * 38}": Decimal(f"0.{'1' * 38}")}, [f"0.{'1' * 39}", "1"]),
    "double": ({"0.1": 0.1, "1e-3": 0.001}, ["1e400", "1d", ".", "x"]),
    "date": (
        {"2024-03-01": date(2024, 3, 1)},
        ["2024-02-30", "2024-03-01 10:00", "1/3/2024", "20240301"],
    ),
    "timestamp_ntz": (
        {
            "2024-03-01": utc(2024, 3, 1).replace(tzinfo=None),
            "2024-03-01T10:00+02:00": utc(2024, 3, 1, 8).replace(tzinfo=None),
        },
        ["10:00", "2024-13-01"],
    ),
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


@pytest.mark.spark
def test_values_fit_exactly_or_not_at_all(folder: Folder) -> None:
    """Values in CSV and JSON, nested ones too, fit exactly or make their row unparsable."""
    columns = {"id": "string"} | {f"c{at}": type_ for at, type_ in enumerate(NUMBERS)}
    rows: list[dict[str, str]] = []
    wanted: list[Any] = []
    for at, (type_, (good, bad)) in enumerate(NUMBERS.items()):
        for text in [*good, *bad]:
            rows.append({"id": f"{len(rows):03}", f"c{at}": text})
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


PARTS = {"l": "array<bigint>", "m": "map<string,double>", "s": "struct<a:decimal(20,2),b:bigint>"}


@pytest.mark.parametrize("ending", ["orc", "parquet"])
@pytest.mark.spark
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


_PIECES = "yyyy MM dd HH mm ss SSS S a h VV XXX Z G D MMM ' '' 'T' [ ] : . - / { # é E T yyyyyyy n"
PIECES = (*_PIECES.split(), " ")


@pytest.mark.spark
@pytest.mark.usefixtures("quick_errors")
def test_each_letter_and_what_is_between_them(spark: SparkSession) -> None:
    """Each letter, as often in a row as any may be there; and two thousand patterns by chance."""
    jvm: Any = spark._jvm
    util = jvm.org.apache.spark.sql.catalyst.util
    formatters = getattr(getattr(util, "TimestampFormatter$"), "MODULE$")
    zone = jvm.java.time.ZoneId.of("UTC")

    def spark_reads(pattern: str) -> bool:
        try:
            formatters.apply(pattern, zone, True)
        except Py4JJavaError:
            return False
        return True

    draw = Random(1)
    patterns = [letter * count for letter in ascii_letters for count in range(1, 21)]
    patterns += ["y" + "".join(draw.choices(PIECES, k=draw.randint(1, 8))) for _ in range(2_000)]
    ours = ("z:", "v:", "it has no letter", "it has no year", "digits finer")
    wrong = {pattern: find_pattern_fault(pattern) for pattern in patterns}
    both = {one: why for one, why in wrong.items() if not why.startswith(ours)}

    assert {one: why for one, why in both.items() if spark_reads(one) is bool(why)} == {}
    assert len(patterns) // 10 < sum(map(bool, both.values())) < len(both) * 9 // 10


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    """A type with a meaning."""
    return {"type": kind, "logicalType": meaning, **more}


FIXED = {"type": "fixed", "name": "pair", "size": 2}
ENUM = {"type": "enum", "name": "letter", "symbols": ["A", "B"]}
DEBT = Decimal("-1.50")
DECIMAL = {"precision": 10, "scale": 2}
BEFORE, AFTER = utc(1969, 12, 31, 23, 59, 59, 999999), utc(1970, 1, 1, 0, 0, 0, 1)
TAGS = ["x", None]
NANOS = 1_709_287_200_000_001_000
COLUMNS: dict[str, tuple[Any, str, Any, Any]] = {
    "id": ("string", "string", "a", "a"),
    "millis": (logical("long", "timestamp-millis"), "timestamp", 1, utc(1970, 1, 1, 0, 0, 0, 1000)),
    "micros": (logical("long", "timestamp-micros"), "timestamp", -1, BEFORE),
    "nanos": (logical("long", "timestamp-nanos"), "timestamp", NANOS, utc(2024, 3, 1, 10, 0, 0, 1)),
    "clock": (logical("long", "local-timestamp-micros"), "timestamp", 1, AFTER),
    "letter": (ENUM, "string", "B", "B"),
    "again": ("letter", "string", "A", "A"),
    "uuid": (logical("string", "uuid"), "string", str(UUID(int=7)), str(UUID(int=7))),
    "pair": (FIXED, "binary", b"ab", b"ab"),
    "amount": (logical("bytes", "decimal", **DECIMAL), "decimal(18,2)", DEBT, DEBT),
    "either": (["int", "null", "long"], "bigint", 2**40, 2**40),
    "part": (["float", "double"], "double", 0.1, 0.1),
    "only": (["int"], "bigint", 3, 3),
    "small": ("int", "decimal(12,2)", 4, Decimal(4)),
    "tags": ({"type": "array", "items": ["null", "string"]}, "array<string>", TAGS, TAGS),
    "by": ({"type": "map", "values": "int"}, "map<string,int>", {"k": 1}, [("k", 1)]),
    "yes": ("boolean", "boolean", True, True),
}  # fmt: skip
"""Name -> its type in Avro, the declared type, what is written and what is read."""

NONE = {
    "a union": ["int", "string"],
    "a time of day": logical("int", "time-millis"),
    "itself": {
        "type": "record",
        "name": "node",
        "fields": [{"name": "next", "type": ["null", "node"], "default": None}],
    },
    "digits behind the point": logical("bytes", "decimal", precision=50, scale=39),
    "too many digits in a part": {
        "type": "array",
        "items": logical("bytes", "decimal", precision=39, scale=0),
    },
}


def retold(content: bytes, schema: dict[str, Any]) -> bytes:
    """A file with another schema in its header than its rows were written by."""
    blocks: Any = fastavro.block_reader(BytesIO(content))
    header = {"avro.codec": b"null", "avro.schema": json.dumps(schema).encode()}
    sink = BytesIO(b"Obj\x01")
    sink.seek(4)
    meta = fastavro.parse_schema({"type": "map", "values": "bytes"})
    fastavro.schemaless_writer(sink, meta, header)
    mark = b"where a block is"
    sink.write(mark)
    for block in blocks:
        rows = block.bytes_.read()
        fastavro.schemaless_writer(sink, "long", block.num_records)
        fastavro.schemaless_writer(sink, "long", len(rows))
        sink.write(rows + mark)
    return sink.getvalue()


def content(columns: dict[str, Any], row: dict[str, Any]) -> bytes:
    """A file of one row."""
    fields = [{"name": name, "type": type_} for name, type_ in columns.items()]
    sink = BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": fields}, [row])
    return sink.getvalue()


@pytest.mark.spark
def test_types_that_fit(folder: Folder) -> None:
    """A value of each type is read as it was written."""
    types = {name: one[0] for name, one in COLUMNS.items()}
    folder.put("a.avro", content(types, {name: one[2] for name, one in COLUMNS.items()}))

    found = folder.values({name: one[1] for name, one in COLUMNS.items()})

    assert found == [tuple(one[3] for one in COLUMNS.values())]


@pytest.mark.spark
def test_parts_of_a_microsecond_are_set_aside(folder: Folder) -> None:
    """Nanoseconds that are no whole microsecond do not fit."""
    types = {"id": "string", "at": logical("long", "timestamp-nanos")}
    folder.put("a.avro", content(types, {"id": "a", "at": 1}))

    found = folder.values({"id": "string", "at": "timestamp"})

    assert found == [("unparsable: at is not timestamp",)]


@pytest.mark.spark
@pytest.mark.parametrize("type_", NONE.values(), ids=NONE)
def test_types_that_fit_nothing(folder: Folder, type_: Any) -> None:
    """A file with another type is an error that names the column."""
    value = {"next": None} if isinstance(type_, dict) and type_["type"] == "record" else None
    sink = BytesIO()
    schema = {"type": "record", "name": "row", "fields": [{"name": "v", "type": type_}]}
    fastavro.writer(sink, schema, [] if value is None else [{"v": value}])
    folder.put("a.avro", sink.getvalue())
    with pytest.raises(InfoldError) as raised:
        folder.frame({"v": "string"})

    assert raised.value.slug == "drift"
    assert raised.value.facts[0][1].startswith("column v is ")


def test_nested_types() -> None:
    """Records in lists are structs in lists."""
    record = {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "long"]}]}

    found = arrow_type({"type": "array", "items": record})

    assert found == pa.list_(pa.struct([pa.field("x", pa.int64())]))


WHOLE = (0, 1, -1, 150, -150, 127, 128, -128, -129, 10**18, 2**63, -(2**63), 2**64 + 5, 10**37)
ENDS = (10**38 - 1, 1 - 10**38)
LONG = (10**38, -(10**38), 2**127, 2**128 + 5, 10**60)


@pytest.mark.spark
@pytest.mark.parametrize("size", [None, 30], ids=["bytes", "fixed"])
@pytest.mark.parametrize(("digits", "scale"), [(4, 2), (18, 0), (38, 2), (64, 2), (64, 38)])
def test_decimals_of_any_length(folder: Folder, size: int | None, digits: int, scale: int) -> None:
    """A value of whatever precision is read as it is, or its row is set aside by its own value."""
    plain = {"type": "fixed", "name": "f", "size": size} if size else {"type": "bytes"}
    meant = {**plain, "logicalType": "decimal", "precision": digits, "scale": scale}
    values = [*WHOLE, *ENDS, *LONG]
    shown = [one.to_bytes(size or one.bit_length() // 8 + 1, "big", signed=True) for one in values]
    fields = [{"name": "id", "type": "int"}, {"name": "v", "type": meant}]
    # As it is meant its writer would refuse some: what it means is told afterwards.
    sink = BytesIO()
    rows = [{"id": at, "v": one} for at, one in enumerate(shown)]
    untold = {"type": "record", "name": "row", "fields": [fields[0], {"name": "v", "type": plain}]}
    told = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(sink, untold, rows)
    folder.put("a.avro", retold(sink.getvalue(), told))

    found = folder.rows({"id": "int", "v": f"decimal(38,{scale})"})

    with localcontext(prec=80):
        exact = [Decimal(one).scaleb(-scale) for one in values]
    fits = [abs(one) < 10**38 for one in values]
    problem = f"unparsable: v is not decimal(38,{scale})"
    by_id = {json.loads(row["_raw"])["id"]: row for row in found}
    assert [by_id[at]["_problem"] for at in range(len(values))] == [
        None if one else problem for one in fits
    ]
    assert [by_id[at]["v"] for at, one in enumerate(fits) if one] == [
        value for value, one in zip(exact, fits, strict=True) if one
    ]
