"""Invoice lines of a shop, a file a day: cancellations, no customer, repeated lines."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.arrivals.play import Play
from tests.arrivals.programs import Op
from tests.arrivals.shape import (
    Rows,
    Shape,
    SourceSpec,
    TableSpec,
    by_cells,
    calls,
    day_of,
    model_file,
    sessions_table,
)
from tests.reference import aggregates as agg
from tests.reference.aggregates import Aggregate
from tests.reference.tables import events, grouped
from tests.reference.world import Row, Rules

from infold.core import interval
from infold.core.interval import DAY, HOUR, Granularity

DATA = Path(__file__).parents[1] / "data" / "online_retail"
"""The part of the data that is shipped with the tests."""

COLUMNS = {
    "InvoiceNo": "string", "StockCode": "string", "Description": "string", "Quantity": "int",
    "InvoiceDate": "timestamp", "UnitPrice": "decimal(10,3)", "CustomerID": "string",
    "Country": "string",
}  # fmt: skip


def _value(row: Row) -> Any:
    return Decimal(row["Quantity"]) * row["UnitPrice"]


def _worth(sql: str) -> Aggregate:
    return Aggregate(sql, lambda rows: sum(map(_value, rows)) if rows else None)


_VISITS = {
    "lines": agg.count(), "items": agg.total("Quantity"),
    "returned": agg.total("Quantity").where("Quantity < 0", lambda row: row["Quantity"] < 0),
    "value": _worth("sum(Quantity * UnitPrice)"), "mean_price": agg.mean("UnitPrice", scale=3),
    "first_item": agg.first("Description"), "last_item": agg.last_known("Description"),
}  # fmt: skip
_DAILY = {
    "lines": agg.count(),
    "anonymous": agg.count_if("CustomerID IS NULL", lambda row: row["CustomerID"] is None),
    "value": _worth("sum(Quantity * UnitPrice)"),
}


RETAIL = Shape(
    "retail",
    sources=(
        SourceSpec(
            "shop.lines", "lines", "csv", Rules("InvoiceDate"), COLUMNS,
            "path: landing/lines/*.csv.gz\nformat: csv\nevent_time_column: InvoiceDate",
        ),
    ),
    tables={
        "lines": (
            TableSpec(
                "lines",
                model_file(
                    "materialization: events\n"
                    "unique_key: [InvoiceNo, StockCode]\n"
                    "prefer: [Quantity desc, UnitPrice]\n"
                    "timeseries: {event_time_column: InvoiceDate, granularity: day}",
                    f"SELECT {', '.join(COLUMNS)} FROM shop.lines",
                ),
                reads=(), source="shop.lines",
                best=lambda rows: events(
                    rows,
                    key=["InvoiceNo", "StockCode"],
                    time="InvoiceDate",
                    prefer=["Quantity desc", "UnitPrice"],
                ),
                granularity=Granularity.DAY,
            ),
        ),
        "visits": (
            sessions_table(
                "visits", "lines", "user: CustomerID, gap: 1 hours", _VISITS, HOUR,
                user="CustomerID", time="InvoiceDate", key=("InvoiceNo", "StockCode"),
                whose=lambda row: row["CustomerID"],
            ),
        ),
        "daily": (
            by_cells(
                "daily",
                f"SELECT cast(InvoiceDate AS date) AS day, {calls(_DAILY)}\nFROM lines GROUP BY 1",
                ("lines",),
                lambda given: grouped(
                    given["lines"], {"day": lambda row: day_of(row["InvoiceDate"])}, _DAILY
                ),
                time="InvoiceDate",
            ),
        ),
    },
)  # fmt: skip


def records(path: Path) -> Rows:
    """The rows of one of the files, typed."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [
            {
                **{name: value or None for name, value in row.items()},
                "Quantity": int(row["Quantity"]),
                "UnitPrice": Decimal(row["UnitPrice"]),
                "InvoiceDate": interval.parse_instant_text(row["InvoiceDate"]),
            }
            for row in csv.DictReader(file)
        ]


def trade(folder: Path, name: str, data: Sequence[Path], together: int = 1, every: int = 1) -> Play:
    """
    Deliver so many files at once and run; then a day twice, a day corrected, a day withdrawn.

    Tables are compared after every so many runs, and after all at the end.
    """
    play = Play(RETAIL, folder / name, name, folder / "warehouse", users=0)

    def deliver(source: Path, as_name: str) -> None:
        path, rows = f"lines/{as_name}", records(source)
        play.changed()
        play.world.files[path] = tuple(rows)
        play.world.as_of = max(play.world.as_of, *(row["InvoiceDate"] + DAY for row in rows))
        (play.folder / "landing" / path).write_bytes(source.read_bytes())

    batches = [data[at : at + together] for at in range(0, len(data), together)]
    for at in range(1, len(batches) - 1, 3):  # two of three come in the wrong order
        batches[at], batches[at + 1] = batches[at + 1], batches[at]
    for number, batch in enumerate(batches, start=1):
        for source in batch:
            deliver(source, source.name)
        play.checking = number % every == 0
        play.run(Op("all", 0))
    play.checking = True
    deliver(data[0], "again.csv.gz")
    deliver(data[1], data[2].name)
    play.run(Op("all", 0))
    play.changed()
    del play.world.files[f"lines/{data[0].name}"]
    (play.folder / "landing" / "lines" / data[0].name).unlink()
    play.run(Op("all", 0))
    play.check_again()
    return play
