"""
The keeper of a warm engine: a process that owns a JVM at rest, and forks one for each command.

It starts no thread and has no connection to the JVM, so that it can be forked at any time and
answers at once. It ends, and the JVM with it, when nobody came for a while, memory is short, the
program on disk is another one, its socket is gone or another's, or a command did not end well.

The process that it forks (``serve``) is the command, from beginning to end.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from infold.cli import process_exit
from infold.cli.warm_engine.leaving import leave
from infold.spark.jvm import lasting
from infold.system import engine_socket as wire
from infold.system import signals
from infold.system.circumstances import (
    Began,
    is_memory_short,
    memory_of_process,
    place,
    that_matters,
)
from infold.system.process_lock import let_go, unlock
from infold.system.signals import SIGNALS

if TYPE_CHECKING:
    from infold.spark.jvm.lasting import Offer

PACKAGE = Path(__file__).parents[2]

TURN_SECONDS, SIGN_SECONDS, REQUEST_SECONDS = 5.0, 1.0, 2.0
"""How often it looks around; gives a sign of life to those who wait; waits for a request."""

TOUCHED = 0
"""The JVM is not as it was before the command."""
DONE = 1
"""The command has ended, and only tidies up: its client may go, and the next one may wait."""


@dataclass
class Command:
    """A command that a process carries out."""

    process: int
    watched: int
    client: socket.socket | None
    marks: mmap.mmap


@dataclass
class Waiting:
    """A client whose command can be carried out in a moment."""

    client: socket.socket
    request: wire.Request


@dataclass
class Keeper:
    """What the keeper of a JVM knows."""

    given: dict[str, Any]
    code: str
    listening: socket.socket
    begun: float = field(default_factory=time.time)
    used: float = field(default_factory=time.monotonic)
    ready: bool = False
    ends: bool = False
    served: int = 0
    command: Command | None = None
    waiting: list[Waiting] = field(default_factory=list)
    inode: int = 0
    place: bytes = b""
    environment: dict[bytes, bytes] = field(default_factory=dict)

    def turn(self, seconds: float) -> None:
        """Wait for what happens next, for so long at most, and see to it."""
        watched = select.poll()
        watched.register(self.listening, select.POLLIN)
        if self.command is None:
            watched.register(self.given["watched"], select.POLLIN)
        else:
            watched.register(self.command.watched, select.POLLIN)
            if self.command.client is not None:
                # Only whether it has ended: what it sends is the command's to read. Both processes
                # have one open socket, which blocks, so who looked as well could wait for ever.
                watched.register(self.command.client, 0)
        happened = {number for number, _ in watched.poll(seconds * 1000)}
        if self.given["watched"] in happened:
            self.ends = True  # the JVM is gone
        self._look_at_command(happened)
        if self.listening.fileno() in happened:
            self._accept()
        if self.ready and self.command is None and self.waiting and not self.ends:
            self._serve(self.waiting.pop(0))
        for client in self.waiting:
            wire.reply(client.client, wire.WAIT)

    def look_around(self) -> None:
        """End where there is a reason to."""
        idle = time.monotonic() - self.used > self.given["idle"]
        if self.command is None and not self.waiting and (idle or is_memory_short()):
            self.ends = True
        try:
            is_gone = os.stat(self.given["socket"]).st_ino != self.inode  # noqa: PTH116
        except OSError:
            is_gone = True
        self.ends = self.ends or is_gone

    def leave_name(self) -> None:
        """Take the socket away from its name, unless that is another engine's by now."""
        with suppress(OSError):
            if os.stat(self.given["socket"]).st_ino == self.inode:  # noqa: PTH116
                Path(self.given["socket"]).unlink()

    def _look_at_command(self, happened: set[int]) -> None:
        command = self.command
        if command is None:
            return
        client = command.client
        if client is not None and client.fileno() in happened and command.watched not in happened:
            if not command.marks[DONE]:
                os.kill(command.process, signal.SIGKILL)
            client.close()
            command.client = None
            return
        if command.watched not in happened:
            return
        _, status = os.waitpid(command.process, 0)
        code = os.waitstatus_to_exitcode(status)
        if command.marks[TOUCHED]:
            self._end_jvm()
            let_go(self.given["locks"])  # a JVM that the command started itself has them still
        elif not command.marks[DONE]:
            unlock(self.given["locks"])
        command.marks.close()
        if client is not None:
            if code < 0:
                wire.reply(client, wire.SIGNAL, -code)
            else:
                wire.reply(client, wire.CODE, code)
            client.close()
        os.close(command.watched)
        self.command, self.used = None, time.monotonic()

    def _end_jvm(self) -> None:
        """End the JVM in which nobody knows what goes on, before anyone else may write."""
        from infold.spark.jvm.lasting import end

        self.ends = True
        end(self.offer().jvm)

    def offer(self) -> Any:
        """The JVM, as it is offered to a command."""
        from infold.spark.jvm.gateway import Jvm
        from infold.spark.jvm.lasting import ForeignProcess, Offer

        given = self.given
        process = ForeignProcess(given["pid"], given["watched"])
        jvm = Jvm(process, given["input"], given["port"], given["secret"])
        return Offer(jvm, given["needs"], given["large"])

    def _accept(self) -> None:
        waits = False
        with suppress(OSError):
            client, _ = self.listening.accept()
            with suppress(OSError, ValueError):  # it has gone away, or makes no sense
                waits = self._receive(client)
            if not waits:
                client.close()

    def _receive(self, client: socket.socket) -> bool:
        """Answer a client, or let it wait; whether it waits. Raises OSError or ValueError."""
        client.settimeout(REQUEST_SECONDS)
        if wire.peer(client)[1] != os.geteuid():
            return False
        waiting = Waiting(client, wire.receive(client))
        if waiting.request.kind in (wire.RUN, wire.RUN_ON_HANGUP) and self._will_serve(waiting):
            self.waiting.append(waiting)
            return True
        self._answer(waiting)
        return False

    def _will_serve(self, waiting: Waiting) -> bool:
        if self.ends or not self._is_alike(waiting.request):
            return False
        if self.code != installed():
            self.ends = True
            return False
        busy = self.command is not None and not self.command.marks[DONE]
        return not busy and not self.waiting

    def _is_alike(self, request: wire.Request) -> bool:
        return request.place == self.place and that_matters(request.environment) == self.environment

    def _answer(self, waiting: Waiting) -> None:
        kind = waiting.request.kind
        if kind == wire.STATUS:
            waiting.client.sendall(json.dumps(self._status()).encode())
        elif kind == wire.STOP:
            self.ends = True
            wire.reply(waiting.client, wire.CODE, int(self.command is not None))
        elif kind == wire.REPLACE:
            stays = self._is_as_good(waiting.request)
            if not stays:
                # Before the answer: after it, the name is that of the next engine's socket.
                self.leave_name()
                self.ends = True
            wire.reply(waiting.client, wire.CODE, int(not stays))
        else:
            wire.reply(waiting.client, wire.NO)

    def _is_as_good(self, request: wire.Request) -> bool:
        """Whether commands like one that has a Spark of its own would be served here."""
        needs, size = request.words
        return (
            self._is_alike(request)
            and needs.decode() == self.given["needs"]
            and (self.given["large"] or size != b"large")
            and not self.ends
            and self.code == installed()
            and self.offer().jvm.process.poll() is None
        )

    def _status(self) -> dict[str, Any]:
        return {
            "process": os.getpid(),
            "jvm": self.given["pid"],
            "target": self.given["target"],
            "since": int(self.begun * 1_000_000),
            "commands": self.served,
            "busy": self.command is not None,
            "idle_seconds": int(time.monotonic() - self.used),
            "ends_after_seconds": self.given["idle"],
            "memory_bytes": memory_of_process(self.given["pid"]),
        }

    def _serve(self, waiting: Waiting) -> None:
        marks = mmap.mmap(-1, 2)
        # Until the command handles signals they wait: the keeper would ignore them.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        process = os.fork()
        if process == 0:
            self._be_command(waiting, marks)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self.served += 1
        self.command = Command(process, os.pidfd_open(process), waiting.client, marks)

    def _be_command(self, waiting: Waiting, marks: mmap.mmap) -> NoReturn:
        code = 1
        try:
            from infold.system.process_lock import take_over

            self.listening.close()
            for other in self.waiting:
                other.client.close()
            take_over(self.given["locks"])
            serve(waiting.client, waiting.request, self.offer(), marks)
        except BaseException:  # noqa: BLE001 (into the log: there is nobody else to tell)
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)


def modules() -> Iterator[str]:
    """All modules of the program, and those that it imports in passing."""
    yield from ("pyspark.sql", "pyspark.sql.functions", "pyarrow.dataset", "pyarrow.parquet")
    yield "rich.progress"
    for path in sorted(PACKAGE.rglob("*.py")):
        words = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if words[1] in ("starter", "demo") or words[-1] == "__main__":
            continue
        yield ".".join(words[:-1] if words[-1] == "__init__" else words)


def main() -> None:
    """Keep the JVM that is described on the standard input."""
    given = json.load(sys.stdin)
    listening = socket.socket(fileno=given["listening"])
    listening.listen(16)  # so that clients see this process at the other end
    keeper = Keeper(given, installed(), listening)
    keeper.inode = os.stat(given["socket"]).st_ino  # noqa: PTH116
    keeper.place, keeper.environment = place(sys.path), that_matters(os.environb)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for numpy, when it is imported here
    # Arrow has a thread too, and sees to it in a process that is forked.
    warnings.filterwarnings("ignore", r".*multi-threaded, use of fork\(\)", DeprecationWarning)

    def stop(*_: object) -> None:
        keeper.ends = True

    signal.signal(signal.SIGTERM, stop)
    _run(keeper)


def _run(keeper: Keeper) -> None:
    import gc

    for name in modules():
        try:
            import_module(name)
        except ImportError:
            continue  # an extra that is not installed
        keeper.turn(0)
    gc.collect()
    gc.freeze()
    keeper.ready = True
    while not (keeper.ends and keeper.command is None):
        keeper.turn(SIGN_SECONDS if keeper.waiting else TURN_SECONDS)
        keeper.look_around()
    _end_engine(keeper)


def _end_engine(keeper: Keeper) -> None:
    """Let nobody come any more, and the JVM end."""
    from infold.spark.jvm.lasting import end

    keeper.leave_name()
    keeper.listening.close()
    for waiting in keeper.waiting:
        wire.reply(waiting.client, wire.NO)
        waiting.client.close()
    os.close(keeper.given["input"])
    jvm = keeper.offer().jvm
    with suppress(subprocess.TimeoutExpired):
        jvm.process.wait(10)
    end(jvm)


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


def installed(package: Path = PACKAGE) -> str:
    """
    A digest of what is installed now: infold, Python, and the packages beside it.

    The files of infold are looked at one by one, as a developer's change; of other packages the
    folders they are installed in, where every installation makes, renames or removes something.
    """
    digest = hashlib.sha256(sys.version.encode())
    for path in (sys.executable, *sys.path):
        digest.update(f"{path} {_stamp(path)}\n".encode(errors="surrogateescape"))
    for line in sorted(_files(package)):
        digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path or ".")  # noqa: PTH116 (a thousand of them, in milliseconds)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ino, 0 if os.path.isdir(path) else status.st_size  # noqa: PTH112


def _files(folder: str | Path) -> list[str]:
    files: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    files += _files(entry.path)
            else:
                status = entry.stat()
                files.append(f"{entry.path} {status.st_mtime_ns} {status.st_size}\n")
    return files
