"""The metadata file of a table, read directly: no Iceberg library is needed for that."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infold.core.type_changes import Type
from infold.lake.stores import places
from infold.messages import run_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import StaticTable


def read_metadata(location: str) -> dict[str, Any]:
    """The metadata file of a table. Raises ``metadata_missing`` where it cannot be read."""
    try:
        raw = places.read(location)
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        metadata = json.loads(raw)
        if not isinstance(metadata, dict):
            raise TypeError("it is no JSON object")
    except OSError as error:
        why = error.strerror or str(error)
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    except (EOFError, TypeError, ValueError, zlib.error) as error:
        why = f"it is damaged: {error}"
        raise run_errors.metadata_missing(path=places.shown(location), why=why) from error
    return metadata


def open_table(location: str) -> StaticTable:
    """A table as one metadata file describes it. Raises ``metadata_missing``."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(location, dict(places.properties(location)))
    except OSError as error:
        why = error.strerror or str(error).partition("\n")[0]
    except ValidationError as error:
        why = f"it is damaged: {str(error).partition(': ')[0].splitlines()[-1].strip()}"
        if "view-uuid" in read_metadata(location):
            why = "it is that of a view, which has no rows of its own"
    raise run_errors.metadata_missing(path=places.shown(location), why=why)


def scan_where(
    stored: StaticTable, columns: Sequence[str], where: str | None, limit: int | None
) -> pa.Table:
    """
    The rows of a table that a comparison of columns with values leaves; all without one.

    Raises ``command_errors.bad_filter``.
    """
    from pyiceberg.expressions import AlwaysTrue

    from infold.lake.chosen_rows import truth_of
    from infold.lake.iceberg.scan import scan_rows

    if where is None:
        return scan_rows(stored, AlwaysTrue(), columns, limit=limit)
    rows = truth_of(where, stored.schema())
    return scan_rows(stored, rows, columns, limit=limit)


_NAMES = {
    "int": "integer",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
}
"""Iceberg's names of types where Spark has others."""


def user_columns(metadata: Mapping[str, Any], snapshot: int | None = None) -> Mapping[str, Type]:
    """The columns of the current schema, or of a snapshot's, but infold's own."""
    from infold.core.own_columns import is_own

    current = metadata.get("current-schema-id")
    if snapshot is not None:
        every = metadata.get("snapshots") or []
        schema_ids = [one.get("schema-id") for one in every if one["snapshot-id"] == snapshot]
        if not schema_ids:
            return {}
        current = schema_ids[0]
    schemas: Sequence[Mapping[str, Any]] = metadata.get("schemas") or []
    [fields] = [one["fields"] for one in schemas if one["schema-id"] == current] or [[]]
    return {one["name"]: spark_type(one["type"]) for one in fields if not is_own(one["name"])}


def column_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of all columns of the current schema."""
    return tuple(str(one["name"]) for one in current_fields(metadata))


def current_fields(metadata: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The columns of the current schema, as metadata has them."""
    current, schemas = metadata.get("current-schema-id"), metadata.get("schemas") or []
    [fields] = [one["fields"] for one in schemas if one["schema-id"] == current] or [[]]
    columns: Sequence[Mapping[str, Any]] = fields
    return columns


def spark_type(type_: str | Mapping[str, Any]) -> Type:
    """A type of a table as Spark sees it."""
    if isinstance(type_, str):
        if type_.startswith("fixed"):
            return "binary"
        return _NAMES.get(type_, type_.replace(" ", ""))
    if type_["type"] == "list":
        return {"type": "array", "elementType": spark_type(type_["element"])}
    if type_["type"] == "map":
        keys, values = spark_type(type_["key"]), spark_type(type_["value"])
        return {"type": "map", "keyType": keys, "valueType": values}
    fields = [{"name": one["name"], "type": spark_type(one["type"])} for one in type_["fields"]]
    return {"type": "struct", "fields": fields}
