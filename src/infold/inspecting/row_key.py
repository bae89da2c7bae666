"""The columns that tell the rows of a table apart."""

from __future__ import annotations

from infold.core.model import Deduplicate, Kind
from infold.core.project import Node
from infold.core.version_rules import VALID_FROM


def row_key(node: Node) -> tuple[str, ...]:
    """The columns that identify a row of a table; empty if that is unknown."""
    if node.model.kind is Kind.SESSIONS:
        return ("session_id",)
    if node.grouped is not None:
        return tuple(key.name for key in node.grouped.keys)
    if node.versions is not None:
        return (*node.versions.keys, VALID_FROM)
    if node.model.kind is Kind.EVENTS and node.model.unique_key:
        time = node.model.timeseries.event_time_column if node.model.timeseries else None
        everywhere = node.model.deduplicate is Deduplicate.EVERYWHERE
        return (*node.model.unique_key, *(() if everywhere or time is None else (time,)))
    return node.model.incremental.unique_key if node.model.incremental else ()
