"""
How late rows are: event day by received day, shares by age, and what a lookback would have missed.

Where a source names the column that says when a row was received and the table keeps it, each row
tells itself. Elsewhere the ledger knows in which run rows arrived, and for which cells. Rows of the
first run are left out there: they were all there already, and nobody knows since when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infold.core.interval import DAY, EVER, HOUR, SECOND, datetime_of, show_instant
from infold.core.model import table_name
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.quoting import quoted
from infold.core.trace import CellState
from infold.ledger import SqlLedger
from infold.ledger.glimpses import steps_by_id
from infold.page.shapes import JsonObject, files_of_step, rows_before, seconds_of, version_shape
from infold.render.formatting import iso

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

UNITS = (("day", DAY), ("week", 7 * DAY), ("month", 30 * DAY), ("quarter", 91 * DAY))
"""What the picture counts by: the first that gives at most :data:`BINS` columns, else years."""

BINS = 110
ARRIVALS = 30
"""How many runs with arrivals are listed."""

_TAIL = 0.002
"""The picture leaves out the oldest rows, so that one wrong clock does not make it a single dot."""


@dataclass(frozen=True)
class Measured:
    """Rows by event time, received time, age and number, and how they were measured."""

    rows: pa.Table
    """With ``event`` and ``received`` (timestamps), ``age`` (microseconds), ``late`` (whole days
    of UTC from one to the other) and ``rows``."""
    how: str
    since: int | None = None
    """Older rows were not read."""
    long_cells: bool = False
    """Rows are known by cells longer than a day, so that a lookback misses cells, not days."""


def lateness_document(project: Project, ledger: SqlLedger, lake: Lake, name: str) -> JsonObject:
    """The lateness of the rows of one table of events."""
    node = project[name]
    found = _measured(project, node, ledger, lake)
    return {
        "model": name,
        "source": node.source,
        "how": found.how if found else "nothing",
        "column": _received_column(project, node),
        "since": None if found is None or found.since is None else iso(found.since),
        "long_cells": found is not None and found.long_cells,
        **({} if found is None else _shapes(found.rows)),
        "arrivals": _arrivals(ledger, node),
    }


def _measured(project: Project, node: Node, ledger: SqlLedger, lake: Lake) -> Measured | None:
    if node.name not in ledger.traces():
        return None
    column, cells = _received_column(project, node), ledger.cells(node.name)
    if column is not None and cells:
        return _from_rows(node, lake, column, cells)
    return _from_arrivals(node, ledger)


def _received_column(project: Project, node: Node) -> str | None:
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
    for one in select.selects:
        inner = one.unalias() if isinstance(one, exp.Alias) else one
        if isinstance(inner, exp.Column) and inner.name.lower() == source.received_column.lower():
            return str(one.alias_or_name)
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
    found = lake.rows(table_name(node.name), columns=[event, received], where=where)
    instant = pa.timestamp("us")
    pair = pa.table(
        {"event": found[event].cast(instant), "received": found[received].cast(instant)}
    )
    pair = pair.drop_null()
    if not pair.num_rows:
        return None
    age = pc.subtract(pair["received"].cast(pa.int64()), pair["event"].cast(pa.int64()))
    ones = pa.array([1], pa.int64()).take(pa.array([0] * pair.num_rows))
    late = pc.subtract(_days(pair["received"]), _days(pair["event"]))
    rows = pair.append_column("age", age).append_column("late", late).append_column("rows", ones)
    return Measured(rows, "received", since)


def _newest(cells: Sequence[CellState]) -> int | None:
    """
    From where on the newest cells have as many rows as are read; None for all of them.

    The newest one with rows is read whatever its size: without it there would be nothing to show.
    """
    rows, since = 0, None
    for one in reversed(cells):
        if rows and rows + one.rows > MOST_ROWS:
            return since
        rows, since = rows + one.rows, one.cell.start
    return None


def _from_arrivals(node: Node, ledger: SqlLedger) -> Measured | None:
    """By the runs in which rows arrived; ages are the least that rows of a cell can have."""
    import pyarrow as pa

    versions = ledger.versions(node.name)
    first = versions[0].number if versions else 0
    found = [
        one
        for one in ledger.arrivals(node.name, limit=200_000)
        if one.version > first and one.cell != EVER
    ]
    if not found:
        return None
    instant = pa.timestamp("us")
    rows = pa.table(
        {
            "event": pa.array([one.cell.start for one in found], instant),
            "received": pa.array([one.received.start for one in found], instant),
            "age": pa.array([max(0, one.received.start - one.cell.end) for one in found]),
            "late": pa.array(
                [max(0, one.received.start // DAY - (one.cell.end - 1) // DAY) for one in found]
            ),
            "rows": pa.array([one.rows for one in found]),
        }
    )
    long_cells = any(one.cell.end - one.cell.start > DAY for one in found)
    return Measured(rows, "runs", long_cells=long_cells)


def _days(instants: Any) -> Any:
    """The days of UTC, counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.divide(pc.floor_temporal(instants, unit="day").cast(pa.int64()), DAY)


def _shapes(rows: pa.Table) -> JsonObject:
    """The picture, the shares by age, and the lookbacks."""
    import pyarrow.compute as pc

    days, late = _days(rows["event"]), rows["late"]
    total = _sum(rows["rows"])
    return {
        "rows": total,
        "heat": _heat(rows),
        "ages": _ages(rows),
        "lookbacks": [
            {"days": length, **_missed(rows, days, pc.greater(late, length))}
            for length in LOOKBACKS
        ],
        "longest_days": pc.max(late).as_py(),
        "worst": _worst(rows, days, pc.greater(late, 1)),
    }


def _sum(values: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(values).as_py() or 0)


def _missed(rows: pa.Table, days: Any, missed: Any) -> JsonObject:
    """How many rows and days a lookback leaves wrong."""
    import pyarrow.compute as pc

    return {
        "rows": _sum(rows["rows"].filter(missed)),
        "event_days": pc.count_distinct(days.filter(missed)).as_py(),
    }


def _ages(rows: pa.Table) -> list[JsonObject]:
    import pyarrow.compute as pc

    found, below = [], 0
    for label, end in AGES:
        upto = _sum(rows["rows"] if end is None else rows["rows"].filter(pc.less(rows["age"], end)))
        found.append({"age": label, "rows": upto - below})
        below = upto
    return found


def _worst(rows: pa.Table, days: Any, late: Any) -> list[list[int]]:
    """The event days with most late rows: `[day, rows]`."""
    import pyarrow as pa

    found = pa.table({"day": days, "rows": rows["rows"]}).filter(late)
    grouped = found.group_by("day").aggregate([("rows", "sum")])
    listed = grouped.sort_by([("rows_sum", "descending"), ("day", "descending")]).slice(0, 10)
    return [[one["day"] * DAY // SECOND, one["rows_sum"]] for one in listed.to_pylist()]


def _heat(rows: pa.Table) -> JsonObject:
    """Rows by event time and received time, in units that the picture has room for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    event = rows["event"].cast(pa.int64())
    first = pc.quantile(event, q=_TAIL, interpolation="lower")[0].as_py()
    shown = rows.filter(pc.greater_equal(event, first))
    last = max(pc.max(shown[name]).cast(pa.int64()).as_py() for name in ("event", "received"))
    unit = next((name for name, size in UNITS if (last - first) // size < BINS), "year")
    binned = pa.table(
        {
            name: pc.floor_temporal(shown[name], unit=unit).cast(pa.int64())
            for name in ("event", "received")
        }
        | {"rows": shown["rows"]}
    )
    grouped = binned.group_by(["event", "received"]).aggregate([("rows", "sum")])
    cells = sorted(
        (one["event"] // SECOND, one["received"] // SECOND, one["rows_sum"])
        for one in grouped.to_pylist()
    )
    return {
        "unit": unit,
        "cells": [list(one) for one in cells],
        "left_out": _sum(rows["rows"]) - _sum(shown["rows"]),
        "since": datetime_of(first).date().isoformat(),
    }


def _arrivals(ledger: SqlLedger, node: Node) -> list[JsonObject]:
    """What each of the newest runs brought, by which files, and for which times."""
    every = ledger.versions(node.name)
    versions, before = every[-ARRIVALS:][::-1], rows_before(every)
    if not versions:
        return []
    steps = steps_by_id(ledger.database, (one.step for one in versions))
    changes = ledger.changes_by_version(node.name, versions[-1].number - 1)
    files, found = ledger.files(node.name), []
    for one in versions:
        step, made = steps.get(one.step), changes.get(one.number, ())
        added = [change for change in made if change.added]
        late = [change for change in added if change.rows_before]
        came = files_of_step(files, step)
        found.append(
            version_shape(one, before[one.number], step, made)
            | {
                "late": None if one.whole else sum(change.added for change in late),
                "late_cells": None if one.whole else len(late),
                "oldest": seconds_of(min(added, key=lambda c: c.cell).cell.start)
                if added
                else None,
                "files": [file.path for file in came[:8]],
                "more_files": len(came[8:]),
            }
        )
    return found
