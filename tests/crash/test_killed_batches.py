"""SIGKILL of processes between batches, while two models are built at the same time.

Two readers poll, the program's own and another program; each must only ever
see whole batches, and the ledger must claim nothing that is not there. Batches
of one model may be computed at the same time as well, and end in any order.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.arrivals.shape import Rows
from tests.crash.batched import BATCHES, DAYS, Batched, Look, new_batched, progress
from tests.crash.scenario import Reader, kill, kill_after

pytestmark = pytest.mark.spark

Ended = subprocess.CompletedProcess[str]

FIRST = 31
"""A first load is killed when it has passed so many points: after its events, amid its batches."""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Batched:
    """A project before its first run."""
    return new_batched(tmp_path_factory.mktemp("batches"), "batches")


def die_and_converge(scenario: Batched, die: Callable[[], Ended]) -> dict[str, list[set[int]]]:
    """Die, then live: what was seen."""
    nothing: Mapping[str, Rows] = {name: [] for name in scenario.shape.tables}
    before, after = dict(scenario.state) or nothing, scenario.foreseen()
    with Reader(scenario.look) as own, Reader(scenario.look_elsewhere) as foreign:
        ended = die()
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        seen = progress([scenario.look(), scenario.look_elsewhere()], before, after)
        scenario.settle()
    readers: tuple[Reader[Look], ...] = (own, foreign)
    for reader in readers:
        looks = reader.end()
        assert reader.looks > 3
        for name, numbers in progress(looks, before, after).items():
            seen[name] += numbers
    return seen


def test_sigkill_between_batches_leaves_whole_batches(scenario: Batched, tmp_path: Path) -> None:
    """After SIGKILL between batches, of a first load at any moment and of an
    arrival that changes every cell, a rerun equals a rebuild.
    """
    last = {name: -(-DAYS // size) for name, size in BATCHES.items()}
    deaths: tuple[Callable[[], Ended], ...] = (
        lambda: kill_after(scenario, FIRST, tmp_path / "points"),
        lambda: kill(scenario, "table hours: after commit"),
    )
    for delivery, die in enumerate(deaths, 1):
        scenario.deliver(delivery)
        seen = die_and_converge(scenario, die)
        for name, batches in last.items():
            assert any(0 < len(built) < batches for built in seen[name]), f"never amid {name}"
