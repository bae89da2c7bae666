"""Real data replayed: late rows as late as they were, and a shop's lines as they were typed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.replay.history import deliveries, received_days, replay
from tests.replay.retail import DATA, trade

pytestmark = pytest.mark.deep

RUNS = 5
"""Runs of the suite's replay. A soak replays in :data:`tests.soak.REPLAY_RUNS` runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the projects of this module; they share a warehouse and a Spark session."""
    return tmp_path_factory.mktemp("replay")


def test_the_history_is_complete_however_it_is_cut() -> None:
    """Every row is delivered exactly once, whatever the number of deliveries."""
    days = received_days()
    assert len(days) == 1_946
    assert sum(map(len, days)) == 76_743
    assert sum(map(len, deliveries(220))) == 76_743


@pytest.mark.spark
def test_a_real_history_by_received_day(folder: Path) -> None:
    """Replayed by received day, tables equal the reference,
    with at most 1.5 rows read for each new one.
    """
    checks = Random(4).sample(range(1, RUNS), k=2)
    cost = replay(folder, "history", RUNS, checks)
    print(cost)
    assert cost.arrived == 76_743
    assert cost.read / cost.arrived <= 1.5, cost


@pytest.mark.spark
def test_the_lines_of_a_shop(folder: Path) -> None:
    """Tables over a shop's lines (negative quantities, NULL
    customers, contradictions) equal the reference.
    """
    play = trade(folder, "retail", sorted(DATA.glob("*.csv.gz")), together=2)
    assert any(row["returned"] for row in play.state["visits"])
    assert any(row["anonymous"] for row in play.state["daily"])
