"""
Oracle 3: a run that dies at any of its write points leaves whole steps, and the next one converges.

Every numbered point of a run is tried, over tables in memory (see ``arrivals.dry``), in the test's
own process (see ``scenario`` for what that shows and what not). Those of Spark's commits are tried
in ``test_killed``, two of them by SIGKILL; a soak does that at all points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.arrivals.programs import START
from tests.arrivals.shape import Rows, Shape, TableSpec, by_cells, day_of
from tests.arrivals.shapes import FOLD
from tests.crash.scenario import (
    EVERYWHERE,
    TABLES,
    DryScenario,
    living,
    new_dry_scenario,
    whole_steps,
)
from tests.reference import aggregates as agg
from tests.reference.compare import difference
from tests.reference.tables import grouped
from tests.reference.world import Record, Row

from infold.core.interval import DAY, HOUR, datetime_of

pytestmark = pytest.mark.deep

MOST = 120
"""More write points than a run of three models may need; a run that never ends is a mistake."""

SHARES = 4
"""Deliveries that share the points among them."""


def check_claims(
    scenario: DryScenario, before: Mapping[str, Rows], after: Mapping[str, Rows]
) -> None:
    """Each table is as before or as after, and the ledger claims nothing that is not there."""
    ledger, read = scenario.ledger, scenario.read()
    found = whole_steps(read, before, after)
    assert not found, found
    for name, rows in read.items():
        claimed = sum(cell.rows for cell in ledger.cells(name))
        assert claimed in (len(rows), len(before[name])), name
    ledger.close()


def die_until_met(
    scenario: DryScenario,
    met: list[tuple[str, str]],
    before: Mapping[str, Rows],
    after: Mapping[str, Rows],
) -> None:
    """Die at one write point after the other, ``met`` growing; then live, and be right."""
    for _ in range(MOST):
        with living(met=met) as life:
            scenario.go(life)
        check_claims(scenario, before, after)
        if not life.dead:
            break
        met.append(life.passed[-1])
    scenario.settle()


def test_a_first_load_that_dies_anywhere(tmp_path: Path) -> None:
    """A first load that dies at each write point in turn shows no partial table and ends correct.

    Each run dies at the first point that is new, so that every run meets
    what deaths at one point, and at all earlier points, have left.
    """
    scenario = new_dry_scenario(tmp_path, "first")
    scenario.jobs = 1  # a point is known by the one model that is being built
    nothing: Mapping[str, Rows] = {name: [] for name in TABLES}
    after = scenario.foreseen()
    met: list[tuple[str, str]] = []
    die_until_met(scenario, met, nothing, after)
    for name in TABLES:
        assert (name, "ledger begin_step: after commit") in met
        assert (name, f"table {name}: before commit") in met
        assert (name, f"table {name}: after commit") in met
        assert (name, "ledger finish_step: before commit") in met


class Share(list[tuple[str, str]]):
    """The points met in one delivery; those that are another delivery's share count as met."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __contains__(self, point: object) -> bool:
        other = crc32(repr(point).encode()) % SHARES != self.number
        return other or super().__contains__(point)


def test_an_arrival_that_dies_anywhere(tmp_path: Path) -> None:
    """An arrival whose runs die at each write point in turn
    changes every table at once and only once.

    Each delivery has its share of all points, so that runs progress
    between deaths. After each death every table is as before or as after.
    Copies are looked for everywhere, so events move between cells as well.
    """
    scenario = new_dry_scenario(tmp_path, "arrival", shape=EVERYWHERE)
    scenario.jobs = 1  # a point is known by the one model that is being built
    scenario.settle()
    met: set[tuple[str, str]] = set()
    for number in range(SHARES):
        before = dict(scenario.state)
        scenario.deliver(400 + number)
        after = scenario.foreseen()
        mine = Share(number)
        die_until_met(scenario, mine, before, after)
        met.update(mine)
    for name in TABLES:
        assert (name, f"table {name}: before commit") in met
        assert (name, f"table {name}: after commit") in met
        if name == "users":
            continue  # which deliveries build them, fold them or leave them is for sessions to say
        for write in ("begin_step", "prepare_step", "finish_step"):
            assert (name, f"ledger {write}: before commit") in met
            assert (name, f"ledger {write}: after commit") in met


def test_models_side_by_side_die_together(tmp_path: Path) -> None:
    """When a run dies in one of two models that are built at once, both are whole steps or none."""
    scenario = new_dry_scenario(tmp_path, "beside", shape=EVERYWHERE)
    scenario.settle()
    for number, at in enumerate((9, 18, 24)):
        before = dict(scenario.state)
        scenario.deliver(300 + number)
        after = scenario.foreseen()
        with living(at) as life:
            scenario.go(life)
        assert life.dead
        assert not whole_steps(scenario.read(), before, after)
        scenario.settle()


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
