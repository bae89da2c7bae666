"""The program's own runner, without Spark, as listeners hear of it: side by side, and failing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.arrivals.dry import DryPlay
from tests.arrivals.shapes import SHAPES
from tests.arrivals.test_failing import failing, refusal
from tests.running.telling.test_lineage import Kept

from infold.core.plan import Step
from infold.core.progress import Progress, SilentProgress
from infold.core.report import RunFailed, RunResult
from infold.running.telling.lineage import LineageEvents
from infold.running.telling.log import JsonLog
from infold.running.telling.tell import tell


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_every_step_begins_and_ends_once(tmp_path: Path, *, jobs: int, fails: bool) -> None:
    """Lineage and log have the steps of the result, and no listener failed."""
    play = DryPlay(SHAPES["fold"], tmp_path, "fold", tmp_path, 6, jobs=jobs)
    for number in range(2):
        play.arrive(Random(number))
    kept, log = Kept(), tmp_path / "log"
    listeners = [LineageEvents(kept, "infold", lambda _: {}, tuple), JsonLog(log)]

    def run(shown: Progress) -> RunResult:
        play.progress = shown
        with failing(lambda step: refusal(step.model) if fails and last(play, step) else None):
            return play._run(None, ())

    try:
        found = tell(play.project, "run", SilentProgress(), listeners, run)
    except RunFailed as failed:
        found = failed.result
    assert bool(found.failures) == fails
    assert [note for note in found.notes if " failed: " in note] == []
    steps = [step.model for step, _ in found.steps]
    assert len(steps) > 1
    begun = Counter(one["job"]["name"] for one in kept.events if one["eventType"] == "START")
    ended = Counter(one["job"]["name"] for one in kept.events if one["eventType"] != "START")
    complete = [one for one in kept.events if one["eventType"] == "COMPLETE"]
    project = f"{play.project.name}.{play.project.target.name}"
    assert begun == ended
    assert [one["job"]["name"] for one in complete if one["job"]["name"] != project] == [
        f"{project}.{model}" for model in steps
    ]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["model"] for one in lines if one["event"] == "step_done"] == steps
    by_event = Counter(one["event"] for one in lines)
    assert by_event["step_began"] == by_event["step_done"] + by_event["step_failed"]
    assert lines[-1]["state"] == ("failed" if fails else "done")


def last(play: DryPlay, step: Step) -> bool:
    """Whether it is a step of the last model that has a table."""
    return step.model == [node.name for node in play.project if node.inputs][-1]
