"""The order in which rows are shown: by time and key, or as somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from infold.analysis.names.subject import time_column
from infold.core.interval import show_instant
from infold.core.model import Deduplicate, Kind
from infold.core.project import Node
from infold.core.queries import VALID_FROM
from infold.core.quoting import quoted
from infold.core.trace import CellState
from infold.messages import command_errors

if TYPE_CHECKING:
    import pyarrow as pa


MOST = 1_000_000
"""So many rows are read at most to show the first of them in order, unless an order is asked."""
UNORDERED = "These rows are in no order, as there are more than {0:,}: --order NAMES sorts them."


def own_order(node: Node) -> tuple[str, ...]:
    """The columns that the rows of a table are shown by: its time, and its key."""
    time = time_column(node)
    return tuple(dict.fromkeys((*((time,) if time else ()), *row_key(node))))


def first_cells(node: Node, cells: Iterable[CellState], limit: int) -> str | None:
    """A predicate for the earliest cells that have so many rows; None where no cell bounds it."""
    time, rows = time_column(node), 0
    if time is None or node.model.granularity is None:
        return None
    for cell in cells:
        rows += cell.rows
        if rows >= limit:
            return f"{quoted(time)} < '{show_instant(cell.cell.end)}'" if rows <= MOST else None
    return None


def in_order(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """
    Rows by these columns, those with a minus before them downwards; without any, by all of them.

    NULL comes last. Raises ``unknown_columns``, and ``not_sortable`` of lists, maps and structs.
    """
    import pyarrow as pa

    def sortable(name: str) -> bool:
        return not pa.types.is_nested(rows.schema.field(name).type)

    if not order:  # nothing tells the rows of the table apart
        keys = [(name, "ascending") for name in rows.column_names if sortable(name)]
        return rows.sort_by(keys) if keys else rows
    by_name = {name.lower(): name for name in rows.column_names}
    asked = [
        (one.removeprefix("-"), "descending" if one.startswith("-") else "ascending")
        for one in order
    ]
    unknown = [name for name, _ in asked if name.lower() not in by_name]
    if unknown:
        raise command_errors.unknown_columns(names=unknown, known=rows.column_names)
    keys = [(by_name[name.lower()], way) for name, way in asked]
    if nested := [name for name, _ in keys if not sortable(name)]:
        raise command_errors.not_sortable(names=nested)
    return rows.sort_by(keys)


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
