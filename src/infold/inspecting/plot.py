"""
What is drawn of some rows: which columns, and their values at each time.

Rows are grouped by Arrow, down to a value for each cell of time, so that millions of them can be
drawn. Of several rows of one time the lowest and the highest value are kept: what a sum or a mean
would say depends on the column, and nothing here knows what that means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from infold.core.interval import Granularity, within_calendar
from infold.core.model import Model
from infold.core.own_columns import FIRST
from infold.core.report import OverTime, Point, RowByRow, Series

if TYPE_CHECKING:
    import pyarrow as pa

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
