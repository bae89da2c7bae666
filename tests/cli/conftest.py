"""Screens compared whole with files, a project of plain values, and an API that starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli import sample

from infold import api
from infold.cli import cli
from infold.core.project import Project
from infold.core.report import RunResult, VerificationReport
from infold.ledger.database import USED_FILES

SCREENS = Path(__file__).parent / "screens"

Screen = Callable[[str, str], None]
Infold = Callable[..., Result]


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Screen:
    """Compare a text with ``screens/<name>.txt``, or write it there under ``--rewrite``."""

    def compare(name: str, text: str) -> None:
        path = SCREENS / f"{name}.txt"
        if request.config.getoption("--rewrite"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")

        assert text.rstrip("\n") + "\n" == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def infold() -> Infold:
    """The command line, in this process: ``infold("run", "--json")``."""

    def call(*words: str) -> Result:
        USED_FILES.clear()  # a process has one command, and asks about the ledgers of that
        return CliRunner().invoke(cli, list(words))

    return call


class FakeApi:
    """Stands in for ``infold.api``: answers with what it was given, notes what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, dict[str, Any]] = {}
        self.project = sample.project()
        self.observed = sample.observed()
        self.plan = sample.plan()
        self.result = sample.result()
        self.verified = sample.verification()
        self.raises: Exception | None = None

    def open_project(self, root: Path, target: str | None, **_: bool) -> Project:
        """The sample project, which is that of the files."""
        self.asked["open_project"] = {"root": root, "target": target}
        return self.project

    def run(self, _: Any, **asked: Any) -> RunResult:
        """The sample's run; `progress` gets each step."""
        self.asked["run"] = asked
        if self.raises:
            raise self.raises
        for index, (step, receipt) in enumerate(self.result.steps, 1):
            asked["progress"].step(index, None, step)
            asked["progress"].done(step, receipt)
        return self.result

    def verify(self, _: Any, **asked: Any) -> VerificationReport:
        """The sample's verification report."""
        self.asked["verify"] = asked
        asked["progress"].note("comparing clicks with its rebuild")
        return self.verified

    def noted(self, name: str, answer: Callable[[], Any], *named: str) -> Callable[..., Any]:
        """A function that notes its arguments, those after the project under these names."""

        def call(*given: Any, **asked: Any) -> Any:
            self.asked[name] = {**dict(zip(named, given[1:], strict=False)), **asked}
            return answer()

        return call


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """``infold.api`` replaced by :class:`FakeApi`."""
    found = FakeApi()
    observe = found.noted("observe", lambda: found.observed)
    for name, answer in {
        "open_project": found.open_project,
        "run": found.run,
        "verify": found.verify,
        "explain": found.noted(
            "explain",
            lambda: sample.explanation(found.asked["explain"]["cell"]),
            *("model", "cell", "as_of"),
        ),
        "session_history": found.noted("session_history", sample.histories, "id", "model"),
        "observe": observe,
        "observe_all": observe,
        "make_plan": found.noted("make_plan", lambda: found.plan, "seen", "asked"),
        "status": found.noted("status", sample.status, "as_of"),
        "history": found.noted("history", sample.history, "limit", "model"),
        "coverage": lambda *_, **__: sample.COVERED,
        "refuse_too_much": lambda *_, **__: None,
        **dict.fromkeys(
            ("project_to_run", "to_apply", "with_apart"), lambda project, *_, **__: project
        ),
    }.items():
        monkeypatch.setattr(api, name, answer)
    return found
