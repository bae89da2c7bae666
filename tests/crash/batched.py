"""
A project for crashes between batches: events, and two models of them that are built side by side.

Every delivery brings rows for each of the same days and takes some away, so what a batch leaves is
known exactly, and each cell has another number of rows than before: not only the tables but also
what the ledger claims of them differ cell by cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.arrivals.programs import START
from tests.arrivals.shape import Rows, Shape, TableSpec, day_of, model_file
from tests.arrivals.shapes import FOLD
from tests.crash.scenario import Scenario
from tests.reference import aggregates as agg
from tests.reference.compare import difference, stored
from tests.reference.tables import grouped
from tests.reference.world import Record, Row

from infold import api
from infold.core.interval import DAY, HOUR, datetime_of
from infold.core.model import table_name

DAYS = 6
BATCHES: Mapping[str, int] = {"people": 3, "hours": 2}
"""The models in batches, and of how many days; both are built from ``clicks``, at the same time."""

_SUMS = {"events": agg.count(), "amount": agg.total("amount")}


def _batched(name: str, key: str, sql: str, value: Callable[[Row], Any]) -> TableSpec:
    sums = ", ".join(f"{each.sql} AS {column}" for column, each in _SUMS.items())
    return TableSpec(
        name,
        model_file(
            "materialization: table\n"
            "timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}\n"
            f"incremental: {{batch_size: {BATCHES[name]}}}",
            f"SELECT cast(event_ts AS date) AS day, {sql} AS {key}, {sums}\n"
            "FROM clicks GROUP BY 1, 2",
        ),
        reads=("clicks",),
        rows=lambda given: grouped(
            given["clicks"],
            {"day": lambda row: day_of(row["event_ts"]), key: value},
            _SUMS,
            cell="day",
        ),
        cell="day",
        granularity=FOLD.tables["clicks"][0].granularity,
    )


SHAPE = Shape(
    "batched",
    sources=(FOLD.source("raw.clicks"),),
    tables={
        "clicks": FOLD.tables["clicks"],
        "people": (_batched("people", "user_id", "user_id", lambda row: row["user_id"]),),
        "hours": (
            _batched(
                "hours", "hour", "hour(event_ts)", lambda row: datetime_of(row["event_ts"]).hour
            ),
        ),
    },
)


@dataclass(frozen=True)
class Look:
    """What a reader saw: first what the ledger claims, then the tables, those that read first."""

    claimed: Mapping[str, Mapping[date, int]]
    """Rows by day, as the ledger has them."""
    tables: Mapping[str, Rows]


@dataclass
class Batched(Scenario):
    """A scenario whose every delivery changes all cells."""

    jobs: int | None = 2

    def deliver(self, seed: int) -> None:
        """One file that stays and one that the next delivery takes away, a row a day in each."""
        self.changed()
        if seed > 1:
            path = self._name(seed - 1, "b")
            del self.world.files[path]
            self._drop(path)
        for part in "ab":
            rows = [self._row(seed, part, day) for day in range(DAYS)]
            self._write(self._name(seed, part), tuple(rows))

    def _name(self, number: int, part: str) -> str:
        return f"{self._clicks.folder}/{number}{part}{self._clicks.suffix}"

    def _row(self, number: int, part: str, day: int) -> Record:
        at = START + day * DAY + number * HOUR + (12 * HOUR if part == "b" else 0)
        return {
            "event_id": f"{number}{part}{day}",
            "user_id": f"{part}{number}",
            "event_ts": at,
            "received_ts": at,
            "url": "/",
            "amount": Decimal(100 * number + day).scaleb(-2),
            "weight": None,
            "n": number,
            "ok": True,
            "revision": 1,
        }

    def look(self) -> Look:
        """As the program reads, without a JVM."""
        return Look(self._claims(), self._tables(self._own))

    def look_elsewhere(self) -> Look:
        """As others read: the catalog by pyiceberg, the rows by DuckDB."""
        return Look(self._claims(), self._tables(self._foreign))

    def _claims(self) -> dict[str, dict[date, int]]:
        ledger = api.ledger(self.project)
        try:
            return {
                name: {datetime_of(c.cell.start).date(): c.rows for c in ledger.cells(name)}
                for name in self.shape.tables
            }
        finally:
            ledger.close()

    def _tables(self, read: Callable[[str], Rows]) -> dict[str, Rows]:
        return {name: stored(read(name)) for name in reversed(list(self.shape.tables))}

    def _own(self, name: str) -> Rows:
        lake = api.lake(self.project)
        there = lake.metadata(table_name(name)) is not None
        rows: Rows = lake.rows(table_name(name)).to_pylist() if there else []
        return rows

    def _foreign(self, name: str) -> Rows:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NoSuchTableError

        project = self.project
        if not project.catalog_db.exists():
            return []
        uri = f"sqlite:///{project.catalog_db}"
        catalog = SqlCatalog("infold", uri=uri, warehouse=str(project.warehouse))
        try:
            table = catalog.load_table((project.name, table_name(name)))
        except NoSuchTableError:
            return []
        finally:
            catalog.close()
        columns = ", ".join(c.name for c in table.schema().columns if not c.name.startswith("_"))
        with table.scan().to_duckdb("found") as connection:
            found: pa.Table = connection.sql(f"SELECT {columns} FROM found").to_arrow_table()
        rows: Rows = found.to_pylist()
        return rows


def new_batched(folder: Path, name: str) -> Batched:
    """A project with nothing delivered and nothing run."""
    found = Batched(SHAPE, folder / name, name, folder / "warehouse", users=0)
    found.world.as_of = START + 2 * DAYS * DAY
    return found


def progress(
    looks: Sequence[Look], before: Mapping[str, Rows], after: Mapping[str, Rows]
) -> dict[str, list[set[int]]]:
    """
    Which batches of each table each look saw; an AssertionError where it saw anything else.

    Each batch of a table is wholly as before or wholly as after. The ledger, asked before the
    table, claims no batch that the table does not hold. What is built from ``clicks`` shows
    nothing that ``clicks``, asked afterwards, does not have. And nothing that was seen goes again.
    """
    seen: dict[str, list[set[int]]] = {name: [] for name in before}
    for look in looks:
        for name, rows in look.tables.items():
            built, claimed = set(), set()
            for number, days in enumerate(_batches(name, after[name])):
                old, new = _of(before[name], days), _of(after[name], days)
                if difference(old, _of(rows, days)):
                    wrong = difference(new, _of(rows, days))
                    assert not wrong, f"{name}, batch {number}: neither before nor after; {wrong}"
                    built.add(number)
                claim = {day: look.claimed[name][day] for day in days if day in look.claimed[name]}
                if claim != Counter(map(_day, old)):
                    assert claim == Counter(map(_day, new)), f"{name}: the ledger claims {claim}"
                    claimed.add(number)
            assert len(rows) == sum(len(_of(rows, days)) for days in _batches(name, after[name]))
            assert claimed <= built, f"the ledger claims batches {claimed} of {name}, not {built}"
            assert not seen[name] or seen[name][-1] <= built, f"batches of {name} were gone again"
            seen[name].append(built)
        for name in BATCHES:
            assert not seen[name][-1] or seen["clicks"][-1], f"{name} is ahead of clicks"
    return seen


def _batches(name: str, rows: Rows) -> list[list[date]]:
    """The days of each batch of a table; what has no batches comes all at once."""
    days = sorted(set(map(_day, rows)))
    size = BATCHES.get(name, len(days))
    return [days[at : at + size] for at in range(0, len(days), size)]


def _of(rows: Rows, days: Sequence[date]) -> Rows:
    return [row for row in rows if _day(row) in days]


def _day(row: Row) -> date:
    found: date = row["day"] if "day" in row else datetime_of(row["event_ts"]).date()
    return found
