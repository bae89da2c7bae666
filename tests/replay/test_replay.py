"""Real data replayed: late rows are as late as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.history import deliveries, received_days, replay

pytestmark = pytest.mark.deep

RUNS, LAST = 4, 600
"""Runs of the suite's replay, of so many days. A soak replays all in more runs."""


def test_the_history_is_complete_however_it_is_cut() -> None:
    """Every row is delivered exactly once, whatever the number of deliveries."""
    days = received_days()
    assert len(days) == 1_946
    assert sum(map(len, days)) == 76_743
    assert sum(map(len, deliveries(220))) == 76_743


@pytest.mark.spark
def test_a_real_history_by_received_day(tmp_path: Path) -> None:
    """Replayed by received day, tables equal the reference,
    with at most 1.5 rows read for each new one.
    """
    cost = replay(tmp_path, "history", RUNS, [2], LAST)
    print(cost)
    assert cost.arrived == sum(map(len, deliveries(RUNS, LAST))) > 10_000
    assert cost.read / cost.arrived <= 1.5, cost
