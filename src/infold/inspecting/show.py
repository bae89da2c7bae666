"""The rows to show for a name: those of a table, of a view, or those that were set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infold.analysis.names.subject import time_column
from infold.core.interval import show_instant
from infold.core.model import SET_ASIDE, Deduplicate, Kind, table_name
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.queries import VALID_FROM
from infold.core.quoting import quoted
from infold.core.trace import CellState
from infold.inspecting.audits import AUDIT_FAILURES
from infold.inspecting.left_out import set_aside_schema
from infold.inspecting.manifest import TABLES
from infold.messages import command_errors, errors
from infold.planning.selection import with_unapplied

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.core.trace import CellState


def shown_rows(
    project: Project,
    lake: Lake,
    table: str,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
    evaluate: Callable[[Project, str, int | None], pa.Table],
    left_out: Callable[[int | None], pa.Table | None],
    audit_failures: Callable[[], pa.Table],
    order: Sequence[str] | None = None,
    stored: StoredRows | None = None,
) -> pa.Table:
    """
    Rows of a stored table; of a view what ``evaluate`` makes of it.

    ``left_out`` are the rows that sessions leave out, at most so many: they are set aside, too.
    ``audit_failures`` are the rows that failed audits. They are sorted as ``order`` says; those of
    a table by its time and key, of which ``stored`` knows how many there are.
    """
    from infold.lake.chosen_rows import filtered_rows

    if order is not None:
        every = shown_rows(
            project, lake, table, None, where, None, evaluate, left_out, audit_failures
        )
        return select_rows(in_order(every, order), columns, limit)
    if table in {"set_aside", SET_ASIDE}:
        return _set_aside(project, lake, columns, where, limit, left_out)
    if table == AUDIT_FAILURES and table not in project:
        failures = audit_failures()
        failures = failures if where is None else filtered_rows(failures, where)
        return select_rows(failures, columns, limit)
    if table not in project:
        known = [*(node.name for node in project), "set_aside", AUDIT_FAILURES, *TABLES]
        raise with_unapplied(command_errors.unknown_table(table, known), project, table)
    if project[table].model.kind.is_view:
        if where is not None:
            raise command_errors.bad_filter(
                where=where, why=f"{table} is a view, and of views all rows are shown"
            )
        return select_rows(evaluate(project, table, limit), columns, limit)
    try:
        if stored is None:
            return lake.rows(table_name(table), columns=columns, where=where, limit=limit)
        return _by_time_and_key(lake, stored, columns, where, limit)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        raise command_errors.not_built(name=table) from None


@dataclass(frozen=True, slots=True)
class StoredRows:
    """A table whose rows are shown, the cells of it that have some, and who is told of no order."""

    node: Node
    cells: Sequence[CellState]
    note: Callable[[str], None]


def _by_time_and_key(
    lake: Lake,
    stored: StoredRows,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
) -> pa.Table:
    """Rows in the order of their time and key, as far as they are not too many for that."""
    node, table = stored.node, table_name(stored.node.name)
    known = {name.lower(): name for name in lake.columns(table) or {}}
    order = [known[name.lower()] for name in own_order(node) if name.lower() in known]
    condition = where
    if sum(cell.rows for cell in stored.cells) > MOST:
        condition = (
            None if limit is None or where is not None else first_cells(node, stored.cells, limit)
        )
        if condition is None:
            stored.note(UNORDERED.format(MOST))
            return lake.rows(table, columns=columns, where=where, limit=limit)
    order_columns = [] if columns is None else [name for name in order if name not in columns]
    read_columns = None if columns is None else [*columns, *order_columns]
    rows = in_order(lake.rows(table, columns=read_columns, where=condition), order)
    return select_rows(rows, columns, limit)


def _set_aside(
    project: Project,
    lake: Lake,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int | None,
    left_out: Callable[[int | None], pa.Table | None],
) -> pa.Table:
    """The rows that were set aside on their way into tables, then those that sessions leave out."""
    import pyarrow as pa

    from infold.lake.chosen_rows import filtered_rows

    try:
        stored = lake.rows(project.set_aside, columns=columns, where=where, limit=limit)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        stored = select_rows(
            set_aside_schema().empty_table(), columns
        )  # it is made with its first row
    room = None if limit is None else limit - stored.num_rows
    more = None if room == 0 else left_out(None if where else room)
    if more is None:
        return stored
    more = select_rows(more if where is None else filtered_rows(more, where), columns, room)
    return pa.concat_tables([stored.select(more.column_names).cast(more.schema), more])


def select_rows(
    rows: pa.Table, columns: Sequence[str] | None, limit: int | None = None
) -> pa.Table:
    """These columns of some rows, in this order; at most so many rows."""
    if columns is not None:
        unknown = [name for name in columns if name not in rows.column_names]
        if unknown:
            raise command_errors.unknown_columns(names=unknown, known=rows.column_names)
        rows = rows.select(list(columns))
    return rows if limit is None else rows.slice(0, limit)


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
    directions = [
        (one.removeprefix("-"), "descending" if one.startswith("-") else "ascending")
        for one in order
    ]
    unknown = [name for name, _ in directions if name.lower() not in by_name]
    if unknown:
        raise command_errors.unknown_columns(names=unknown, known=rows.column_names)
    keys = [(by_name[name.lower()], way) for name, way in directions]
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
