"""A command of infold, run in this process, where it may die."""

from __future__ import annotations

from click.testing import CliRunner
from tests.crash.scenario import Life, living

from infold.cli import cli
from infold.core.project import Project


def infold(project: Project, *words: str) -> tuple[int, str]:
    """A command's exit code and what it prints."""
    root = ("-C", str(project.root), "--target", project.target.name)
    done = CliRunner().invoke(cli, [*root, *words])
    return done.exit_code, done.output


def die(project: Project, *words: str, at: int | str) -> Life:
    """A command that dies at a write point, of this number or this name; how far it came."""
    number, met = (at, None) if isinstance(at, int) else (0, AllBut(at))
    with living(number, met) as life:
        infold(project, *words)
    return life


class AllBut(list[tuple[str, str]]):
    """The write points that a command survives: all but those of one name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __contains__(self, point: object) -> bool:
        return isinstance(point, tuple) and point[1] != self.name
