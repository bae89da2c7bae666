"""
How a Delta table is partitioned: by a column of infold's own, the start of a stretch of time.

Delta partitions by stored columns. So each row has the start of the month (day, year, hour) that
its time is in. What the column is made from is in its own metadata, which is replaced with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from infold.core.interval import Granularity
from infold.core.own_columns import PARTITION, is_own
from infold.core.stored_table import StoredLayout
from infold.core.type_changes import Type

COLUMN = "infold.column"
UNIT = "infold.partition"
TYPE = "infold.type"


def layout_of(fields: Sequence[Mapping[str, Any]]) -> StoredLayout:
    """The layout of a table with these columns."""
    own: Mapping[str, Any] = next(
        (one.get("metadata") or {} for one in fields if one["name"] == PARTITION), {}
    )
    if COLUMN not in own:
        return StoredLayout(storage="Delta")
    return StoredLayout("Delta", own[COLUMN], Granularity(own[UNIT]), own[TYPE])


def layout_metadata(column: str, unit: Granularity, type_: str) -> Mapping[str, str]:
    """The metadata of the column by which a table is partitioned."""
    return {COLUMN: column, UNIT: unit.value, TYPE: type_}


def user_columns(fields: Sequence[Mapping[str, Any]]) -> Mapping[str, Type]:
    """The columns but infold's own, with their types."""
    return {one["name"]: without_details(one["type"]) for one in shown_fields(fields)}


def shown_fields(fields: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The columns but infold's own, as the log has them."""
    return [one for one in fields if one["name"] != PARTITION and not is_own(one["name"])]


def without_details(type_: Any) -> Type:
    """A type as infold compares types: without what it says of NULLs, and without metadata."""
    if isinstance(type_, str):
        return type_
    if type_["type"] == "array":
        return {"type": "array", "elementType": without_details(type_["elementType"])}
    if type_["type"] == "map":
        return {
            "type": "map",
            "keyType": without_details(type_["keyType"]),
            "valueType": without_details(type_["valueType"]),
        }
    fields = [
        {"name": one["name"], "type": without_details(one["type"])} for one in type_["fields"]
    ]
    return {"type": "struct", "fields": fields}
