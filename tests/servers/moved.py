"""Plays and scenarios somewhere else: on a server, on a cluster, with tables in a catalog."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.arrivals.play import Play
from tests.arrivals.programs import Op, Program, Round
from tests.crash.scenario import Scenario, kill, living

from infold import api

Move = Callable[[Path], None]
"""Has the project of a folder compute, or find its tables, elsewhere."""


def retarget(folder: Path, keys: Mapping[str, Any]) -> None:
    """Give all targets of a project these keys."""
    file = folder / "infold.yml"
    project = yaml.safe_load(file.read_text(encoding="utf-8"))
    for target in project["targets"].values():
        target |= keys
    file.write_text(yaml.safe_dump(project), encoding="utf-8")


def nowhere(folder: Path) -> None:
    """The project stays as it is."""


@dataclass
class Moved(Play):
    """A play whose project is moved before anything runs."""

    move: Move = nowhere

    def _begin(self) -> None:
        super()._begin()
        self.move(self.folder)

    def play_all(self, *kinds: str) -> None:
        """The first two operations, a run, the others, a run; the tables are right, by both."""
        ops = tuple(Op(kind, at) for at, kind in enumerate(kinds))
        first, second = Round(ops[:2], Op("all", 1)), Round(ops[2:], Op("all", 2))
        self.play(Program(self.users, (first, second)))
        assert api.verify(self.project).equal


@dataclass
class MovedScenario(Moved, Scenario):
    """A scenario whose project is moved before anything runs."""

    def first_points(self) -> list[tuple[str, str]]:
        """The write points of the first run, which takes in two deliveries."""
        self.deliver(1)
        self.deliver(2)
        with living() as life:
            self.go(life)
        self.check({*self.shape.tables}, None)
        return life.passed

    def die(self, seed: int, at: int) -> None:
        """A run takes in what was delivered, and dies at a point; the next one is right."""
        self.deliver(seed)
        with living(at) as life:
            self.go(life)
        assert life.dead
        self.settle()

    def first_commits(self) -> list[int]:
        """Which of the write points of the first run are before and after commits of tables."""
        points = enumerate(self.first_points(), 1)
        return [at for at, (_, name) in points if name.startswith("table ")]

    def die_at(self, points: Iterable[int]) -> None:
        """By exception at some points, and once by SIGKILL: the next run makes all tables right."""
        for seed, at in enumerate(points, 3):
            self.die(seed, at)
        self.deliver(9)
        ended = kill(self, "table sessions: after commit")
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        self.settle()
