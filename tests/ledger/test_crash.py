"""Write points of the ledger can be counted, and a kill at any of them leaves no partial write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infold.ledger.store import SqlLedger

pytestmark = pytest.mark.deep

STEP = """
import sys
from pathlib import Path
from infold.core.interval import DAY, Interval
from infold.ledger.store import SqlLedger
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace

ledger = SqlLedger(Path(sys.argv[1]))
ledger.acquire("r1")
ledger.begin_run("r1", "run", 0, {})
ledger.begin_step("r1", "s1", 1, "m", "build", {})
what = Outcome("m", 1, Trace("m", "f"), (CellChange(Interval(0, DAY), 1, 0, 0, 1, 0, 7),))
ledger.prepare_step("s1", what)
ledger.finish_step("s1", what)
ledger.finish_run("r1", "done", Receipt())
ledger.release()
"""

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


def run(path: Path, **environment: str) -> int:
    """The return code of a process that does one step."""
    command = [sys.executable, "-c", STEP, str(path)]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def test_every_write_is_a_point_before_and_after(tmp_path: Path) -> None:
    """Every write has a point before and after it, in the order in which the writes happen."""
    log = tmp_path / "points"

    assert run(tmp_path / "ledger.db", INFOLD_CRASH_LOG=str(log)) == 0

    assert log.read_text().splitlines() == [
        f"ledger {write}: {when} commit" for write in WRITES for when in ("before", "after")
    ]


@pytest.mark.parametrize("write", WRITES[3:7])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_leaves_all_of_a_write_or_nothing(tmp_path: Path, write: str, after: bool) -> None:
    """A kill leaves all of a write or nothing of it, and the next run can take over."""
    path = tmp_path / "ledger.db"
    done = WRITES.index(write) + after
    at = 2 * WRITES.index(write) + 1 + after

    assert run(path, INFOLD_CRASH_AT=str(at)) == -signal.SIGKILL

    ledger = SqlLedger(path)
    ledger.acquire("r2")
    (r1,) = ledger.runs()
    states = {3: [], 4: ["intent"], 5: ["prepared"], 6: ["done"], 7: ["done"]}
    assert [step.state for step in r1.steps] == states[done]
    assert r1.state == ("done" if done == 7 else "died")
    assert ("m" in ledger.newest_versions()) == ("m" in ledger.traces()) == (done >= 6)
    assert len(ledger.cells("m")) == (done >= 6)
    ledger.close()
