"""Real data replayed: late rows as late as they were, and a shop's lines as they were typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.history import deliveries, received_days, replay
from tests.replay.retail import DATA, trade

pytestmark = pytest.mark.deep

RUNS, DAYS = 3, slice(-600, -100)
"""Runs of the suite's replay, of some days. A soak replays all in more runs."""


def test_the_history_is_complete_however_it_is_cut() -> None:
    """Every row is delivered exactly once, whatever the number of deliveries."""
    days = received_days()
    assert len(days) == 1_946
    assert sum(map(len, days)) == 76_743
    assert sum(map(len, deliveries(220))) == 76_743


@pytest.mark.spark
def test_a_real_history_by_received_day(tmp_path: Path) -> None:
    """By received day tables equal the reference, at 1.5 rows read for each new one."""
    cost = replay(tmp_path, "history", RUNS, [], DAYS)
    print(cost)
    assert cost.arrived == sum(map(len, deliveries(RUNS, DAYS))) > 10_000
    assert cost.read / cost.arrived <= 1.5, cost


@pytest.mark.spark
def test_the_lines_of_a_shop(tmp_path: Path) -> None:
    """Negative quantities, NULL customers and contradictions equal the reference."""
    play = trade(tmp_path, "retail", sorted(DATA.glob("*.csv.gz")), together=8)
    assert any(row["returned"] for row in play.state["visits"])
    assert any(row["anonymous"] for row in play.state["daily"])
