"""A command in a process of its own: what is heard of it, and how it is stopped."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.warm_engine.engines import await_that
from tests.orchestration.recorded import lay_out_stand_in, says
from tests.telling.test_sinks import alive

from infold.messages.errors import InfoldError
from infold.orchestration.command import InfoldProject, RunningCommand
from infold.orchestration.outcome import Outcome, Verdict

pytestmark = pytest.mark.deep

STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """What the command in infold's place does."""
    return lay_out_stand_in(tmp_path / "said")


def in_the_background(
    running: RunningCommand, project: InfoldProject, words: Sequence[str], begun: Path
) -> tuple[threading.Thread, list[Outcome]]:
    """A run in a thread, once there is a file; what will come of it."""
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(running.carry_out(project, "run", words)))
    thread.start()
    await_that(begun.exists)
    return thread, found


def project_of(said: Path) -> InfoldProject:
    """A project whose command does what a folder says."""
    return InfoldProject("/shop", "prod", [sys.executable, str(STAND_IN), str(said)])


def test_what_is_heard_of_a_run(said: Path) -> None:
    """Its command line, lines of its log, what it says on stderr, and its result."""
    says(said, "run", result={"steps": [1]}, stderr="a note", log=[{"event": "note", "text": "n"}])
    heard: list[str] = []

    outcome = RunningCommand().carry_out(
        project_of(said).with_env({"SHOP_DAY": "ten"}), "run", ["--wait=1"], heard.append
    )

    assert (outcome.exit_code, outcome.result, outcome.messages) == (0, {"steps": [1]}, "a note")
    assert sorted(heard[1:]) == ["a note", "n"]
    assert "run --wait=1 --json --log=" in heard[0]
    (call,) = map(json.loads, (said / "calls").read_text().splitlines())
    assert call["env"] == {"SHOP_DAY": "ten"}


def test_commands_without_a_log(said: Path) -> None:
    """Only commands that build have the option."""
    RunningCommand().carry_out(project_of(said), "plan")

    (call,) = map(json.loads, (said / "calls").read_text().splitlines())
    assert call["words"] == ["--project=/shop", "--target=prod", "plan", "--json"]


def test_a_command_that_is_stopped(said: Path) -> None:
    """It gets a SIGTERM, and its end is waited for."""
    running, project = RunningCommand(), project_of(said)
    thread, found = in_the_background(running, project, ["--select=slow"], said / "sleeping")

    running.stop()

    assert (said / "stopped").read_text() == "slow\n"
    thread.join(10)
    assert (found[0].exit_code, found[0].verdict) == (143, Verdict.TRY_AGAIN)
    running.stop()  # of what has ended nothing is stopped


def test_a_command_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """With all that it started, once its time is over."""
    script, child = tmp_path / "deaf.sh", tmp_path / "child"
    started = f"echo $! > {child}.new\nmv {child}.new {child}"
    script.write_text(f"trap '' TERM\nsleep 60 &\n{started}\nwait\nwait\n")
    running = RunningCommand(stop_seconds=0.3)
    project = InfoldProject("/shop", infold_command=["bash", str(script)])
    thread, found = in_the_background(running, project, [], child)

    running.stop()

    thread.join(10)
    assert found[0].exit_code == -9
    await_that(lambda: not alive(int(child.read_text())))


def test_a_command_that_is_not_there() -> None:
    """The error names it, and what to give."""
    with pytest.raises(InfoldError) as found:
        InfoldProject("/shop", infold_command="/nowhere/infold").graph()

    assert found.value.slug == "infold-not-started"
    assert "/nowhere/infold" in found.value.what


def test_a_project_with_mistakes_has_no_graph(said: Path) -> None:
    """Its mistakes are in the error."""
    says(said, "dag", code=2, result={"error": {"slug": "unknown-key", "what": "sorces"}})

    with pytest.raises(InfoldError) as found:
        project_of(said).graph()

    assert found.value.slug == "no-graph"
    assert "unknown-key: sorces" in str(found.value)
