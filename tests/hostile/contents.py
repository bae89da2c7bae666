# ruff: noqa: E501 (one file is one line)
"""Hostile data files, each with what is in them.

``good`` are the ids that belong in the table, ``aside`` is how many rows do not; a file that
cannot be read as its format is one line in ``set_aside`` (``whole``), and no row of it is stored.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc, parquet
from tests.spark.reading import written
from tests.spark.reading.written import PACKERS

HEAD = "id,ts,amount,n,note"
AT = "2024-03-01T10:00:00Z"
COLUMNS = "{id: string, ts: timestamp, amount: 'decimal(10,2)', n: int, note: string}"


@dataclass(frozen=True)
class File:
    """One file: its bytes, and what should become of it."""

    name: str
    content: bytes
    good: Sequence[str] = ()
    aside: int = 0
    waiting: int = 0
    whole: bool = False


def line(id_: str, ts: str = AT, amount: str = "1.50", n: str = "1", note: str = "ok") -> str:
    """A row of CSV."""
    return f"{id_},{ts},{amount},{n},{note}\n"


def table(*lines: str, head: str = HEAD) -> bytes:
    """A file of CSV."""
    return (head + "\n" + "".join(lines)).encode()


GOOD = [line("a"), line("b")]
AB = ("a", "b")

BAD_TIMES = ["soon", "", "2024-02-30", "2024-13-01", "2024-03-01T25:00", "10:00", "1709287200"]
BAD_TIMES += ["2024-03-01T10:00:00.1234567Z", "2024-03-01T10:00:00+25:00", "01/03/2024"]
BAD_TIMES += ["2024-03-01T10:00:60Z", "NaN", "Infinity", "0000-00-00", "tomorrow", "now"]
GOOD_TIMES = [AT, "2024-03-01", "2024-03-01 10:00:00", "2024-03-01T10:00Z", "0001-01-01"]
GOOD_TIMES += ["2024-03-01T10:00:00.123456+05:30", "2024-02-29T23:59:59.999999Z"]
BAD_AMOUNTS = ["1.505", "abc", "1e99", "NaN", "123456789.00", "0x10", "1.2.3", "--1", "1_000"]
BAD_NUMBERS = ["1.5", "abc", "2147483648", "-2147483649", "1e3", "0x1", "true", "NaN", "9" * 40]


def _each(values: Sequence[str], column: str) -> bytes:
    return table(*(line(f"x{n}", **{column: value}) for n, value in enumerate(values)))


def _ids(many: int) -> list[str]:
    return [f"x{n}" for n in range(many)]


CSV = [
    File("nothing", b""),
    File("one object and blanks", b'{"id": "a"}\n \n\n', aside=1),
    File("one long word", b"x" * 200_000, aside=1),
    File("a column more and a long note", table(line("a", note="x" * 200_000).strip() + ",x\n", head=HEAD + ",more"), aside=1),
    File("only a header", table()),
    File("only a header without an end", HEAD.encode()),
    File("no end", table(*GOOD)[:-1], AB),
    File("lines of Windows", table(*GOOD).replace(b"\n", b"\r\n"), AB),
    File("a mark", b"\xef\xbb\xbf" + table(*GOOD), AB),
    File("UTF-16", table(*GOOD).decode().encode("utf-16"), aside=3),
    File("not UTF-8", table(line("a"), line("b", note="caf@")).replace(b"@", b"\xe9"), "a", 1),
    File("half a surrogate", table(line("a"), line("@")).replace(b"@", b"\xed\xa0\x80"), "a", 1),
    File("blank lines", table("\n", line("a"), "\n\n", line("b"), "\n"), AB),
    File("too few", table(line("a"), "b,2024-03-01\n"), "a", 1),
    File("too many", table(line("a"), line("b").strip() + ",more\n"), "a", 1),
    File("one word", table(line("a"), "b\n"), "a", 1),
    File("only commas", table(line("a"), ",,,,\n"), "a", 1),
    File("quoted", table(line('"a"'), line("b", note='"x ""y"", z"')), AB),
    File("no id", table(line("a"), line("")), ("", "a")),
    File("columns in another order", table("1,ok,a,1.00," + AT + "\n", head="n,note,id,amount,ts"), "a"),
    File("a column less", table("a," + AT + ",1.00,1\n", head="id,ts,amount,n"), aside=1),
    File("a column more", table(line("a").strip() + ",x\n", head=HEAD + ",more"), aside=1),
    File("a column twice", table(line("a").strip() + ",x\n", head=HEAD + ",note"), aside=1),
    File("no header", b"".join(one.encode() for one in GOOD), aside=1),
    File("semicolons", table(*GOOD).replace(b",", b";"), aside=2),
    File("binary", bytes(range(1, 256)) * 20, aside=40),
    File("HTML", b"<html><body>503 Service Unavailable</body></html>\n", aside=1),
    File("JSON", json.dumps({"id": "a", "ts": AT}).encode(), aside=1),
    File("bad times", _each(BAD_TIMES, "ts"), (), len(BAD_TIMES)),
    File("good times", _each(GOOD_TIMES, "ts"), _ids(len(GOOD_TIMES))),
    File("far times", _each(["9999-12-31", "2999-01-01"], "ts"), waiting=2),
    File("bad amounts", _each(BAD_AMOUNTS, "amount"), (), len(BAD_AMOUNTS)),
    File("no amounts", _each(["", "0", "-0.00", "99999999.99"], "amount"), _ids(4)),
    File("bad numbers", _each(BAD_NUMBERS, "n"), (), len(BAD_NUMBERS)),
    File("odd notes", _each(["=1+1", "\U0001f600", "\u202eabc", "\x1b[31m", "\\N", "NULL"], "note"), _ids(6)),
    File("a long note", table(line("a", note="x" * 300_000)), "a"),
    File("a long id", table(line("y" * 50_000)), ["y" * 50_000]),
    File("lines of old Macs", table(*GOOD).replace(b"\n", b"\r"), AB),
    File("lines of old Macs, quoted", table(line("a", note='"x"'), line("b")).replace(b"\n", b"\r"), AB),
    File("ends of all kinds", HEAD.encode() + b"\r\n" + line("a").encode() + line("b").strip().encode() + b"\r" + line("c").encode(), "abc"),
    File("ends of all kinds, quoted", HEAD.encode() + b"\n" + line("a", note='"x"').encode() + line("b").strip().encode() + b"\r" + line("c").encode(), "abc"),
    File("a quote that does not end", table(line("a"), line("b", note='"x'), line("c")), whole=True),
    File("a quote that ends elsewhere", table(line("a"), line("b", note='"x'), line("c", note='"y'), line("d")), whole=True),
    File("a quote that ends in another line", table(line("a"), line("b", note='"x'), line('c"'), line("d")), "ad", 1),
    File("a name that does not end", table(line("a"), head='"' + HEAD), whole=True),
    File("a quote inside", table(line("a", note='x"y'), line("b", note='x""')), AB),
    File("more behind a quote", table(line("a", note='"x"y'), line("b")), AB),
    File("a backslash at the end", table(line("a", note='"x\\"'), line("b", note="\\")), AB),
    File("line ends in quotes", table(line("a", note='"x\n\r\ny"'), line("b")), AB),
    File("blanks around", table(line(" a "), line("\tb")), ("\tb", " a ")),
    File("a note that looks like a comment", table(line("#a"), line("//b"), line("--c")), ("#a", "--c", "//b")),
    File("NUL before an id", table(line("a"), line("\0b"), line("c")), ("\0b", "a", "c")),
    File("names in other letters", table(*GOOD, head=HEAD.upper()), aside=2),
    File("names with blanks", table(*GOOD, head=HEAD.replace(",", ", ")), aside=2),
    File("names in quotes", table(*GOOD, head='"id","ts","amount","n","note"'), AB),
    File("a comma behind the names", table(line("a").strip() + ",\n", head=HEAD + ","), aside=1),
    File("two marks", b"\xef\xbb\xbf" * 2 + table(line("a")), aside=1),
    File("a mark inside", table(line("a"), line("\ufeffb")), ("a", "\ufeffb")),
    File("longer than they need be", table(line("a"), line("@")).replace(b"@", b"\xc0\x80"), "a", 1),
    File("many fields", table(line("a"), "b" + "," * 30_000 + "\n", line("c")), "ac", 1),
    File("many names", table("," * 30_000 + "\n", head=HEAD + ",x" * 29_996), aside=1),
    File("the header again", table(line("a"), HEAD + "\n", line("b")), AB, 1),
    File("NUL in a note", table(line("a"), line("b", note="x\0y")), AB),
    File("a line of NUL", table(line("a"), "\0\0\0\0\n"), "a", 1),
]  # fmt: skip


def _packed_by(packing: str, pack: Callable[[bytes], bytes]) -> list[File]:
    """What is packed, well and badly; of most packings no letter may follow the last package."""
    behind = b"\0" * 512 if packing == "gzip" else b"\1\2\3\4\5\6"
    found = [
        File("packed", pack(table(*GOOD)), AB),
        File("packed twice in one", pack(table(line("a"))) + pack(line("b").encode()), AB),
        File("packed nothing", pack(b"")),
        File("packed and cut off", pack(table(*GOOD))[:-12], whole=True),
        File("packed and broken", pack(table(*GOOD))[:20] + b"\0" * 30, whole=True),
        File("packed, more behind it", pack(table(*GOOD)) + behind, whole=True),
        File("packed, line ends in quotes", pack(table(line("a", note='"x\n,""\n"'), line("b"))), AB),
        File("not packed", table(*GOOD), whole=True),
        File("an empty package", b""),
    ]  # fmt: skip
    if packing != "gzip":
        return [*found, File("packed by gzip", gzip.compress(table(*GOOD)), whole=True)]
    return [
        *found,
        File("packed, a zero behind it", pack(table(*GOOD)) + b"\0", whole=True),
        File("packed by zlib", zlib.compress(table(*GOOD)), whole=True),
        File("packed, a quote that does not end", pack(table(line("a"), line("b", note='"x'), line("c"))), whole=True),
    ]  # fmt: skip


def _tabs(*lines: str) -> bytes:
    return "".join(lines).replace(",", "\t").encode()


PLACED = [
    File("good", _tabs(*GOOD), AB),
    File("nothing", b""),
    File("blank lines", _tabs(" \n\n", line("a"), " \n", line("b")), AB),
    File("lines of Windows", _tabs(*GOOD).replace(b"\n", b"\r\n"), AB),
    File("lines of old Macs", _tabs(*GOOD).replace(b"\n", b"\r"), AB),
    File("a mark", b"\xef\xbb\xbf" + _tabs(*GOOD), AB),
    File("quotes", _tabs(line("a", note='"x'), line('"b"'), line("c", note='x"')), ('"b"', "a", "c")),
    File("letters", _tabs(line("\u00fc\u0100"), line("a", note="\u0100x")), ("a", "\u00fc\u0100")),
    File("not UTF-8", _tabs(line("a"), line("@")).replace(b"@", b"\xe9"), "a", 1),
    File("too few", _tabs(line("a"), "b,2024-03-01\n"), "a", 1),
    File("too many", _tabs(line("a"), line("b").strip() + ",more\n"), "a", 1),
    File("a field less", _tabs("a," + AT + ",1.50,1\n", line("b")), aside=2),
    File("a field more", _tabs(line("a").strip() + ",more\n"), aside=1),
    File("a header", _tabs(HEAD + "\n", *GOOD), AB, 1),
    File("commas", table(*GOOD), aside=3),
    File("HTML", b"<html>\n<body>503</body>\n</html>\n", aside=3),
    File("NUL before an id", _tabs(line("a"), line("\0b")), ("\0b", "a")),
    File("only tabs", _tabs(line("a"), ",,,,\n"), "a", 1),
    File("a backslash at the end", _tabs(line("a", note="\\"), line("b\\")), ("a", "b\\")),
]  # fmt: skip


def _object(id_: str = "a", **more: Any) -> dict[str, Any]:
    return {"id": id_, "ts": AT, "amount": 1.5, "n": 1, "note": "ok"} | more


def _lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


BAD_OBJECTS: list[Any] = [1, "a", None, True, [], [_object()], {}, {"id": "a"}]
_TIMES: list[Any] = [None, 17, True, [], {}, "soon", ""]
_AMOUNTS: list[Any] = ["abc", 1.505, [], {"a": 1}, True]
BAD_OBJECTS += [_object(ts=ts) for ts in _TIMES]
BAD_OBJECTS += [_object(amount=one) for one in _AMOUNTS]
BAD_OBJECTS += [_object(n=one) for one in (1.5, "abc", 2**31, [1], {"a": 1})]
ODD_LINES = [
    *("{", "}", "{]", '{"id": "a"', "no JSON", '{"id": "a", "ts": }', "NaN", "\x00", '"', "["),
    "{{}}",
]
DEEP = "[" * 1_000 + "]" * 1_000

JSON = [
    File("nothing", b""),
    File("blank lines", b"\n \n" + _lines(_object()) + b"\n\n", "a"),
    File("no end", _lines(_object(), _object("b"))[:-1], AB),
    File("lines of Windows", _lines(_object(), _object("b")).replace(b"\n", b"\r\n"), AB),
    File("a mark", b"\xef\xbb\xbf" + _lines(_object()), "a"),
    File("not UTF-8", _lines(_object(), _object("b", note="@")).replace(b"@", b"\xe9"), "a", 1),
    File("half a surrogate", _lines(_object(), _object("\ud800")), "a", 1),
    File("whole surrogates", _lines(_object("\U0001f600")), ["\U0001f600"]),
    File("bad objects", _lines(_object("good"), *BAD_OBJECTS), ["good"], len(BAD_OBJECTS)),
    File("odd lines", "\n".join([*ODD_LINES, json.dumps(_object("good"))]).encode(), ["good"], len(ODD_LINES)),
    File("a deep note", _lines(_object()).replace(b'"ok"', DEEP.encode()) + _lines(_object("b")), ["b"], 1),
    File("a key twice", b'{"id": "a", "id": "b", "ts": "2024-03-01", "amount": 1, "n": 1, "note": ""}\n', (), 1),
    File("a long note", _lines(_object(note="x" * 300_000)), "a"),
    File("an id of a number", _lines(_object(7), _object(7.0)), ["7", "7.0"]),  # type: ignore[arg-type]
    File("escapes", b'{"\\u0069d": "\\u0061", "ts": "2024-03-01", "amount": 1, "n": 1, "note": "\\n"}\n', "a"),
    File("nulls", _lines(_object(amount=None, n=None, note=None)), "a"),
    File("far times", _lines(_object(ts="9999-12-31"), _object("b", ts="2999-01-01")), waiting=2),
    File("lines of old Macs", _lines(_object(), _object("b")).replace(b"\n", b"\r"), AB),
    File("keys in other letters", _lines(_object() | {"ID": "b"}), aside=1),
    File("a key more", _lines(_object(), _object("b", more=1)), aside=2),
    File("two in a line", _lines(_object()).strip() + _lines(_object("b")), aside=1),
    File("commas between", _lines(_object()).strip() + b",\n" + _lines(_object("b")), "b", 1),
    File("a list over lines", b"[\n" + _lines(_object()).strip() + b"\n]\n", "a", 2),
    File("printed over lines", json.dumps(_object(), indent=1).encode(), aside=7),
    File("a list of all", json.dumps([_object(), _object("b")]).encode(), aside=1),
    File("single quotes", b"{'id': 'b', 'ts': '2024-03-01'}\n" + _lines(_object()), "a", 1),
    File("a comma too many", b'{"id": "b", "ts": "2024-03-01",}\n' + _lines(_object()), "a", 1),
    File("a comment", b'{"id": "b", "ts": "2024-03-01" /* x */}\n' + _lines(_object()), "a", 1),
    File("no number", _lines(_object(), _object("b", amount=float("nan"))), "a", 1),
    File("endless", _lines(_object(), _object("b", amount=float("inf"))), "a", 1),
    File("huge numbers", _lines(_object("a"), _object("b", amount=10**400), _object("c", n=10**400)), "a", 2),
    File("an id of many digits", _lines(_object(10**300)), [str(10**300)]),  # type: ignore[arg-type]
    File("numbers in other forms", _lines(_object(n=1.0), _object("b", n="1"), _object("c", amount="1.50")), "abc"),
    File("zeros in front", _lines(_object(), _object("b")).replace(b'"b", "ts"', b'"b", "n": 01, "ts"'), "a", 1),
    File("NUL escaped", _lines(_object("a\0b")), ["a\0b"]),
    File("line ends escaped", _lines(_object("a\nb\u2028c\u0085d")), ["a\nb\u2028c\u0085d"]),
    File("line separators", json.dumps(_object("a\u2028b\u0085c"), ensure_ascii=False).encode(), ["a\u2028b\u0085c"]),
    File("longer than they need be", _lines(_object(), _object("@")).replace(b"@", b"\xc0\x80"), "a", 1),
    File("a mark inside", _lines(_object()) + b"\xef\xbb\xbf" + _lines(_object("b")), "a", 1),
    File("an object as id", _lines(_object({"a": [1, None]})), ['{"a":[1,null]}']),  # type: ignore[arg-type]
    File("CSV", table(*GOOD), aside=3),
    File("HTML", b"<html>\n<body>503</body>\n</html>\n", aside=3),
    File("UTF-16", _lines(_object()).decode().encode("utf-16"), aside=2),
    File("binary", bytes(range(256)) * 20, aside=21),
]  # fmt: skip

WHOLE_JSON = [
    File("nothing", b""),
    File("no rows", b"[]\n"),
    File("a list", json.dumps([_object(), _object("b")]).encode(), AB),
    File("printed over lines", json.dumps([_object(), _object("b")], indent=1).encode(), AB),
    File("one object", json.dumps(_object(), indent=1).encode(), "a"),
    File("one after the other", json.dumps(_object(), indent=1).encode() + _lines([_object("b")]), AB),
    File("objects in lines", _lines(_object(), _object("b")), AB),
    File("lines of old Macs", json.dumps([_object()], indent=1).encode().replace(b"\n", b"\r"), "a"),
    File("a mark", b"\xef\xbb\xbf" + json.dumps([_object()]).encode(), "a"),
    File("not UTF-8", json.dumps([_object(), _object("@")]).encode().replace(b"@", b"\xe9"), "a", 1),
    File("half a surrogate", json.dumps([_object(), _object("\ud800")]).encode(), "a", 1),
    File("bad objects", json.dumps([_object("good"), *BAD_OBJECTS]).encode(), ["good"], len(BAD_OBJECTS)),
    File("a list in a list", json.dumps([[_object()], _object("b")]).encode(), "b", 1),
    File("a key more", json.dumps([_object(), _object("b", more=1)]).encode(), aside=2),
    File("cut off", json.dumps([_object(), _object("b")], indent=1).encode()[:-40], "a", 2),
    File("no end", json.dumps([_object(), _object("b")]).encode()[:-1], AB, 1),
    File("commas between", json.dumps(_object()).encode() + b",\n" + json.dumps(_object("b")).encode(), AB, 1),
    File("a comma too many", b"[" + json.dumps(_object()).encode() + b",]", "a", 1),
    File("brackets in a note", json.dumps([_object(note='}]"[{\\')]).encode(), "a"),
    File("numbers as written", b'[{"id": 1.50, "ts": "2024-03-01", "amount": 1e0, "n": 1.0, "note": ""}]', ["1.50"]),
    File("CSV", table(*GOOD), aside=1),
    File("HTML", b"<html>\n<body>503</body>\n</html>\n", aside=1),
    File("binary", bytes(range(256)) * 20, aside=41),
]  # fmt: skip

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("n", pa.int32()),
        ("note", pa.string()),
    ]
)
WHEN = datetime(2024, 3, 1, 10, tzinfo=UTC)


def _stored(rows: pa.Table, **how: Any) -> bytes:
    sink = BytesIO()
    parquet.write_table(rows, sink, **how)
    return sink.getvalue()


def _unchecked(*texts: bytes) -> pa.Array:
    """Texts whose bytes nobody looked at."""
    return pa.array(texts, pa.binary()).view(pa.string())


def _orc(rows: pa.Table, **how: Any) -> bytes:
    sink = BytesIO()
    orc.write_table(rows, sink, **how)
    return sink.getvalue()


def _avro(rows: pa.Table, **how: Any) -> bytes:
    sink = BytesIO()
    written.avro(rows, sink, **how)
    return sink.getvalue()


def _of(name: str, values: pa.Array, zoned: bool = True) -> pa.Table:
    """The two good rows with other values in one column."""
    two = _TWO if zoned else _PLAIN
    return two.set_column(SCHEMA.get_field_index(name), name, values)


_GOOD: dict[str, Any] = {"ts": WHEN, "amount": Decimal("1.50"), "n": 1, "note": "ok"}
_TWO = pa.Table.from_pylist([{"id": one, **_GOOD} for one in AB], SCHEMA)
_PLAIN = written.without_zones(_TWO)
_WHOLE = _stored(_TWO)


def _of_any_format(write: Callable[[pa.Table], bytes], zoned: bool = True) -> list[File]:
    """Files of typed columns; those of ORC have times without a zone."""
    two = _TWO if zoned else _PLAIN
    return [
        File("good", write(two), AB),
        File("cut off", write(two)[:-20], whole=True),
        File("CSV", table(*GOOD), whole=True),
        File("a column less", write(two.drop_columns("note")), aside=2),
        File("a column more", write(two.append_column("more", two["n"])), aside=2),
        File("columns in another order", write(two.select(SCHEMA.names[::-1])), AB),
        File("ids of numbers", write(_of("id", pa.array([1, 2]), zoned)), aside=2),
        File("no id", write(_of("id", pa.array(["a", None]), zoned)), ("", "a")),
        File("zero rows", write(two.slice(0, 0))),
        File(
            "names in other letters", write(two.rename_columns(["ID", *SCHEMA.names[1:]])), aside=2
        ),
    ]


PARQUET = [
    *_of_any_format(_stored),
    File("no rows", b"", whole=True),
    File("a broken foot", _WHOLE[:-30] + b"\xff" * 22 + _WHOLE[-8:], whole=True),
    File("only the mark", b"PAR1", whole=True),
    File("the mark twice", b"PAR1PAR1", whole=True),
    File("no groups", _stored(SCHEMA.empty_table(), write_statistics=False)),
    File("a column twice", _stored(_TWO.append_column("note", _TWO["note"])), aside=2),
    File("a column twice in other letters", _stored(_TWO.append_column("Note", _TWO["note"])), aside=2),
    File("ids of bytes", _stored(_of("id", pa.array([b"a", b"b"]))), aside=2),
    File("no times", _stored(_TWO.set_column(1, "ts", pa.array([WHEN, None], SCHEMA.field("ts").type))), "a", 1),
    File("times far away", _stored(_TWO.set_column(1, "ts", pa.array([2**62, -(2**62)], SCHEMA.field("ts").type))), aside=2),
    File("times long ago", _stored(_TWO.set_column(1, "ts", pa.array([-(10**16), -(6 * 10**16)], SCHEMA.field("ts").type))), AB),
    File("half a surrogate", _stored(_TWO.set_column(0, "id", _unchecked(b"a", b"\xed\xa0\x80"))), "a", 1),
    File("NUL in an id", _stored(_TWO.set_column(0, "id", _unchecked(b"a", b"b\0"))), ("a", "b\0")),
    File("lists for texts", _stored(_TWO.set_column(4, "note", pa.array([["x"], []]))), aside=2),
    File("no columns", _stored(pa.table({})), whole=True),
    File("many groups", _stored(_TWO, row_group_size=1), AB),
    File("columns in pages of old", _stored(_TWO, data_page_version="2.0", use_dictionary=False), AB),
    File("packed by zstd", _stored(_TWO, compression="zstd"), AB),
    File("packed by brotli", _stored(_TWO, compression="brotli"), whole=True),
    File("ORC", _orc(_TWO), whole=True),
]  # fmt: skip

_GOOD_ORC = _orc(_PLAIN)
ORC = [
    *_of_any_format(_orc, zoned=False),
    File("no bytes", b"", whole=True),
    File("a broken foot", _GOOD_ORC[:-40] + b"\xff" * 30 + _GOOD_ORC[-10:], whole=True),
    File("only the mark", b"ORC", whole=True),
    File("Parquet", _WHOLE, whole=True),
    File("times with a zone", _orc(_TWO), whole=True),
    File("lists of times with a zone", _orc(_PLAIN.append_column("more", pa.array([[WHEN], []], pa.list_(pa.timestamp("us", "UTC"))))), whole=True),
    File("texts that are none", _orc(_of("id", _unchecked(b"a", b"\xff"), zoned=False)), "a", 1),
    File("lists for texts", _orc(_of("note", pa.array([["x"], []]), zoned=False)), aside=2),
    *(File(f"packed by {name}", _orc(_PLAIN, compression=name), AB) for name in ("zlib", "snappy", "lz4", "zstd")),
]  # fmt: skip

_GOOD_AVRO = _avro(_TWO)
AVRO = [
    *_of_any_format(_avro),
    File("no bytes", b"", whole=True),
    File("a broken end", _GOOD_AVRO[:-4] + b"\xff" * 4, whole=True),
    File("only the mark", b"Obj\x01", whole=True),
    File("Parquet", _WHOLE, whole=True),
    File("texts that are none", _GOOD_AVRO.replace(b"\x02\x02b", b"\x02\x02\xff"), "a", 1),
    *(File(f"packed by {name}", _avro(_TWO, codec=name), AB) for name in ("deflate", "snappy", "bzip2", "zstandard", "xz")),
]  # fmt: skip

NAMES = [
    "a b.csv", "a#b.csv", "a%20b.csv", "a?b.csv", "[1].csv", "{x}.csv", "a:b.csv", "-a.csv", "a\nb.csv",
    "\u00fc.csv", "u\u0308.csv", "\U0001f600.csv", "a\\b.csv", "a'b.csv", 'a"b.csv', "a,b.csv", "a=b.csv",
    "n" * 240 + ".csv", "~.csv", "$HOME.csv", "a..csv", "a;b.csv", "a&b.csv", "a+b.csv", "a*b.csv", "a|b.csv",
]  # fmt: skip
"""Of files that are right otherwise."""


KINDS = {
    "csv": ("csv", "csv"),
    "packed": ("csv", "csv.gz"),
    "packed_zst": ("csv", "csv.zst"),
    "packed_bz2": ("csv", "csv.bz2"),
    "named": ("csv", "csv"),
    "placed": ("placed", "tsv"),
    "placed_packed": ("placed", "tsv.gz"),
    "json": ("json", "json"),
    "whole": ("whole", "json"),
    "whole_packed": ("whole", "json.zst"),
    "parquet": ("parquet", "parquet"),
    "orc": ("orc", "orc"),
    "avro": ("avro", "avro"),
}
"""By the folder that files lie in: their source, and how their names end."""
FILES: dict[str, Sequence[File]] = {
    "csv": CSV,
    "packed": _packed_by("gzip", gzip.compress),
    "packed_zst": _packed_by("zstd", PACKERS["zstd"]),
    "packed_bz2": _packed_by("bz2", PACKERS["bz2"]),
    "named": [File(name, table(line("a")), "a") for name in NAMES],
    "placed": PLACED,
    "placed_packed": [replace(one, content=gzip.compress(one.content)) for one in PLACED],
    "json": JSON,
    "whole": WHOLE_JSON,
    "whole_packed": [replace(one, content=PACKERS["zstd"](one.content)) for one in WHOLE_JSON],
    "parquet": PARQUET,
    "orc": ORC,
    "avro": AVRO,
}

_SOURCE = """
  raw.{0}:
    path: landing/{0}/**
    format: {1}
    event_time_column: ts
    columns: {2}"""
_KEYS = {
    "placed": '\n    delimiter: "\\t"\n    header: false\n    quote: none',
    "whole": "\n    multiline: true",
}
_FORMATS = {"placed": "csv", "whole": "json"}


def path_of(kind: str, file: File) -> str:
    """Where a file lies in the folder of the project."""
    source, ending = KINDS[kind]
    name = file.name if kind == "named" else f"{file.name}.{ending}"
    return f"landing/{source}/{kind}/{name}"


def write(root: Path, *, aside: bool) -> None:
    """A project of all files; whether they are set aside where they cannot be read or drift."""
    (root / "models").mkdir()
    sources = list(dict.fromkeys(source for source, _ in KINDS.values()))
    text = "name: hostile\nsources:"
    for source in sources:
        text += _SOURCE.format(source, _FORMATS.get(source, source), COLUMNS)
        text += _KEYS.get(source, "")
        if aside:
            text += "\n    on_drift: set_aside\n    on_unreadable: set_aside"
    for kind, files in FILES.items():
        for file in files:
            at = root / path_of(kind, file)
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(file.content)
    (root / "infold.yml").write_text(text)
    counts = " UNION ALL ".join(f"SELECT count(*) AS n FROM raw.{source}" for source in sources)
    (root / "models" / "all.sql").write_text(f"---\nmaterialization: table\n---\n{counts}")
