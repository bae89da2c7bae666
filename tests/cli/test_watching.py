"""`run --watch` pauses longer the less comes; `check --watch` goes on after mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli import sample
from tests.cli.conftest import FakeApi, Infold
from tests.declare.shop import DAILY, write

from infold import api
from infold.cli import run as watching
from infold.cli.run import LATEST, SOONEST, pause
from infold.core.plan import Plan
from infold.core.report import RunFailed
from infold.declare import folder


def watched(finds: list[bool], *, does: bool = True) -> list[str]:
    """What happens where the looks find this, and a run takes a second."""
    clock, happened = [0.0], []

    def look() -> bool:
        if not finds:
            raise KeyboardInterrupt
        return finds.pop(0)

    def run() -> bool:
        happened.append("run")
        clock[0] += 1
        return does

    def sleep(seconds: float) -> None:
        happened.append(f"{seconds:.2f}")
        clock[0] += seconds

    with pytest.raises(KeyboardInterrupt):
        watching.watch(look, run, now=lambda: clock[0], sleep=sleep)
    return happened


def test_what_comes_meanwhile_is_run_at_once() -> None:
    """After a run there is a look without a pause."""
    assert watched([False, True, True, False]) == ["0.25", "run", "run", "0.25"]


def test_pauses() -> None:
    """After steps that nothing carries out too; the longer the less comes."""
    assert watched([True, True], does=False) == ["run", "0.25", "run", "0.25"]
    pauses = [pause(idle) for idle in (0, 4, 20, 100, 10_000)]
    assert pauses == [SOONEST, SOONEST, 1.0, LATEST, LATEST]


def test_the_command_runs_until_one_fails(
    fake: FakeApi, infold: Infold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints the steps of each run, reads the project each time, and ends as that run does."""
    plans = [fake.plan, replace(fake.plan, steps=()), fake.plan]
    monkeypatch.setattr(api, "plan", lambda *_, **__: plans.pop(0))
    monkeypatch.setattr(watching, "SOONEST", 0.0)
    ran: list[dict[str, Any]] = []
    once: Callable[..., Any] = fake.run

    def run(project: Any, **asked: Any) -> Any:
        ran.append(asked)
        if len(ran) == 2:
            raise RunFailed(sample.failed())
        return once(project, **asked)

    monkeypatch.setattr(api, "run", run)
    result = infold("run", "--watch", "-s", "daily")

    assert result.exit_code == 1
    assert result.stdout.startswith("  1. ")
    assert result.stdout.count(sample.result().notes[0]) == 2  # of each run, in its words
    assert "Files are taken in as they land" in result.stderr
    assert [(one["select"], one["wait"]) for one in ran] == [(("daily",), 60.0)] * 2
    assert not plans
    assert isinstance(fake.plan, Plan)


def test_it_prints_what_each_check_finds(
    tmp_path: Path, infold: Infold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right project, a mistake, no project at all, and the right one again."""
    root = write(tmp_path)
    daily, project = root / "models" / "daily.sql", root / "infold.yml"
    text = project.read_text()

    def each_change(_: Path) -> Iterator[None]:
        yield
        daily.write_text(DAILY.replace("sum(revenue)", "sum(revenu)"))
        yield
        daily.write_text(DAILY)
        project.unlink()
        yield
        project.write_text(text)
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "each_change", each_change)
    done = infold("-C", str(root), "check", "--watch")

    lines = [line.partition("  ")[2] for line in done.stdout.splitlines()]
    assert [line.partition(" in ")[0] for line in lines] == [
        "3 models, 2 sources, no findings",
        "3 models, 2 sources, no findings",
    ]
    findings = [line for line in done.stderr.splitlines() if line.startswith(("un", "no-"))]
    assert [line.partition(":")[0] for line in findings] == ["unknown-column", "no-project"]
    assert done.exit_code == 130


def test_without_a_project_no_check_begins(tmp_path: Path, infold: Infold) -> None:
    """Where there is none, or no such target, it ends as any command."""
    assert infold("-C", str(tmp_path), "check", "--watch").exit_code == 2
    root = str(write(tmp_path))
    assert infold("-C", root, "--target", "no_such", "check", "--watch").exit_code == 2
