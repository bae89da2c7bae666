"""The rows to show for a name (of a table, of a view, set aside), and what is drawn of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infold.analysis.names.subject import time_column
from infold.core.interval import Granularity, show_instant, within_calendar
from infold.core.model import SET_ASIDE, Deduplicate, Kind, Model, table_name
from infold.core.own_columns import FIRST
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.queries import VALID_FROM, quoted
from infold.core.report import OverTime, Point, RowByRow, Series
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


# Rows are grouped by Arrow, down to a value for each cell of time, so that millions of them can be
# drawn. Of several rows of one time the lowest and the highest value are kept: what a sum or a mean
# would say depends on the column, and nothing here knows what that means.

MOST_COLUMNS = 4
"""How many columns of numbers are drawn; others by --columns."""

MOST_GROUPS = 12
"""How many values of a column have a line of their own, those with the highest numbers."""

_MOST_NAMES = 200
"""A column with more values is none to group by."""


def drawn_columns(schema: pa.Schema, model: Model | None) -> tuple[str, ...]:
    """The columns that a picture needs, so that no others are read; empty if none can be drawn."""
    time, numbers = _time_column(schema, model), _numbers(schema)
    if time is None and not numbers:
        return ()
    names = [name for name in schema.names if _is_name(schema, name)]
    needed = [*([time] if time else ()), *numbers, *names[:2]]
    return tuple(name for name in schema.names if name in needed)


def picture_of(rows: pa.Table, model: Model | None) -> OverTime | RowByRow | None:
    """What is drawn of rows; None if they have neither a time nor numbers."""
    time, numbers = _time_column(rows.schema, model), _numbers(rows.schema)
    numbers, rest = numbers[:MOST_COLUMNS], numbers[MOST_COLUMNS:]
    if time is None:
        return _row_by_row(rows, numbers, rest) if numbers else None
    return _over_time(rows, time, numbers, rest)


def _time_column(schema: pa.Schema, model: Model | None) -> str | None:
    """The column with the time of a row: the model's own, else the first of dates or times."""
    import pyarrow as pa

    times = [
        one.name for one in schema if pa.types.is_timestamp(one.type) or pa.types.is_date(one.type)
    ]
    candidates = [FIRST]
    if model is not None and model.timeseries is not None:
        candidates = [model.timeseries.partition_column, model.timeseries.event_time_column]
    return next((name for name in (*candidates, *times) if name in times), None)


def _numbers(schema: pa.Schema) -> list[str]:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return [one.name for one in schema if any(kind(one.type) for kind in kinds)]


def _is_name(schema: pa.Schema, name: str) -> bool:
    import pyarrow as pa

    kind = schema.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _row_by_row(rows: pa.Table, numbers: Sequence[str], rest: Sequence[str]) -> RowByRow:
    names = [name for name in rows.column_names if _is_name(rows.schema, name)][:1]
    labels = rows[names[0]].to_pylist() if names else range(1, rows.num_rows + 1)
    return RowByRow(
        label=names[0] if names else "row",
        labels=tuple("NULL" if one is None else str(one) for one in labels),
        columns=tuple((name, tuple(_finite(rows[name]).to_pylist())) for name in numbers),
        not_drawn=tuple(rest),
    )


def _finite(column: Any) -> Any:
    """The values as doubles, without those that are no numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    doubles = column.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(doubles), doubles, pa.scalar(None, pa.float64()))


def _over_time(rows: pa.Table, time: str, numbers: Sequence[str], rest: Sequence[str]) -> OverTime:
    import pyarrow as pa
    import pyarrow.compute as pc

    at = rows[time].cast(pa.timestamp("us"), safe=False)
    known = within_calendar(at)
    timed, at = rows.filter(known), at.filter(known)
    finest = _finest(at)
    cells = pc.floor_temporal(at, unit=finest.value).cast(pa.int64())
    plain = pa.table({"__cell": cells} | {name: _finite(timed[name]) for name in numbers})
    by = _group(timed, at)
    if by and numbers:
        plain = plain.append_column("__by", timed[by])
        series = [_by_group(plain, name, finest) for name in numbers]
    else:
        several = pc.count_distinct(plain["__cell"]).as_py() < plain.num_rows
        first = [_rows_series(plain, finest)] if several or not numbers else []
        series = [*first, *(_series(plain, name, finest) for name in numbers)]
        by = ""
    left_out = rows.num_rows - timed.num_rows
    return OverTime(time, finest, tuple(series), by, left_out, tuple(rest))


def _finest(at: Any) -> Granularity:
    """Days where all times are midnights, else hours."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.floor_temporal(at, unit="day").cast(pa.int64())
    return (
        Granularity.DAY if pc.all(pc.equal(days, at.cast(pa.int64()))).as_py() else Granularity.HOUR
    )


def _group(rows: pa.Table, at: Any) -> str:
    """
    The first column of names that tells the rows of each time apart.

    Only where a time has two rows or more on average: events that happen to be at one instant are
    not rows for a period and a name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.count_distinct(at).as_py() * 2 > rows.num_rows:
        return ""
    names: list[str] = rows.column_names
    for name in names:
        if not _is_name(rows.schema, name):
            continue
        if not 1 < pc.count_distinct(rows[name], mode="all").as_py() <= _MOST_NAMES:
            continue
        pairs = pa.table({"at": at, "by": rows[name]}).group_by(["at", "by"]).aggregate([])
        if pairs.num_rows == rows.num_rows:
            return name
    return ""


def _rows_series(plain: pa.Table, finest: Granularity) -> Series:
    """How many rows there are at each time."""
    counted = plain.group_by("__cell").aggregate([([], "count_all")]).sort_by("__cell")
    points = (
        Point(finest.cell(start), count, count)
        for start, count in zip(
            counted["__cell"].to_pylist(), counted["count_all"].to_pylist(), strict=True
        )
    )
    return Series("rows", tuple(points), adds_up=True)


def _series(plain: pa.Table, name: str, finest: Granularity) -> Series:
    return Series(name, _points(plain, name, finest))


def _points(plain: pa.Table, name: str, finest: Granularity) -> tuple[Point, ...]:
    """The lowest and the highest value at each time that has one."""
    known = plain.filter(plain[name].is_valid())
    ends = known.group_by("__cell").aggregate([(name, "min"), (name, "max")]).sort_by("__cell")
    columns = (ends[one].to_pylist() for one in ("__cell", f"{name}_min", f"{name}_max"))
    return tuple(
        Point(finest.cell(start), low, high) for start, low, high in zip(*columns, strict=True)
    )


def _by_group(plain: pa.Table, name: str, finest: Granularity) -> Series:
    """The same for each value of the column that groups; the highest values first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    groups = []
    for value in plain["__by"].unique().to_pylist():
        is_value = pc.is_null(plain["__by"]) if value is None else pc.equal(plain["__by"], value)
        points = _points(plain.filter(pc.fill_null(is_value, pa.scalar(False))), name, finest)
        groups.append(("NULL" if value is None else str(value), points))
    groups.sort(key=lambda one: -max((point.high for point in one[1]), default=float("-inf")))
    every = tuple(point for _, points in groups for point in points)
    return Series(name, every, groups=tuple(groups[:MOST_GROUPS]))
