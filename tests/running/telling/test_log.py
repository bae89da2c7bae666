"""A log has a JSON object a line, which says what happened when."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli import sample
from tests.running.telling.runs import end, good, project

from infold.core.progress import Progress
from infold.core.report import RunFailed, RunResult
from infold.core.sinks import Sinks


def lines(file: Path) -> list[dict[str, Any]]:
    """The objects of a log, whose times grow."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    times = [datetime.fromisoformat(one.pop("time")) for one in found]
    assert times == sorted(times)
    assert {(one.pop("project"), one.pop("target")) for one in found} == {("shop", "dev")}
    return found


def in_steps(shown: Progress) -> RunResult:
    """A run that says what it does, and fails with its last step."""
    result = sample.failed()
    *well, (last, _) = result.steps
    for index, (step, receipt) in enumerate(well, 1):
        shown.step(index, 3, step)
        shown.done(step, receipt)
    shown.note("a word")
    shown.step(3, 3, last)
    shown.failed(last, result.failures[0].error)
    raise RunFailed(result)


def test_a_run_that_fails(tmp_path: Path) -> None:
    """Its beginning, each step, notes, and its end with the whole errors."""
    file = tmp_path / "infold.log"

    with pytest.raises(RunFailed):
        end(project(tmp_path, ""), in_steps, Sinks(log=file))

    found = lines(file)
    assert [(one["level"], one["event"], one.get("model", "")) for one in found] == [
        ("info", "run_began", ""),
        ("info", "step_began", "clicks"),
        ("info", "step_done", "clicks"),
        ("info", "step_began", "sessions"),
        ("info", "step_done", "sessions"),
        ("info", "note", ""),
        ("info", "step_began", "daily"),
        ("error", "step_failed", "daily"),
        ("warning", "note", ""),
        ("error", "run_ended", ""),
    ]
    assert found[2]["receipt"]["arrived"] == sample.RECEIPTS[0].arrived
    assert 0 not in found[2]["receipt"].values()
    assert found[7]["error"]["slug"] == "step-failed"
    assert (found[-1]["state"], found[-1]["models"]) == ("failed", "daily, users")
    assert [one["slug"] for one in found[-1]["errors"]] == ["step-failed", "protected"]


def test_the_next_run_goes_on(tmp_path: Path) -> None:
    """A log is added to; one that was put aside meanwhile is begun again."""
    file, shop = tmp_path / "infold.log", project(tmp_path, "")
    for _ in range(2):
        end(shop, good, Sinks(log=file))
    twice = len(lines(file))
    file.rename(tmp_path / "infold.log.1")
    end(shop, good, Sinks(log=file))

    assert twice == 2 * len(lines(file)) == 6


def test_a_log_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    """One note, however many lines there would have been."""
    result = end(project(tmp_path, ""), good, Sinks(log=tmp_path / "gone" / "infold.log"))

    assert result.notes == (*sample.result().notes, "the log failed: FileNotFoundError")
