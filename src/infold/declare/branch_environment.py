"""The environment of git's branch, where a target asks for that."""

from __future__ import annotations

from pathlib import Path

from infold.declare.load import load_with_mistakes
from infold.messages.errors import InfoldError
from infold.system.git_branch import branch_of, environment_of


def environment_of_branch(root: Path, target: str | None) -> str | None:
    """The environment that commands work in without being told; None for production."""
    name = environment_of(branch_of(root.resolve()))
    if name is None:
        return None
    try:
        project, _ = load_with_mistakes(root, target)
    except InfoldError:  # which the command itself will meet
        return None
    return name if project.target.environment_from_branch else None
