"""Write points of the ledger can be counted, and a kill at any of them leaves no partial write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ledger.conftest import OPEN, Place

pytestmark = pytest.mark.deep

STEP = (
    OPEN
    + """
from infold.core.interval import DAY, Interval
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace

ledger.acquire("r1")
ledger.begin_run("r1", "run", 0, {})
ledger.begin_step("r1", "s1", 1, "m", "build", {})
what = Outcome("m", 1, Trace("m", "f"), (CellChange(Interval(0, DAY), 1, 0, 0, 1, 0, 7),))
ledger.prepare_step("s1", what)
ledger.finish_step("s1", what)
ledger.finish_run("r1", "done", Receipt())
ledger.release()
"""
)

WRITES = [
    "create",
    "acquire",
    "begin_run",
    "begin_step",
    "prepare_step",
    "finish_step",
    "finish_run",
    "release",
]


def run(place: Place, **environment: str) -> int:
    """The return code of a process that does one step."""
    command = [sys.executable, "-c", STEP, *place.words]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def test_every_write_is_a_point_before_and_after(tmp_path: Path, place: Place) -> None:
    """Every write has a point before and after it, in the order in which the writes happen."""
    log = tmp_path / "points"

    assert run(place, INFOLD_CRASH_LOG=str(log)) == 0

    assert log.read_text().splitlines() == [
        f"ledger {write}: {when} commit" for write in WRITES for when in ("before", "after")
    ]


@pytest.mark.parametrize("write", WRITES[3:7])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_leaves_all_of_a_write_or_nothing(place: Place, write: str, after: bool) -> None:
    """A kill leaves all of a write or nothing of it, and the next run can take over."""
    done = WRITES.index(write) + after
    at = 2 * WRITES.index(write) + 1 + after

    assert run(place, INFOLD_CRASH_AT=str(at)) == -signal.SIGKILL

    ledger = place.open()
    ledger.acquire("r2")
    (r1,) = ledger.runs()
    states = {3: [], 4: ["intent"], 5: ["prepared"], 6: ["done"], 7: ["done"]}
    assert [step.state for step in r1.steps] == states[done]
    assert r1.state == ("done" if done == 7 else "died")
    assert ("m" in ledger.newest_versions()) == ("m" in ledger.traces()) == (done >= 6)
    assert len(ledger.cells("m")) == (done >= 6)
    ledger.close()


REMOVE = OPEN + "ledger.acquire('r1'); ledger.begin_run('r1', 'run', 0, {}); ledger.destroy()"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_leaves_all_of_a_ledger_or_nothing(place: Place, when: str) -> None:
    """A kill while a ledger is removed leaves it whole, or none."""
    done = subprocess.run(
        [sys.executable, "-c", REMOVE, *place.words],
        env={**os.environ, "INFOLD_CRASH_AT": f"ledger remove: {when}"},
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
    ledger = place.open()
    assert [run.id for run in ledger.runs()] == (["r1"] if when == "before" else [])
    ledger.acquire("r2")
    ledger.close()
