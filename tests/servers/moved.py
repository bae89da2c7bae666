"""Scenarios somewhere else: on a server, on a cluster, with tables in a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.crash.scenario import Scenario

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
class MovedScenario(Scenario):
    """A scenario whose project is moved before anything runs."""

    move: Move = nowhere

    def _begin(self) -> None:
        super()._begin()
        self.move(self.folder)

    def take_in(self) -> None:
        """A run; each table is what the reference says."""
        self.go()
        self.check({*self.shape.tables}, None)
