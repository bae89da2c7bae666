"""
Being stopped: Ctrl-C, a polite kill, a terminal that goes away.

Each of these ends a command at once, with one line and an exit code of its own: 128 and the
signal's number, as shells have it (130, 143, 129). What this process has started ends first, for a
program that waits for an answer of it would otherwise wait on. Killing a JVM in the middle of a
commit is no harm: the next run looks for the step in the table's history.

A second signal does not wait for anything. This is the first module of the program to be loaded, so
it loads next to nothing itself: before it has, Python says in its own way that it was stopped.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # what typing is for; importing it takes as long as all of the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SAID = "Stopped. What was finished is kept; the next run goes on from there."
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """
    A signal asked the process to end.

    No KeyboardInterrupt, of which libraries have ideas of their own: lines, tracebacks, retries.
    """


class _State:
    """What is to be ended first, and whether a signal came; one for the process."""

    def __init__(self) -> None:
        self.children: list[Callable[[], None]] = []
        self.signal: int | None = None
        self.waits = 0
        self.missed = False
        self.said = False


_state = _State()


def install() -> None:
    """Be stopped by signals from now on. A hang-up that ``nohup`` keeps away stays away."""
    for number in SIGNALS:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def ends_with(child: Callable[[], None]) -> None:
    """Have ``child`` called, to end what it stands for, when the process is stopped."""
    if child not in _state.children:
        _state.children.append(child)


def code() -> int | None:
    """The exit code of a process that a signal has stopped; None while none has."""
    return None if _state.signal is None else 128 + _state.signal


def end_children() -> None:
    """End all that was started and does not end by itself at once."""
    for child in _state.children:
        with suppress(OSError):
            child()


def say() -> None:
    """The one line that a stopped command ends with, below the ^C of a terminal; said once."""
    if not _state.said:
        _state.said = True
        start = b"\n" if os.isatty(2) else b""
        with suppress(OSError):
            os.write(2, start + SAID.encode() + b"\n")


def leave() -> None:
    """End the process at once, and what it started before it."""
    say()
    end_children()
    os._exit(code() or 1)


@contextmanager
def later() -> Iterator[None]:
    """A signal in this block is handled at its end: what is started in it is known by then."""
    _state.waits += 1
    try:
        yield
    finally:
        _state.waits -= 1
        if _state.missed and not _state.waits:
            _state.missed = False
            end_children()
            raise Stopped


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    if _state.signal is not None:
        end_children()
        os._exit(128 + number)
    _state.signal = number
    if _state.waits:
        _state.missed = True
        return
    end_children()
    raise Stopped
