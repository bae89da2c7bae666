"""SIGKILL of processes between batches, while two models are built at the same time.

Two readers poll, the program's own and another program; each must only ever
see whole batches, and the ledger must claim nothing that is not there. Batches
of one model may be computed at the same time as well, and end in any order.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from tests.arrivals.shape import Rows
from tests.crash.batched import BATCHES, DAYS, Batched, Look, new_batched, progress
from tests.crash.scenario import Reader, kill, kill_after

from infold import api

pytestmark = pytest.mark.spark

Points = tuple[int, int]
"""A run is killed at a random moment when it has passed so many points, from and to."""

FIRST: Points = (20, 42)
"""Of a first load: after its events, before its last batch."""

AGAIN: Points = (9, 20)
"""Of a run that has two batches left to build, or more."""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Batched:
    """A project before its first run."""
    return new_batched(tmp_path_factory.mktemp("batches"), "batches")


def die_and_converge(
    scenario: Batched, points: int, log: Path, *, at: str | None = None
) -> dict[str, list[set[int]]]:
    """Die at a point's name if one is given, then at a random moment, then live: what was seen."""
    nothing: Mapping[str, Rows] = {name: [] for name in scenario.shape.tables}
    before, after = dict(scenario.state) or nothing, scenario.foreseen()
    with Reader(scenario.look) as own, Reader(scenario.look_elsewhere) as foreign:
        if at is not None:
            ended = kill(scenario, at)
            assert ended.returncode == -signal.SIGKILL, ended.stderr
        ended = kill_after(scenario, points, log)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        left = progress([scenario.look(), scenario.look_elsewhere()], before, after)
        scenario.settle()
    seen = left
    readers: tuple[Reader[Look], ...] = (own, foreign)
    for reader in readers:
        looks = reader.end()
        assert reader.looks > 3
        for name, numbers in progress(looks, before, after).items():
            seen[name] += numbers
    return seen


def test_sigkill_between_batches_leaves_whole_batches(scenario: Batched, tmp_path: Path) -> None:
    """After SIGKILL between batches, of a first load or of an
    arrival that changes every cell, a rerun equals a rebuild.
    """
    random = Random(11)
    last = {name: -(-DAYS // size) for name, size in BATCHES.items()}
    for delivery, at, points in ((1, None, FIRST), (2, "table hours: after commit", AGAIN)):
        scenario.deliver(delivery)
        log = tmp_path / f"points{delivery}"
        seen = die_and_converge(scenario, random.randint(*points), log, at=at)
        for name, batches in last.items():
            assert any(0 < len(built) < batches for built in seen[name]), f"never amid {name}"
    assert api.verify(scenario.project).equal
