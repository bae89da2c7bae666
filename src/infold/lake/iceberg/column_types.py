"""The columns of an Iceberg table with their types, by its metadata, as Spark names types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infold.core.own_columns import is_own
from infold.core.type_changes import Type

_NAMES = {
    "int": "integer",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
}
"""Iceberg's names of types where Spark has others."""


def user_columns(metadata: Mapping[str, Any], snapshot: int | None = None) -> Mapping[str, Type]:
    """The columns of the current schema, or of a snapshot's, but infold's own."""
    current = metadata.get("current-schema-id")
    if snapshot is not None:
        every = metadata.get("snapshots") or []
        kept = [one.get("schema-id") for one in every if one["snapshot-id"] == snapshot]
        if not kept:
            return {}
        current = kept[0]
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
    found: Sequence[Mapping[str, Any]] = fields
    return found


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
