"""Every type of Avro as a column that can be declared, or as one that fits nothing."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from tests.spark.reading.folder import Folder, utc

from infold.lake.reading.avro_types import arrow_type
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
def test_types_that_fit(tmp_path: Path, spark: SparkSession) -> None:
    """A value of each type is read as it was written."""
    folder = Folder(tmp_path, spark)
    types = {name: one[0] for name, one in COLUMNS.items()}
    folder.put("a.avro", content(types, {name: one[2] for name, one in COLUMNS.items()}))

    found = folder.values({name: one[1] for name, one in COLUMNS.items()})

    assert found == [tuple(one[3] for one in COLUMNS.values())]


@pytest.mark.spark
def test_parts_of_a_microsecond_are_set_aside(tmp_path: Path, spark: SparkSession) -> None:
    """Nanoseconds that are no whole microsecond do not fit."""
    folder = Folder(tmp_path, spark)
    types = {"id": "string", "at": logical("long", "timestamp-nanos")}
    folder.put("a.avro", content(types, {"id": "a", "at": 1}))

    found = folder.values({"id": "string", "at": "timestamp"})

    assert found == [("unparsable: at is not timestamp",)]


@pytest.mark.spark
@pytest.mark.parametrize("type_", NONE.values(), ids=NONE)
def test_types_that_fit_nothing(tmp_path: Path, spark: SparkSession, type_: Any) -> None:
    """A file with another type is an error that names the column."""
    folder = Folder(tmp_path, spark)
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
def test_decimals_of_any_length(
    tmp_path: Path, spark: SparkSession, size: int | None, digits: int, scale: int
) -> None:
    """A value of whatever precision is read as it is, or its row is set aside by its own value."""
    folder = Folder(tmp_path, spark)
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
