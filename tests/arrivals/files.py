"""Records of the reference written as the files of a source: JSON lines, CSV and Parquet."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.arrivals.shape import SourceSpec
from tests.reference.world import Broken, Record

from infold.core import interval


def write(path: Path, source: SourceSpec, records: Sequence[Record]) -> None:
    """Write a file as its source declares it, whole and at once (never seen half written)."""
    content = {"json": _json, "csv": _csv, "parquet": _parquet}[source.format](source, records)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"_{path.name}")  # names with a leading underscore wait
    fresh.write_bytes(content)
    fresh.replace(path)


def _json(source: SourceSpec, records: Sequence[Record]) -> bytes:
    lines = []
    for record in records:
        if isinstance(record, Broken):
            lines.append(record.text)
            continue
        values = (
            f"{json.dumps(column)}: {_json_value(record[column], type_)}"
            for column, type_ in source.columns.items()
        )
        lines.append("{" + ", ".join(values) + "}")
    return "".join(line + "\n" for line in lines).encode()


def _json_value(value: Any, type_: str) -> str:
    if value is None:
        return "null"
    if type_ == "timestamp":
        return f'"{interval.datetime_of(value).isoformat().replace("+00:00", "Z")}"'
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _csv(source: SourceSpec, records: Sequence[Record]) -> bytes:
    lines = [",".join(source.columns)]
    for record in records:
        if isinstance(record, Broken):
            lines.append(record.text)
            continue
        lines.append(
            ",".join(
                _csv_value(record[name], type_, source.times)
                for name, type_ in source.columns.items()
            )
        )
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
        packed.write("".join(line + "\n" for line in lines).encode())
    return out.getvalue()


def _csv_value(value: Any, type_: str, times: str) -> str:
    if value is None:
        return ""
    if type_ == "timestamp":
        return str(value // {"epoch_seconds": 1_000_000, "epoch_millis": 1_000}[times])
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


_ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "decimal(18,2)": pa.decimal128(18, 2),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
}


def _parquet(source: SourceSpec, records: Sequence[Record]) -> bytes:
    rows = [record for record in records if not isinstance(record, Broken)]
    schema = pa.schema([(name, _ARROW[type_]) for name, type_ in source.columns.items()])
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out)
    return out.getvalue()
