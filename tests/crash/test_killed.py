"""SIGKILL of processes at write points, while a reader polls.

A sample of the points, because each death costs the start of a JVM; a soak kills at all of them
and at random moments between them. Also two runs at once, with dead and living lease owners.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.crash.scenario import TABLES, Reader, Scenario, kill, new_scenario, whole_steps

from infold import api
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

SAMPLE = (
    "table clicks: after commit",
    "table sessions: before commit",
)
"""Where the danger is: a commit that its own ledger has not recorded yet."""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A project that was run once and is right."""
    found = new_scenario(tmp_path_factory.mktemp("killed"), "killed")
    found.settle()
    return found


@pytest.mark.parametrize("name", SAMPLE)
def test_sigkill_leaves_whole_steps(scenario: Scenario, name: str, tmp_path: Path) -> None:
    """After SIGKILL at a table's commit readers see whole steps, and the next run equals a
    rebuild.
    """
    before = dict(scenario.state)
    scenario.deliver(200 + SAMPLE.index(name))
    after = scenario.foreseen()
    log = tmp_path / "points"
    with Reader(scenario.read) as reader:
        ended = kill(scenario, name, log)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert log.read_text(encoding="utf-8").splitlines()[-1] == name
        scenario.go()
    seen = reader.end()
    assert reader.looks > 3
    for found in seen:
        assert not whole_steps(found, before, after)
    scenario.check(set(TABLES), None)


_HOLD = """
import sys, time
from pathlib import Path
from infold import api
book = api.ledger(api.open_project(Path(sys.argv[1])))
book.acquire("the-other-run")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
book.release()
"""


def holder(scenario: Scenario, seconds: float) -> subprocess.Popen[str]:
    """A process that holds the project's lease for so long."""
    found = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(scenario.folder), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert found.stdout is not None
    assert found.stdout.readline() == "held\n"
    return found


class TestTwoRunsAtOnce:
    """With two runs of one project, the second is refused by name or waits; dead runs block
    nobody.
    """

    def test_the_second_is_refused_by_name(self, scenario: Scenario) -> None:
        """A run while another has the lease ends with exit code 3 and names the owner."""
        other = holder(scenario, 60)
        try:
            command = [sys.executable, "-m", "infold", "-C", str(scenario.folder), "run"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
        finally:
            other.kill()
            other.wait()
        assert ended.returncode == 3, ended.stderr
        assert "locked: run the-other-run is working on this target" in ended.stderr
        assert str(other.pid) in ended.stderr

    def test_the_second_may_wait(self, scenario: Scenario) -> None:
        """With `--wait` a run starts when the other has ended."""
        scenario.deliver(301)
        other = holder(scenario, 1.5)
        started = time.monotonic()
        result = api.run(scenario.project, as_of=scenario.world.as_of, wait=60, allow_removals=True)
        assert time.monotonic() - started > 0.5
        assert result.steps
        assert other.wait() == 0
        scenario.check(set(TABLES), None)

    def test_waiting_has_an_end(self, scenario: Scenario) -> None:
        """A run that waited in vain is refused as well."""
        other = holder(scenario, 60)
        try:
            with pytest.raises(InfoldError) as refused:
                api.run(scenario.project, as_of=scenario.world.as_of, wait=0.5)
        finally:
            other.kill()
            other.wait()
        assert (refused.value.slug, refused.value.exit_code) == ("locked", 3)

    def test_a_dead_holder_is_taken_over(self, scenario: Scenario) -> None:
        """The lease of a killed process is taken over at once."""
        scenario.deliver(302)
        other = holder(scenario, 600)
        other.kill()
        other.wait()
        started = time.monotonic()
        scenario.go()
        assert time.monotonic() - started < 60
        scenario.check(set(TABLES), None)
