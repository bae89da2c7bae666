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
from infold.core.interval import Ranges
from infold.core.plan import Observations, Plan, Step
from infold.core.record import Receipt

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

    def open_project(
        self,
        root: Path,
        target: str | None,
        *,
        downgrade: bool = False,
        declared: bool = False,
    ) -> Any:
        """The sample project, which is that of the files."""
        del declared
        self.asked["open_project"] = {"root": root, "target": target}
        if downgrade:
            self.asked["open_project"]["downgrade"] = True
        return self.project

    def observe(self, _: Any, **asked: Any) -> Observations:
        """What the sample observed."""
        self.asked["observe"] = asked
        return self.observed

    def observe_all(self, _: Any, **asked: Any) -> Observations:
        """The same."""
        self.asked["observe"] = asked
        return self.observed

    def make_plan(self, _: Any, __: Any, asked: Any = None, **more: Any) -> Plan:
        """The sample plan."""
        self.asked["make_plan"] = {"asked": asked, **more}
        return self.plan

    def coverage(self, _: Any, plan: Any = None) -> dict[str, Ranges]:
        """What the sample's tables hold."""
        return sample.COVERED

    def run(self, _: Any, **asked: Any) -> Any:
        """The sample's run; `progress` gets each step."""
        self.asked["run"] = asked
        if self.raises:
            raise self.raises
        progress = asked["progress"]
        for index, (step, receipt) in enumerate(self.result.steps, 1):
            self._report(progress, index, step, receipt)
        return self.result

    @staticmethod
    def _report(progress: Any, index: int, step: Step, receipt: Receipt) -> None:
        progress.step(index, None, step)
        progress.done(step, receipt)

    def verify(self, _: Any, **asked: Any) -> Any:
        """The sample's verification report."""
        self.asked["verify"] = asked
        asked["progress"].note("comparing clicks with its rebuild")
        return self.verified

    def status(self, _: Any, as_of: int | None) -> Any:
        """How the sample's models stand."""
        self.asked["status"] = {"as_of": as_of}
        return sample.status()

    def history(self, _: Any, limit: int, model: str | None) -> Any:
        """The sample's runs."""
        self.asked["history"] = {"limit": limit, "model": model}
        return sample.history()

    def explain(self, _: Any, model: str, cell: Any, as_of: int | None) -> Any:
        """The sample's explanation."""
        self.asked["explain"] = {"model": model, "cell": cell, "as_of": as_of}
        return sample.explanation(cell)

    def as_run(self, project: Any, *_: Any, **__: Any) -> Any:
        """The project itself: nothing is built apart."""
        return project

    def to_apply(self, declared: Any, *_: Any) -> Any:
        """The project itself."""
        return declared

    def refuse_too_much(self, *_: Any, **__: Any) -> None:
        """Nothing is too much."""

    def with_apart(self, project: Any) -> Any:
        """The project itself: nothing is built apart."""
        return project

    def session_history(self, _: Any, id_: str, model: str | None, *, deep: bool) -> Any:
        """The sample's history of a session."""
        self.asked["session_history"] = {"id": id_, "model": model, "deep": deep}
        if self.raises:
            raise self.raises
        return sample.histories()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """``infold.api`` replaced by :class:`FakeApi`."""
    found = FakeApi()
    for name in (
        "open_project",
        "observe",
        "observe_all",
        "make_plan",
        "coverage",
        "run",
        "verify",
        "status",
        "history",
        "explain",
        "session_history",
        "as_run",
        "to_apply",
        "refuse_too_much",
        "with_apart",
    ):
        monkeypatch.setattr(api, name, getattr(found, name))
    return found
