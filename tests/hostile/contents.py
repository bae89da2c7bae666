# ruff: noqa: E501 (one file is one line)
"""
Files of data that nobody should deliver, each with what is in them.

``good`` are the ids that belong in the table, ``aside`` is how many rows do not; a file that cannot
be read as what it should be is one line in ``set_aside`` (``whole``), and no row of it is stored.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import parquet

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
    File("only a header", table()),
    File("only a header without an end", HEAD.encode()),
    File("no end", table(*GOOD)[:-1], AB),
    File("lines of Windows", table(*GOOD).replace(b"\n", b"\r\n"), AB),
    File("a mark", b"\xef\xbb\xbf" + table(*GOOD), AB),
    File("UTF-16", table(*GOOD).decode().encode("utf-16"), whole=True),
    File("not UTF-8", table(line("a"), line("b", note="caf@")).replace(b"@", b"\xe9"), "a", 1),
    File("half a surrogate", table(line("a"), line("@")).replace(b"@", b"\xed\xa0\x80"), "a", 1),
    File("blank lines", table("\n", line("a"), "\n\n", line("b"), "\n"), AB),
    File("too few", table(line("a"), "b,2024-03-01\n"), "a", 1),
    File("too many", table(line("a"), line("b").strip() + ",more\n"), "a", 1),
    File("one word", table(line("a"), "b\n"), "a", 1),
    File("only commas", table(line("a"), ",,,,\n"), "a", 1),
    File("quoted", table(line('"a"'), line("b", note='"x ""y"", z"')), AB),
    File("no id", table(line("a"), line("")), "a", 1),
    File("columns in another order", table("1,ok,a,1.00," + AT + "\n", head="n,note,id,amount,ts"), "a"),
    File("a column less", table("a," + AT + ",1.00,1\n", head="id,ts,amount,n"), whole=True),
    File("a column more", table(line("a").strip() + ",x\n", head=HEAD + ",more"), whole=True),
    File("a column twice", table(line("a").strip() + ",x\n", head=HEAD + ",note"), whole=True),
    File("no header", b"".join(one.encode() for one in GOOD), whole=True),
    File("semicolons", table(*GOOD).replace(b",", b";"), whole=True),
    File("binary", bytes(range(1, 256)) * 20, whole=True),
    File("HTML", b"<html><body>503 Service Unavailable</body></html>\n", whole=True),
    File("JSON", json.dumps({"id": "a", "ts": AT}).encode(), whole=True),
    File("bad times", _each(BAD_TIMES, "ts"), (), len(BAD_TIMES)),
    File("good times", _each(GOOD_TIMES, "ts"), _ids(len(GOOD_TIMES))),
    File("far times", _each(["9999-12-31", "2999-01-01"], "ts"), waiting=2),
    File("bad amounts", _each(BAD_AMOUNTS, "amount"), (), len(BAD_AMOUNTS)),
    File("no amounts", _each(["", "0", "-0.00", "99999999.99"], "amount"), _ids(4)),
    File("bad numbers", _each(BAD_NUMBERS, "n"), (), len(BAD_NUMBERS)),
    File("odd notes", _each(["=1+1", "\U0001f600", "\u202eabc", "\x1b[31m", "\\N", "NULL"], "note"), _ids(6)),
    File("a long note", table(line("a", note="x" * 300_000)), "a"),
    File("a long id", table(line("y" * 50_000)), ["y" * 50_000]),
    File("NUL in a note", table(line("a"), line("b", note="x\0y")), "a", 1),
    File("a line of NUL", table(line("a"), "\0\0\0\0\n"), "a", 1),
]  # fmt: skip
PACKED = [
    File("packed", gzip.compress(table(*GOOD)), AB),
    File("packed twice in one", gzip.compress(table(line("a"))) + gzip.compress(line("b").encode()), AB),
    File("packed nothing", gzip.compress(b"")),
    File("packed and cut off", gzip.compress(table(*GOOD))[:-12], whole=True),
    File("packed and broken", gzip.compress(table(*GOOD))[:20] + b"\0" * 30, whole=True),
    File("not packed", table(*GOOD), whole=True),
    File("an empty package", b""),
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
    "{",
    "}",
    "{]",
    '{"id": "a"',
    "no JSON",
    '{"id": "a", "ts": }',
    "NaN",
    "\x00",
    '"',
    "[",
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
    File("a deep note", _lines(_object()).replace(b'"ok"', DEEP.encode()) + _lines(_object("b")), ["a", "b"]),
    File("a key twice", b'{"id": "a", "id": "b", "ts": "2024-03-01", "amount": 1, "n": 1, "note": ""}\n', (), 1),
    File("a long note", _lines(_object(note="x" * 300_000)), "a"),
    File("an id of a number", _lines(_object(7), _object(7.0)), ["7", "7.0"]),  # type: ignore[arg-type]
    File("escapes", b'{"\\u0069d": "\\u0061", "ts": "2024-03-01", "amount": 1, "n": 1, "note": "\\n"}\n', "a"),
    File("nulls", _lines(_object(amount=None, n=None, note=None)), "a"),
    File("far times", _lines(_object(ts="9999-12-31"), _object("b", ts="2999-01-01")), waiting=2),
    File("CSV", table(*GOOD), whole=True),
    File("HTML", b"<html>\n<body>503</body>\n</html>\n", whole=True),
    File("UTF-16", _lines(_object()).decode().encode("utf-16"), whole=True),
    File("binary", bytes(range(256)) * 20, whole=True),
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


def _parquet(schema: pa.Schema = SCHEMA, *ids: str | None, **how: Any) -> bytes:
    values: dict[str, Any] = {"ts": WHEN, "amount": Decimal("1.50"), "n": 1, "note": "ok"}
    whole = pa.table(
        {"id": list(ids or AB), **{k: [v] * len(ids or AB) for k, v in values.items()}}
    )
    columns = []
    for field in schema:
        column = whole.column(field.name) if field.name in values or field.name == "id" else None
        if column is None or (field.name == "id" and pa.types.is_integer(field.type)):
            column = pa.chunked_array([list(range(whole.num_rows))])
        columns.append(column.cast(field.type))
    sink = BytesIO()
    parquet.write_table(pa.table(columns, schema=schema), sink, **how)
    return sink.getvalue()


def _typed(name: str, type_: pa.DataType) -> pa.Schema:
    return SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, type_))


_WHOLE = _parquet()
PARQUET = [
    File("good", _WHOLE, AB),
    File("no rows", _parquet(SCHEMA)[:0], whole=True),
    File("cut off", _WHOLE[:-20], whole=True),
    File("a broken foot", _WHOLE[:-30] + b"\xff" * 22 + _WHOLE[-8:], whole=True),
    File("a broken page", _WHOLE[:8] + b"\xff" * 60 + _WHOLE[68:], whole=True),
    File("only the mark", b"PAR1", whole=True),
    File("the mark twice", b"PAR1PAR1", whole=True),
    File("CSV", table(*GOOD), whole=True),
    File("a column less", _parquet(SCHEMA.remove(4)), whole=True),
    File("a column more", _parquet(SCHEMA.append(pa.field("more", pa.int32()))), whole=True),
    File("columns in another order", _parquet(pa.schema(list(SCHEMA)[::-1])), AB),
    File("ids of numbers", _parquet(_typed("id", pa.int64())), whole=True),
    File("amounts of doubles", _parquet(_typed("amount", pa.float64())), whole=True),
    File("long numbers", _parquet(_typed("n", pa.int64())), whole=True),
    File("short numbers", _parquet(_typed("n", pa.int16())), AB),
    File("times without a zone", _parquet(_typed("ts", pa.timestamp("us"))), AB),
    File("times in milliseconds", _parquet(_typed("ts", pa.timestamp("ms", "UTC"))), AB),
    File("times of long ago", _parquet(use_deprecated_int96_timestamps=True), AB),
    File("no id", _parquet(SCHEMA, "a", None), "a", 1),
    File("packed by zstd", _parquet(compression="zstd"), AB),
    File("packed by brotli", _parquet(compression="brotli"), whole=True),
]

NAMES = [
    "a b.csv", "a#b.csv", "a%20b.csv", "a?b.csv", "[1].csv", "{x}.csv", "a:b.csv", "-a.csv", "a\nb.csv",
    "\u00fc.csv", "u\u0308.csv", "\U0001f600.csv", "a\\b.csv", "a'b.csv", 'a"b.csv', "a,b.csv", "a=b.csv",
    "n" * 240 + ".csv", "~.csv", "$HOME.csv", "a..csv", "a;b.csv", "a&b.csv", "a+b.csv", "a*b.csv", "a|b.csv",
]  # fmt: skip
"""Of files that are right otherwise."""
