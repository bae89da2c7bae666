"""The environment of git's branch, where a target asks for that."""

from __future__ import annotations

import re
from pathlib import Path

from infold.declare.load import load_with_mistakes
from infold.messages.errors import InfoldError


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


_HEAD = "ref: refs/heads/"


def branch_of(folder: Path) -> str | None:
    """The branch of the repository that a folder is in; None outside of one, or without any."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_file():  # of a worktree: a file that names its folder
            git = place / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        if git.is_dir():
            head = git / "HEAD"
            text = head.read_text(encoding="utf-8").strip() if head.is_file() else ""
            return text.removeprefix(_HEAD) if text.startswith(_HEAD) else None
    return None


def environment_of(branch: str | None) -> str | None:
    """The name of the environment for a branch; None for the main branch."""
    if branch is None or branch in ("main", "master"):
        return None
    name = re.sub(r"[^A-Za-z0-9_-]", "-", branch)
    return name[:40] if re.match(r"[A-Za-z_]", name) else f"_{name}"[:40]
