"""
How late rows are: event day by received day, shares by age, and what a lookback would have missed.

A source names the column that says when a row was received, and the table keeps it: so each row
tells itself. The run in which a row arrived says nothing: a file may have been there for years.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY, HOUR, Granularity, show_instant, within_calendar
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.queries import quoted
from infold.core.report import Heat, How, Lateness, Measures, Missed
from infold.core.trace import CellState

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 5_000_000
"""Of how many rows the two times are read, the newest by event time."""

LOOKBACKS = (1, 3, 7, 30)
"""Days that a job with a lookback would process again each day."""

AGES = (
    ("under an hour", HOUR),
    ("under a day", DAY),
    ("1 to 3 days", 3 * DAY),
    ("3 to 7 days", 7 * DAY),
    ("7 to 30 days", 30 * DAY),
    ("30 to 365 days", 365 * DAY),
    ("over a year", None),
)
"""Ages of rows when they were received; each up to, not including, its length."""

UNITS = (
    (Granularity.DAY, DAY),
    (Granularity.WEEK, 7 * DAY),
    (Granularity.MONTH, 30 * DAY),
    (Granularity.QUARTER, 91 * DAY),
)
"""What a picture counts by: the first that gives few enough columns (or lines), else years."""

BINS = 110
"""So many columns and lines a picture has, unless another number is asked for."""

_TAIL = 0.002
"""The picture leaves out the oldest rows, so that one wrong clock does not make it a single dot."""


@dataclass(frozen=True)
class Measured:
    """Rows by event time, received time, age and number."""

    rows: pa.Table
    """With ``event`` and ``received`` (timestamps), ``age`` (microseconds), ``late`` (whole days
    of UTC from one to the other) and ``rows``."""
    since: int | None = None
    """Older rows were not read."""


def lateness_of(
    project: Project, ledger: Ledger, lake: Lake, name: str, bins: tuple[int, int] = (BINS, BINS)
) -> Lateness:
    """
    The lateness of the rows of one table of events.

    ``bins`` are how many columns and lines a picture of it may have.
    """
    node = project[name]
    measured, column = _measured(project, node, ledger, lake), received_column(project, node)
    if measured is None:
        return Lateness(name, node.source, How.NOTHING, column)
    return Lateness(
        model=name,
        source=node.source,
        how=How.RECEIVED,
        column=column,
        since=measured.since,
        measures=measures_of(measured.rows, bins),
    )


def _measured(project: Project, node: Node, ledger: Ledger, lake: Lake) -> Measured | None:
    if node.name not in ledger.traces():
        return None
    column, cells = received_column(project, node), ledger.cells(node.name)
    if column is None or not cells:
        return None
    return _from_rows(node, lake, column, cells)


def received_column(project: Project, node: Node) -> str | None:
    """The column of the table with the received time, where it is the source's own."""
    import sqlglot
    from sqlglot import expressions as exp

    source = project.sources.get(node.source or "")
    if source is None or source.received_column is None or node.model.timeseries is None:
        return None
    if node.landed:
        return source.received_column
    try:
        select = sqlglot.parse_one(node.model.sql, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return None
    if not isinstance(select, exp.Select):
        return None
    for item in select.selects:
        inner = item.unalias() if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Column) and inner.name.lower() == source.received_column.lower():
            return str(item.alias_or_name)
        if isinstance(inner, exp.Star):
            return source.received_column
    return None


def _from_rows(
    node: Node, lake: Lake, received: str, cells: Sequence[CellState]
) -> Measured | None:
    """By two columns of the table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert node.model.timeseries is not None, "the caller asks for tables with a time"
    event = node.model.timeseries.event_time_column
    since, where = _newest(cells), None
    if since is not None:
        where = f"{quoted(event)} >= '{show_instant(since)}'"
    stored = lake.rows(table_name(node.name), columns=[event, received], where=where)
    instant = pa.timestamp("us")
    pair = pa.table(
        {"event": stored[event].cast(instant), "received": stored[received].cast(instant)}
    )
    for name in ("event", "received"):  # a wrong unit puts a time into the year 33,000
        pair = pair.filter(within_calendar(pair[name]))
    if not pair.num_rows:
        return None
    age = pc.subtract(pair["received"].cast(pa.int64()), pair["event"].cast(pa.int64()))
    ones = pa.array([1], pa.int64()).take(pa.array([0] * pair.num_rows))
    late = pc.subtract(_days(pair["received"]), _days(pair["event"]))
    rows = pair.append_column("age", age).append_column("late", late).append_column("rows", ones)
    return Measured(rows, since)


def _newest(cells: Sequence[CellState]) -> int | None:
    """
    From where on the newest cells have as many rows as are read; None for all of them.

    The newest one with rows is read whatever its size: without it there would be nothing to show.
    """
    rows, since = 0, None
    for state in reversed(cells):
        if rows and rows + state.rows > MOST_ROWS:
            return since
        rows, since = rows + state.rows, state.cell.start
    return None


def _days(instants: Any) -> Any:
    """The days of UTC, counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.divide(pc.floor_temporal(instants, unit="day").cast(pa.int64()), DAY)


def measures_of(rows: pa.Table, bins: tuple[int, int] = (BINS, BINS)) -> Measures:
    """The picture, the shares by age, and the lookbacks, of rows as in :class:`Measured`."""
    import pyarrow.compute as pc

    days, late = _days(rows["event"]), rows["late"]
    return Measures(
        rows=_sum(rows["rows"]),
        ages=_ages(rows),
        lookbacks=tuple(
            _missed(rows, days, pc.greater(late, length), length) for length in LOOKBACKS
        ),
        longest_days=pc.max(late).as_py(),
        worst=_worst(rows, days, pc.greater(late, 1)),
        heat=_heat(rows, bins),
    )


def _sum(values: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(values).as_py() or 0)


def _missed(rows: pa.Table, days: Any, missed: Any, length: int) -> Missed:
    """How many rows and days a lookback leaves wrong."""
    import pyarrow.compute as pc

    event_days = pc.count_distinct(days.filter(missed)).as_py()
    return Missed(length, _sum(rows["rows"].filter(missed)), event_days)


def _ages(rows: pa.Table) -> tuple[tuple[str, int], ...]:
    import pyarrow.compute as pc

    counts, below = [], 0
    for label, end in AGES:
        upto = _sum(rows["rows"] if end is None else rows["rows"].filter(pc.less(rows["age"], end)))
        counts.append((label, upto - below))
        below = upto
    return tuple(counts)


def _worst(rows: pa.Table, days: Any, late: Any) -> tuple[tuple[int, int], ...]:
    """The event days with most late rows."""
    import pyarrow as pa

    late_rows = pa.table({"day": days, "rows": rows["rows"]}).filter(late)
    grouped = late_rows.group_by("day").aggregate([("rows", "sum")])
    listed = grouped.sort_by([("rows_sum", "descending"), ("day", "descending")]).slice(0, 10)
    return tuple((one["day"] * DAY, one["rows_sum"]) for one in listed.to_pylist())


def _heat(rows: pa.Table, bins: tuple[int, int]) -> Heat:
    """Rows by event time and received time, in units that the picture has room for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    event = rows["event"].cast(pa.int64())
    first = pc.quantile(event, q=_TAIL, interpolation="lower")[0].as_py()
    shown = rows.filter(pc.greater_equal(event, first))
    last = max(pc.max(shown[name]).cast(pa.int64()).as_py() for name in ("event", "received"))
    units = [
        next((unit for unit, size in UNITS if (last - first) // size < most), Granularity.YEAR)
        for most in bins
    ]
    binned = pa.table(
        {
            name: pc.floor_temporal(shown[name], unit=unit.value).cast(pa.int64())
            for name, unit in zip(("event", "received"), units, strict=True)
        }
        | {"rows": shown["rows"]}
    )
    grouped = binned.group_by(["event", "received"]).aggregate([("rows", "sum")])
    cells = sorted((one["event"], one["received"], one["rows_sum"]) for one in grouped.to_pylist())
    left_out = _sum(rows["rows"]) - _sum(shown["rows"])
    return Heat(units[0], units[1], tuple(cells), left_out, first)
