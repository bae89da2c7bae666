"""Tables with a ``start`` inside a cell: weeks and months, in batches, and their readers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, day_of
from tests.arrivals.shapes import FOLD
from tests.reference.aggregates import count, total
from tests.reference.tables import grouped

from infold.core.interval import Granularity

STARTS = (date(2024, 3, 7), date(2024, 3, 5), date(2024, 3, 14))
"""A Thursday, and where the start is moved to: the same week, the next; all inside of a month."""

_SUMS = {"clicks": count(), "weight": total("weight")}


def _cells(granularity: Granularity, start: date, batch: int, *, odd: bool) -> TableSpec:
    """Days of clicks, kept in cells of weeks or months, from a start on."""
    where = " WHERE url <> '/'" if odd else ""

    def rows(given: Mapping[str, Rows]) -> Rows:
        kept = [row for row in given["clicks"] if not odd or row["url"] not in (None, "/")]
        found = grouped(kept, {"day": lambda row: day_of(row["event_ts"])}, _SUMS, cell="day")
        return [row for row in found if row["day"] >= start]

    name = f"{granularity.value}ly_{batch}"
    return by_cells(
        name,
        "SELECT cast(event_ts AS date) AS day, count(*) AS clicks, sum(weight) AS weight\n"
        f"FROM clicks{where} GROUP BY 1",
        ("clicks",),
        rows,
        granularity=granularity,
        keys=f"start: {start}, batch_size: {batch}",
    )


def _reader(read: str) -> TableSpec:
    return by_cells(
        f"daily_{read}",
        f"SELECT day, clicks, weight FROM {read}",
        (read,),
        lambda given: list(given[read]),
        time="day",
    )


def cut(granularity: Granularity, batch: int) -> Shape:
    """A table cut by its start, which moves both ways while its query changes, and its reader."""
    versions = tuple(
        _cells(granularity, start, batch, odd=odd) for start in STARTS for odd in (False, True)
    )
    name = versions[0].name
    return Shape(
        f"cut {name}",
        sources=(FOLD.source("raw.clicks"),),
        tables={
            "clicks": FOLD.tables["clicks"][:1],
            name: versions,
            f"daily_{name}": (_reader(name),),
        },
        windows=granularity is Granularity.DAY,
    )
