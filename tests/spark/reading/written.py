"""Files of every format and packing, as programs other than Spark write them."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from infold.core.formats import packing_of


def zstd(raw: bytes) -> bytes:
    """Packed by zstd."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packing:
        packing.write(raw)
    return bytes(sink.getvalue().to_pybytes())


PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": zstd,
}


def packed(name: str, raw: bytes) -> bytes:
    """The bytes of a file as its name says."""
    packing = packing_of(name)
    return raw if packing is None else PACKERS[packing](raw)


def json_lines(rows: pa.Table, at: Path) -> None:
    """The rows as one object a line."""
    at.write_text("\n".join(json.dumps(row) for row in rows.to_pylist()))


def without_zones(rows: pa.Table) -> pa.Table:
    """The rows with times as clocks in UTC show them: Spark reads no others from ORC."""
    plain = [
        pa.field(
            one.name, pa.timestamp(one.type.unit) if pa.types.is_timestamp(one.type) else one.type
        )
        for one in rows.schema
    ]
    return rows.cast(pa.schema(plain))


def avro(rows: pa.Table, sink: BinaryIO, codec: str = "null") -> None:
    """The rows as Avro: every column may be NULL."""
    fields = [
        {"name": one.name, "type": ["null", _avro_type(one.type)], "default": None}
        for one in rows.schema
    ]
    schema = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(sink, schema, rows.to_pylist(), codec=codec)


def _avro_file(rows: pa.Table, at: Path) -> None:
    with at.open("wb") as file:
        avro(rows, file)


def _avro_type(type_: pa.DataType) -> Any:
    if pa.types.is_timestamp(type_):
        zone = "" if type_.tz else "local-"
        word = {"ms": "millis", "us": "micros"}[type_.unit]
        return {"type": "long", "logicalType": f"{zone}timestamp-{word}"}
    if pa.types.is_decimal(type_):
        digits = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if pa.types.is_date(type_):
        return {"type": "int", "logicalType": "date"}
    return _AVRO_TYPES[type_]


_AVRO_TYPES = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.binary(): "bytes",
}

TABLES: Mapping[str, Callable[[pa.Table, Path], None]] = {
    ".csv": pyarrow.csv.write_csv,
    ".json": json_lines,
    ".parquet": pyarrow.parquet.write_table,
    ".orc": lambda rows, at: pyarrow.orc.write_table(without_zones(rows), str(at)),
    ".avro": _avro_file,
}
