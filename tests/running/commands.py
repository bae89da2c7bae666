"""A command of infold, run in this process."""

from __future__ import annotations

from click.testing import CliRunner

from infold.cli import cli
from infold.core.project import Project


def infold(project: Project, *words: str) -> tuple[int, str]:
    """A command's exit code and what it prints."""
    root = ("-C", str(project.root), "--target", project.target.name)
    done = CliRunner().invoke(cli, [*root, *words])
    return done.exit_code, done.output
