"""
Oracle 3: a run that dies at any of its write points leaves whole steps, and the next one converges.

Every numbered point of a run is tried, over tables in memory (see ``arrivals.dry``), in the test's
own process (see ``scenario`` for what that shows and what not). Those of Spark's commits are tried
in ``test_killed``, two of them by SIGKILL; a soak does that at all points.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import pytest
from tests.arrivals.shape import Rows
from tests.crash.scenario import (
    EVERYWHERE,
    TABLES,
    DryScenario,
    living,
    new_dry_scenario,
    whole_steps,
)

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
