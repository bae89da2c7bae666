"""
An engine before it is needed: who looks at a plan is likely to run it.

At a terminal, a command that needs no Spark leaves a process that starts it, at low priority, and
ends when a keeper has it. A command that comes meanwhile waits for it, or ends it if it has only
just begun (``engine_socket``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from infold.cli.warm_engine.client import Typed, starts_early
from infold.cli.warm_engine.leaving import python_words
from infold.core.target import EARLY
from infold.system import engine_socket as wire
from infold.system.circumstances import Began, free_memory, set_session_priority

if TYPE_CHECKING:
    from infold.core.project import Project

LEAST_FREE_BYTES = 2 * 1024**3
"""With less free memory nothing is started that nobody has asked for."""
GIVES_WAY = 10
"""The priority of the process, and of its Java, while they start; 19 is the lowest."""


def start(began: Began, project: Project | None, code: int) -> str:
    """
    Start an engine for the commands after this one, which ended with ``code``.

    ``project`` is the one that it opened; None after ``init``, which wrote one. A line that says
    so; empty where none is started. No failure to start one is a failure of the command.
    """
    typed = Typed(sys.argv[1:])
    terminal = os.isatty(2)
    if code or not (
        _is_wanted(typed, project) and starts_early(typed, os.environ, terminal=terminal)
    ):
        return ""
    with suppress(Exception):
        return _start(began, typed)
    return ""


def _is_wanted(typed: Typed, project: Project | None) -> bool:
    if project is None:
        return typed.command == "init"
    engine = project.target.engine
    return engine.start == EARLY and not engine.is_cluster


def _start(began: Began, typed: Typed) -> str:
    """The same; raises whatever is in the way."""
    from infold.spark.jvm.java import find_java

    root, folder = typed.root, Path()
    if typed.command == "init":  # what follows is typed in the new folder
        root, folder = ".", Path(typed.first_argument)
    find_java()
    if free_memory() < LEAST_FREE_BYTES:
        return ""
    file = wire.socket_file(str(folder / root), typed.target)
    with suppress(OSError):
        wire.connect(file).close()
        return ""
    os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
    lock = wire.lock_start(file)
    if lock is None:
        return ""
    target = () if typed.target is None else ("--target", typed.target)
    words = ["infold", "-C", root, *target, "engine", "restart"]
    here, there = os.getcwd(), str(folder.resolve())  # noqa: PTH109 (as `python -m` has it)
    path = [there if entry == here else entry for entry in began.path]
    process = subprocess.Popen(
        python_words(wire.STARTER, words, path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # what is wrong the next command says
        env=began.environment,
        cwd=folder,
        pass_fds=(lock,),
        start_new_session=True,
    )
    wire.name_starter(lock, process.pid)
    named = "".join(f" {word}" for word in target)
    return (
        "Spark starts in the background, for the command after this one: "
        f"infold{named} engine status."
    )


def main() -> None:
    """Start an engine as ``infold engine restart`` does, and give way to all others meanwhile."""
    from infold.cli import main as infold

    set_session_priority(os.getpid(), GIVES_WAY)
    infold()
