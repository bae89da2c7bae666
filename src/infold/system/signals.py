"""
Being stopped: Ctrl-C, SIGTERM, a terminal that is closed.

Each ends a command at once, with one line and an exit code of its own: 128 and the signal's number,
as in shells (130, 143, 129). The processes that this one has started end first, because a program
that waits for their answers would go on waiting. Killing a JVM in the middle of a commit does no
harm: the next run looks for the step in the table's history.

A second signal does not wait for anything. This is the first module of the program to be loaded, so
it imports next to nothing: until it is loaded, Python reports a stop in its own way.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # importing typing takes as long as all other imports here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

STOPPED_LINE = "Stopped. What was finished is kept; the next run goes on from there."
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """
    A signal asked the process to end.

    It is no KeyboardInterrupt, which libraries handle in ways of their own: messages, retries.
    """


class _State:
    """What is to be ended first, and whether a signal came; the process has one."""

    def __init__(self) -> None:
        self.children: list[Callable[[], None]] = []
        self.signal: int | None = None
        self.waits = 0
        self.missed = False
        self.printed = False


_state = _State()


def install() -> None:
    """Handle signals from now on. A hang-up stays ignored if ``nohup`` ignores it."""
    for number in SIGNALS:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _report_unraised


def end_with_process(child: Callable[[], None]) -> None:
    """Call ``child``, which ends a process, when this process is stopped."""
    if child not in _state.children:
        _state.children.append(child)


def exit_code() -> int | None:
    """The exit code of a stopped process; None if no signal came."""
    return None if _state.signal is None else 128 + _state.signal


@contextmanager
def before_errors() -> Iterator[None]:
    """
    Raise :class:`Stopped` in place of an error that came after a signal, as it came because of it.

    What tidies up on the way out of a stopped block asks a JVM that is gone.
    """
    try:
        yield
    except Exception as error:
        if _state.signal is None:
            raise
        raise Stopped from error


def stopped_by(error: BaseException) -> str:
    """What ended a command: the signal's name, or that of the exception if none came."""
    number = _state.signal
    return type(error).__name__ if number is None else signal.Signals(number).name


def end_children() -> None:
    """End the processes that were started and do not end by themselves at once."""
    for child in _state.children:
        with suppress(OSError):
            child()


def print_stopped() -> None:
    """Print, once, the line that a stopped command ends with, below the ^C of a terminal."""
    if not _state.printed:
        _state.printed = True
        start = b"\n" if os.isatty(2) else b""
        with suppress(OSError):
            os.write(2, start + STOPPED_LINE.encode() + b"\n")


def exit_now() -> None:
    """End what this process started, and then the process, at once."""
    print_stopped()
    end_children()
    os._exit(exit_code() or 1)


@contextmanager
def deferred() -> Iterator[None]:
    """Handle a signal in this block at its end, when all that the block starts is known."""
    _state.waits += 1
    try:
        yield
    finally:
        _state.waits -= 1
        if _state.missed and not _state.waits:
            _state.missed = False
            end_children()
            raise Stopped


def _report_unraised(unraised: sys.UnraisableHookArgs) -> None:
    """As ever, but for a stop in a finalizer, which Python would drop: it is raised after that."""
    if not isinstance(unraised.exc_value, Stopped):
        sys.__unraisablehook__(unraised)
        return
    signal.signal(signal.SIGALRM, _raise_stopped)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def _stop(number: int, frame: FrameType | None) -> None:
    del frame
    if _state.signal is not None:
        end_children()
        os._exit(128 + number)
    _state.signal = number
    _raise_stopped()


def _raise_stopped(*_: object) -> None:
    if _state.waits:
        _state.missed = True
        return
    end_children()
    raise Stopped
