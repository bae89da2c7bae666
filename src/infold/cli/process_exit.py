"""
How the program ends: with all that it printed handed over, and waiting for nothing else.

Python ends by taking down, one by one, what libraries have set up, while their threads still run:
on a busy machine Arrow's pool of threads aborted processes that had printed everything
(terminate called without an active exception). So once its output is flushed the process is over.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from infold.messages import faults
from infold.system import signals

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


LEAVE_SECONDS = 20
"""For how long a process may leave what it started to others, once its command has ended."""


class OutputError(OSError):
    """The standard output takes nothing more: its disk is full, say."""


class ReaderGone(Exception):  # noqa: N818 (no error: head, or a pager, has seen enough)
    """
    Nobody reads the standard output any more.

    No OSError, for which click has an exit code of its own.
    """


class _Output(io.FileIO):
    """The standard output; its failures are errors of their own."""

    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override]
        """As ever; a reader that has gone away is no failure of the output."""
        try:
            return super().write(data)
        except BrokenPipeError as error:
            raise ReaderGone from error
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


def run(command: Callable[[], object], end: Callable[[int], object] = lambda _: None) -> NoReturn:
    """
    Carry out a command, and end the process with the code of its SystemExit.

    ``end`` is called with the code once all output is handed over. That is no part of the command:
    it is cut short by a signal, and after ``LEAVE_SECONDS``, and the code stays.
    """
    code: object = 0
    try:
        _guard_output()
        command()
    except SystemExit as left:
        code = left.code
    except BaseException:  # before it began, or while it was ending
        if signals.exit_code() is None:
            raise
        signals.print_stopped()
    _leave_with(_exit_code(code), end)


def _exit_code(code: object) -> int:
    """The exit code of a SystemExit, as Python has it: what is no number is printed, and is 1."""
    if code is None or isinstance(code, int):
        return code or 0
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{code}\n")
    return 1


def _guard_output() -> None:
    before = sys.stdout
    try:
        raw = _Output(before.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return  # closed, or none of the system's
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=bool(before.line_buffering),
    )


def say(line: str) -> None:
    """Print a line on stderr, at the very end."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())


def _leave_with(code: int, end: Callable[[int], object]) -> NoReturn:
    if signals.exit_code() is not None:
        # Lines of a run are out already; one that was cut short would be written a second time.
        signals.exit_now()
    try:
        code = _hand_over(code)
    except signals.Stopped:
        signals.exit_now()

    def exit_late(_: int, __: FrameType | None) -> None:
        signals.end_children()
        os._exit(code)

    with suppress(signals.Stopped):
        signal.signal(signal.SIGALRM, exit_late)
        signal.alarm(LEAVE_SECONDS)
        end(code)
    os._exit(code)


def _hand_over(code: int) -> int:
    """Let nothing be lost that was printed or written; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ReaderGone):
            pass
        except OSError as error:
            code = report_failed_output(error, code)
        except (ValueError, AttributeError):
            pass  # closed before this process began
    if ledgers := sys.modules.get("infold.ledger.database"):  # else none was opened
        ledgers.close_all()
    return code


def report_failed_output(error: OSError, code: int) -> int:
    """Report on stderr that the output could not be written; the exit code, which is not 0."""
    with suppress(OSError, ValueError):
        # What could not be written is let go of, or it would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        os.write(2, f"{faults.output_failed(why=error.strerror or str(error))}\n".encode())
    return code or 1
