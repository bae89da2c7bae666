"""
A command that a warm engine carries out: its words go there, its exit code comes back.

Its terminal and files stay its own: the engine's process has the same ones open. Signals are passed
on. This is imported before click and everything else.

Whether a command uses an engine, and which, is read from its words. By default one is used where a
person waits: at a terminal, and not in CI. ``INFOLD_ENGINE=on`` and ``off`` say it, and
``--no-engine`` for one command.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from infold.system import engine_socket as wire
from infold.system.circumstances import place
from infold.system.signals import SIGNALS

TYPE_CHECKING = False  # importing typing takes long
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import Any

COMMANDS = frozenset(
    "apply audit backbuild check diff erase explain restate run show test verify".split()  # noqa: SIM905
)
"""The commands that may need Spark."""

COMMANDS_BEFORE = frozenset({"check", "init", "plan", "status"})
"""The commands after which one that needs Spark is likely."""

VARIABLE = "INFOLD_ENGINE"
OFF_WORD = "--no-engine"
_WITH_VALUE = {"-C": "root", "--project": "root", "--target": "target"}


class Typed:
    """The global options of a command line, and the command."""

    def __init__(self, words: Sequence[str]) -> None:
        self.root, self.target, self.command, self.off = ".", None, "", False
        self.first_argument = ""
        given = iter(words)
        for word in given:
            name, equals, value = word.partition("=")
            if word in _WITH_VALUE:
                setattr(self, _WITH_VALUE[word], next(given, ""))
            elif equals and name in _WITH_VALUE and name.startswith("--"):
                setattr(self, _WITH_VALUE[name], value)
            elif word == OFF_WORD:
                self.off = True
            elif word.startswith("-"):
                return  # help, a version, or a mistake
            else:
                self.command, self.first_argument = word, next(given, "")
                return

    root: str
    target: str | None
    command: str
    first_argument: str
    off: bool


STARTS = "engine"
"""`infold engine restart` starts one, wherever it is called."""


def leaves(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may leave an engine."""
    if typed.command == STARTS:
        return sys.platform == "linux"
    return is_on(typed, environment, terminal=terminal)


def is_on(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may use an engine that is there."""
    if typed.command not in COMMANDS or not _may_have_one(typed, environment):
        return False
    said_on = environment.get(VARIABLE, "").lower() == "on"
    return said_on or (terminal and not environment.get("CI"))


def starts_early(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may start an engine that it does not need: only where a person waits."""
    if typed.command not in COMMANDS_BEFORE or not _may_have_one(typed, environment):
        return False
    return terminal and not environment.get("CI")


def _may_have_one(typed: Typed, environment: Mapping[str, str]) -> bool:
    """Whether an engine can be there, and nobody says that none is to be used."""
    if typed.off or sys.platform != "linux":
        return False
    # Of spark-submit, which gave its own Spark.
    is_submitted = "PYSPARK_GATEWAY_PORT" in environment
    return not is_submitted and environment.get(VARIABLE, "").lower() != "off"


WORTH_SECONDS = 3.0
"""One that began to start less long ago is not there sooner than the command's own Spark."""

LOST = "The process that carried out the command is gone, and nobody knows how far it came."


def carry_out(words: Sequence[str]) -> int | None:
    """
    Let the project's engine carry out a command, the program's name first; its exit code.

    None if there is no engine for it: nothing was done then.
    """
    typed = Typed(words[1:])
    if "--watch" in words:  # it goes on and on, and the engine would be busy
        return None
    if not is_on(typed, os.environ, terminal=os.isatty(2)):
        return None
    try:
        file = wire.socket_file(typed.root, typed.target)
        wire.await_start(file, at_least=WORTH_SECONDS)
        connection = wire.connect(file)
    except (OSError, ValueError):
        return None
    with connection:
        if connection.fileno() <= 2:  # its own file is closed, and it has no end to watch
            return None
        process = _ready_process(connection, words)
        if process is None:
            return None
        return _follow_command(connection, process)


def _ready_process(connection: socket.socket, words: Sequence[str]) -> int | None:
    """The process that will carry out the command at a word; None if there is none."""
    try:
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        kind = wire.RUN_ON_HANGUP if ignored else wire.RUN
        request = wire.Request(kind, [*map(os.fsencode, words)], place(sys.path), os.environb)
        wire.send(connection, request)
        while (answer := wire.next_reply(connection)) is not None and answer[0] == wire.WAIT:
            pass
    except TimeoutError:
        # It hangs. It has no part in a command that runs, so nothing is lost with it.
        wire.kill_hung(connection)
        return None
    except (OSError, ValueError):
        return None
    return answer[1] if answer is not None and answer[0] == wire.READY else None


def _follow_command(connection: socket.socket, process: int) -> int | None:
    """Pass signals on until the command has ended; its exit code."""
    try:
        target = os.pidfd_open(process)
    except OSError:
        return None  # it is gone, and was not told to begin
    connection.settimeout(None)
    before = _forward_signals(target)
    try:
        wire.send_go(connection, (0, 1, 2))
    except OSError:  # one of the three files is closed, or the process has gone
        for number, was in before.items():
            signal.signal(number, was)
        return None
    answer = wire.next_reply(connection)
    if answer is None:
        os.write(2, f"{LOST}\n".encode())
        return 1
    kind, number = answer
    if kind == wire.SIGNAL:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return number


def _forward_signals(target: int) -> dict[int, Any]:
    """Pass signals on to a process from now on; how they were handled before."""

    def forward(number: int, _: FrameType | None) -> None:
        _send(target, number)

    def pause(_: int, __: FrameType | None) -> None:
        _send(target, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        _send(target, signal.SIGCONT)

    handlers = {**dict.fromkeys(SIGNALS, forward), signal.SIGTSTP: pause}
    before: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    return before


def _send(target: int, number: int) -> None:
    with suppress(OSError):  # it has ended, and its code is on the way
        signal.pidfd_send_signal(target, number)
