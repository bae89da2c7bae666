"""
Loads a project folder: from the cache if no file has changed, else through ``project``.

The environment of git's branch is found here, too, where a target asks for that.

Nothing here imports YAML or SQL parsing before it is known that the cached project does not do.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from infold.core.project import Project
from infold.core.target import Target
from infold.declare.cache import FILES, cache, load_kept
from infold.declare.folder import PROJECT_FILE, Folder, read_folder
from infold.messages import command_errors
from infold.messages.errors import InfoldError, InfoldErrors

T = TypeVar("T")


def load(root: Path, target: str | None = None, *, downgrade: bool = False) -> Project:
    """
    The project in ``root`` for one of its targets, by default its default target.

    With ``downgrade``, models that cannot be built cell by cell are built whole.

    Raises InfoldErrors with all mistakes of the project, or InfoldError when there is none or no
    such target.
    """
    project, wrong = load_with_mistakes(root, target, downgrade=downgrade)
    if wrong is not None:
        raise wrong
    return project


def load_with_mistakes(
    root: Path, target: str | None = None, *, downgrade: bool = False
) -> tuple[Project, InfoldErrors | None]:
    """
    The project as :func:`load` reads it, and the mistakes in its models.

    With mistakes, only its name, start and targets are to be used. Those in infold.yml are raised.
    """
    folder = _folder(root)
    fields = load_kept(folder)
    wrong = None
    if fields is None or fields[FILES] != folder.digests:
        project, default, mistakes = _read_or_reread(folder, fields, downgrade=downgrade)
        if project is None or any(e.at is None or e.at.file == PROJECT_FILE for e in mistakes):
            raise InfoldErrors(mistakes)
        wrong = InfoldErrors(mistakes) if mistakes else None
        if not downgrade and wrong is None:
            cache(folder, project, default)
        fields = {
            "name": project.name,
            "start": project.start,
            "sources": project.sources,
            "nodes": project.nodes,
            "targets": project.targets,
            "erased_columns": project.erased_columns,
            "erasure_requests": project.erasure_requests,
            "default": default,
        }
    fields.pop(FILES, None)
    targets: Mapping[str, Target] = fields["targets"]
    chosen = target or fields.pop("default")
    if chosen not in targets:
        raise command_errors.unknown_target(name=chosen, targets=targets)
    fields.pop("default", None)
    return Project(root=folder.root, target=targets[chosen], **fields), wrong


def check(root: Path) -> list[InfoldError]:
    """Everything that is wrong with the project in ``root``; nothing cached is used."""
    _, _, mistakes = _read_or_reread(_folder(root), None)
    return mistakes


def _folder(root: Path) -> Folder:
    root = root.resolve()
    if not (root / PROJECT_FILE).is_file():
        raise command_errors.no_project(path=str(root))
    return read_folder(root)


def _read_or_reread(
    folder: Folder, cached: Mapping[str, Any] | None, *, downgrade: bool = False
) -> tuple[Project | None, str, list[InfoldError]]:
    """The project of a folder, by one that was ``cached`` if most of it is the same."""
    from infold.declare.project import read_project
    from infold.declare.reread import changed_project

    if cached is not None and not downgrade:
        changed = deeply(lambda: changed_project(folder, cached))
        if changed is not None:
            return changed, cached["default"], []
    return deeply(lambda: read_project(folder, downgrade=downgrade))


def deeply(call: Callable[[], T]) -> T:
    """
    The result of ``call``, with room for SQL as programs write it: a thousand ORs, say.

    Each OR is a level of the tree, and several calls for each function that walks the tree.
    """
    from concurrent.futures import ThreadPoolExecutor

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
    sys.setrecursionlimit(max(limit, _LEVELS))
    try:
        with ThreadPoolExecutor(1) as deep:
            try:
                future = deep.submit(call)
            except RuntimeError:  # no room for such a stack here
                sys.setrecursionlimit(limit)
                return call()
            return future.result()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)


_LEVELS = 30_000
_STACK_BYTES = 512 * 1024 * 1024
"""Only the part that is used takes memory."""


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
