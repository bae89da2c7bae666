"""The process that a keeper forks for a command: it is the command, from beginning to end."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, TextIO

from infold.cli import process_exit
from infold.cli.warm_engine.leaving import leave
from infold.spark.jvm import lasting
from infold.system import engine_socket as wire
from infold.system import signals
from infold.system.circumstances import Began

if TYPE_CHECKING:
    import mmap
    import socket

    from infold.spark.jvm.lasting import Offer


def serve(
    client: socket.socket,
    request: wire.Request,
    offer: Offer,
    marks: mmap.mmap,
) -> NoReturn:
    """Be the command of a client that has said GO, and end."""
    client.settimeout(None)
    wire.reply(client, wire.READY, os.getpid())
    files = wire.receive_go(client, 3)
    if files is None:
        os._exit(0)
    _take_over_process(request, files)
    began = Began()

    def touched() -> None:
        marks[TOUCHED] = 1

    def end(code: int) -> NoReturn:
        if line := leave(began):
            process_exit.say(line)
        marks[DONE] = 1  # from now on the client may go
        wire.reply(client, wire.CODE, code)
        _let_go_of_files()
        if lasting.has_attached():
            with suppress(Exception):  # then the keeper ends the JVM
                lasting.tidy_up()
                marks[TOUCHED] = 0
        os._exit(code)

    def command() -> None:
        from infold.cli.main import cli

        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.SIGNALS)  # which the keeper has blocked
        cli.main()

    lasting.offer(replace(offer, taken=touched))
    process_exit.run(command, end)


def _take_over_process(request: wire.Request, files: Sequence[int]) -> None:
    """Take on what the client was started with; all else is equal, or it would not be served."""
    for signal_number in signals.SIGNALS:
        signal.signal(signal_number, signal.SIG_DFL)
    if request.kind == wire.RUN_ON_HANGUP:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.install()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in files:
        if file > 2:
            os.close(file)
    os.environb.clear()
    os.environb.update(request.environment)
    sys.argv = [os.fsdecode(word) for word in request.words]
    # What click looks at to say how the program is called.
    program = sys.modules["__main__"]
    program.__package__ = "infold" if sys.argv[0].endswith("__main__.py") else None
    sys.stdin, sys.stdout, sys.stderr = (_opened(n) for n in range(3))
    if "numpy.random" in sys.modules:  # unlike Python's own it does not begin anew after a fork
        sys.modules["numpy.random"].seed()


def _let_go_of_files() -> None:
    """Close the client's files: whoever reads its output is not to wait until the JVM is tidy."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)


def _opened(number: int) -> TextIO:
    """A standard stream, opened as Python opened that of the keeper."""
    before = (sys.stdin, sys.stdout, sys.stderr)[number]
    raw = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        raw,
        encoding=before.encoding,
        errors=before.errors,
        newline=None if number == 0 else "\n",
        line_buffering=number == 2 or os.isatty(number),
        write_through=number == 2 or bool(os.environ.get("PYTHONUNBUFFERED")),
    )


TOUCHED = 0
"""The JVM is not as it was before the command."""
DONE = 1
"""The command has ended, and only tidies up: its client may go, and the next one may wait."""
