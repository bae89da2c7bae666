"""
Runs that die between batches, while two models are built at the same time.

Whoever looks then must only ever see whole batches, and the ledger must claim nothing that is not
there. Batches of one model may be computed at the same time as well, and end in any order. Every
delivery brings rows for each of the same days and takes some away, so what a batch leaves is known
exactly, and each cell has another number of rows than before: not only the tables but also what
the ledger claims of them differ cell by cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.arrivals.programs import START
from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, day_of
from tests.arrivals.shapes import FOLD
from tests.crash.scenario import DryScenario, living
from tests.reference import aggregates as agg
from tests.reference.compare import difference
from tests.reference.tables import grouped
from tests.reference.world import Record, Row

from infold.core.interval import DAY, HOUR, datetime_of

pytestmark = pytest.mark.deep

DAYS = 6
BATCHES: Mapping[str, int] = {"people": 3, "hours": 2}
"""The models in batches, and of how many days; both are built from ``clicks``, at the same time."""

_SUMS = {"events": agg.count(), "amount": agg.total("amount")}


def _batched(name: str, key: str, sql: str, value: Callable[[Row], Any]) -> TableSpec:
    sums = ", ".join(f"{each.sql} AS {column}" for column, each in _SUMS.items())
    return by_cells(
        name,
        f"SELECT cast(event_ts AS date) AS day, {sql} AS {key}, {sums}\nFROM clicks GROUP BY 1, 2",
        ("clicks",),
        lambda given: grouped(
            given["clicks"],
            {"day": lambda row: day_of(row["event_ts"]), key: value},
            _SUMS,
            cell="day",
        ),
        keys=f"batch_size: {BATCHES[name]}",
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
    """What the ledger claims, and the tables."""

    claimed: Mapping[str, Mapping[date, int]]
    """Rows by day, as the ledger has them."""
    tables: Mapping[str, Rows]


@dataclass
class Batched(DryScenario):
    """A scenario whose every delivery changes all cells."""

    jobs: int | None = 2
    models_at_once: int = 2

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
        """What there is."""
        ledger = self.ledger
        claimed = {
            name: {datetime_of(c.cell.start).date(): c.rows for c in ledger.cells(name)}
            for name in self.shape.tables
        }
        ledger.close()
        return Look(claimed, self.read())


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


@pytest.mark.parametrize("jobs", [1, 3])
def test_deaths_between_batches_leave_whole_batches(tmp_path: Path, jobs: int) -> None:
    """Of a first load and an arrival that changes every cell, at ever later points."""
    scenario = Batched(SHAPE, tmp_path, "batches", tmp_path, users=0, jobs=jobs)
    scenario.world.as_of = START + 2 * DAYS * DAY
    last = {name: -(-DAYS // size) for name, size in BATCHES.items()}
    for delivery in (1, 2):
        scenario.deliver(delivery)
        nothing: Mapping[str, Rows] = {name: [] for name in SHAPE.tables}
        before, after = dict(scenario.state) or nothing, scenario.foreseen()
        looks, dead = list[Look](), True
        while dead:
            with living(1 + len(looks) // 2) as life:
                scenario.go(life)
            dead = life.dead
            looks.append(scenario.look())
        scenario.settle()
        for name, seen in progress(looks, before, after).items():
            if name in last:
                assert any(0 < len(built) < last[name] for built in seen), f"never amid {name}"
