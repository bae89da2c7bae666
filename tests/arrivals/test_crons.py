"""Tables with a cron in runs that fail: what was begun at a tick is completed, and no more.

Without Spark, as ``test_dry``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.arrivals.dry import DryPlay
from tests.arrivals.shapes import SHAPES
from tests.arrivals.test_failing import failed, failing

from infold.core import interval
from infold.core.model import Incremental
from infold.core.plan import Step
from infold.core.project import Project
from infold.core.report import RunFailed


class DueAtSix(DryPlay):
    """Days are built in batches, at six; it is a minute later."""

    @property
    def project(self) -> Project:
        """The project with a cron."""
        found = super().project
        cron = Incremental(cron="0 6 * * *", batch_size=2)
        nodes = (
            replace(node, model=replace(node.model, incremental=cron))
            if node.name == "daily"
            else node
            for node in found
        )
        return replace(found, nodes=tuple(nodes))

    def __post_init__(self) -> None:
        super().__post_init__()
        for number in range(6):
            self.arrive(Random(number))
        self.world.as_of = interval.parse_instant_text("2024-03-11T06:01:00Z")

    def built(self) -> list[str]:
        """The models of the steps of a run half an hour later, but for the ingest."""
        self.world.as_of += 30 * interval.MINUTE
        return [step.model for step, _ in self._run(None, ()).steps if step.model != "clicks"]


@pytest.mark.parametrize("error", [ArithmeticError(), KeyboardInterrupt()], ids=["fails", "ends"])
def test_batches_of_a_cron_are_continued(tmp_path: Path, error: BaseException) -> None:
    """The next run builds the rest of the batches, and does not wait for the next tick."""
    play, begun = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6), list[Step]()

    def second(step: Step) -> BaseException | None:
        begun.extend([step] if step.model == "daily" else [])
        return error if len(begun) == 2 else None

    with failing(second), pytest.raises((RunFailed, KeyboardInterrupt)):
        play._run(None, ())

    assert begun[0].batches > 2
    assert play.built().count("daily") == begun[0].batches - 1
    assert play.built() == []


def test_a_table_that_was_complete_waits_for_its_cron(tmp_path: Path) -> None:
    """Another model failed in the same run: late rows of this one are read at the next tick."""
    play = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6)
    failed(play, lambda step: ArithmeticError() if step.model == "users" else None)
    play.arrive(Random(7))

    assert "sessions" in (later := play.built())
    assert "daily" not in later
    play.world.as_of += interval.DAY
    assert "daily" in play.built()
