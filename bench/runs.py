"""Runs of a project inside this process, with what they cost: seconds, Spark jobs, commits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infold import api
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import RunResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    result: RunResult
    seconds: float
    jobs: int

    @property
    def by_step(self) -> str:
        """Seconds of each step, in order."""
        steps = [f"{step.model} {receipt.seconds:.1f}" for step, receipt in self.result.steps]
        return ", ".join(steps)

    def step(self, model: str) -> float:
        """Seconds of the steps of one model."""
        return self.receipt(model).seconds

    def receipt(self, model: str) -> Receipt:
        """What the steps of one model did, added up."""
        own = (receipt for step, receipt in self.result.steps if step.model == model)
        return sum(own, Receipt())


def run(root: Path, select: Sequence[str] = (), *, jobs: int | None = None) -> Cost:
    """Run a project once, reading it again as the command line does."""
    before = _jobs()
    started = time.perf_counter()
    result = api.run(api.open_project(root), select=select, jobs=jobs)
    seconds = time.perf_counter() - started
    return Cost(result, seconds, _jobs() - before)


def large_session(project: Project) -> SparkSession:
    """The project's session with the settings of a large build, as its first build has them."""
    session: SparkSession = api.session(project, size="large")
    return session


def _jobs() -> int:
    """How many Spark jobs this process has started; numbers are given in order."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None:
        return 0
    found = running.sparkContext.statusTracker().getJobIdsForGroup(None)
    return max(found, default=-1) + 1
