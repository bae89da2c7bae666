"""Avro files without a JVM: their headers, and one column of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from infold.core.model import Source
from infold.lake.reading import listing
from infold.lake.stores.bucket import ReplacedError
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.lake.reading.source_file import SourceFile

list_files = listing.list_files
row_counts = listing.uncounted

Schema = Any
"""A schema of Avro, as JSON has it; names of types are replaced by the types."""


def event_times(file: SourceFile, _source: Source, column: str) -> Iterator[pa.Array]:
    """All rows are read for it; nothing where the file has no such column."""
    import pyarrow as pa

    from infold.lake.reading.avro_types import arrow_type

    schema, _ = header(file)
    field = next((one for one in schema["fields"] if one["name"] == column), None)
    if field is None:
        return
    plain = _without_meaning(field)
    alone = {**_without_meaning(schema), "fields": [plain]}
    values = pa.array([row[column] for row in _rows(file, alone)], arrow_type(plain["type"]))
    yield values.cast(arrow_type(field["type"]))


def header(file: SourceFile) -> tuple[Schema, str]:
    """The schema of a file's rows, and how its blocks are packed. OSError if it is damaged."""
    fastavro = _fastavro(file)
    with _damage(), file.raw() as opened:
        reader = fastavro.reader(opened)
        return _schema(fastavro, reader), reader.codec


def without_decimals(file: SourceFile) -> str:
    """The schema of a file's rows, as JSON: its columns that are decimals are plain bytes."""
    fastavro = _fastavro(file)
    with _damage(), file.raw() as opened:
        schema = json.loads(fastavro.reader(opened).metadata["avro.schema"])
        for field in schema["fields"]:
            field["type"] = _as_bytes(field["type"])
        return json.dumps(schema)


def _as_bytes(type_: Any) -> Any:
    if isinstance(type_, list):
        return [_as_bytes(one) for one in type_]
    if isinstance(type_, Mapping) and type_.get("logicalType") == "decimal":
        return {key: one for key, one in type_.items() if key != "logicalType"}
    return type_


def _rows(file: SourceFile, read_as: Schema | None = None) -> Iterator[Mapping[str, Any]]:
    """
    The rows of a file, with plain numbers, bytes and texts for times, decimals and the like.

    A text that is no UTF-8, and a time that Python does not have, are a matter of their row.
    """
    fastavro = _fastavro(file)
    with _damage(), file.raw() as opened:
        blocks = fastavro.block_reader(opened)
        plain = fastavro.parse_schema(_without_meaning(_schema(fastavro, blocks)))
        to = None if read_as is None else fastavro.parse_schema(read_as)
        for block in blocks:
            for _ in range(block.num_records):
                yield fastavro.schemaless_reader(
                    block.bytes_, plain, to, handle_unicode_errors="replace"
                )
            if block.bytes_.read(1):
                raise ValueError("there is more in a block than its rows")


@contextmanager
def _damage() -> Iterator[None]:
    """Raise whatever a library makes of bytes that are no Avro as OSError."""
    try:
        yield
    except (OSError, ReplacedError):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _schema(fastavro: ModuleType, opened: Any) -> Schema:
    schema = fastavro.schema.expand_schema(opened.writer_schema)
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise ValueError("its rows are no records")
    return schema


def _without_meaning(schema: Schema) -> Schema:
    """The schema with plain numbers, bytes and texts for times, decimals and the like."""
    if isinstance(schema, list):
        return [_without_meaning(one) for one in schema]
    if isinstance(schema, Mapping):
        return {
            key: one if key == "default" else _without_meaning(one)
            for key, one in schema.items()
            if key != "logicalType"
        }
    return schema


def _fastavro(file: SourceFile) -> ModuleType:
    try:
        import fastavro
        import fastavro.schema
    except ImportError as error:
        raise run_errors.avro_extra_missing(at=file.location) from error
    return fastavro
