"""A command of infold, run in this process, where it may die."""

from __future__ import annotations

from click.testing import CliRunner
from tests.crash.scenario import AllBut, Life, living

from infold.cli import cli
from infold.core.project import Project


def infold(project: Project, *words: str) -> tuple[int, str]:
    """A command's exit code and what it prints."""
    root = ("-C", str(project.root), "--target", project.target.name)
    done = CliRunner().invoke(cli, [*root, *words])
    return done.exit_code, done.output


def said(project: Project, *words: str, code: int = 0) -> str:
    """What a command prints that ends with this exit code."""
    found, printed = infold(project, *words)
    assert found == code, printed
    return printed


def die(project: Project, *words: str, at: int | str) -> Life:
    """A command that dies at a write point, of this number or this name; how far it came."""
    number, met = (at, None) if isinstance(at, int) else (0, AllBut(at))
    with living(number, met) as life:
        infold(project, *words)
    return life
