"""
How a command speaks with a warm engine: over a Unix socket in the project's folder.

A command that is to be carried out comes as a :class:`Request`, and later the descriptors of its
input, output and errors. The engine answers in replies of five bytes, a kind and a number:

    request  → WAIT …              it starts, or tidies up; a sign of life each second
             → NO                  busy, or it was started for something else
             → READY, a process    a process is there that will carry out the command
    GO       → CODE, exit code     it has ended
             → SIGNAL, number      it was killed

Without GO nothing is carried out. So who hears no READY can go on alone: nothing is done twice. The
open files come with GO, for whoever has them keeps a pipe open.

A client imports this before anything else, so it imports next to nothing.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import contextmanager

TYPE_CHECKING = False  # importing typing takes long
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WAIT, NO, READY, GO, CODE, SIGNAL = b"w", b"n", b"r", b"g", b"x", b"s"
REPLY_BYTES = 5
RUN, RUN_ON_HANGUP, STATUS, STOP, REPLACE = b"run", b"run nohup", b"status", b"stop", b"replace"
"""What is asked for; a command under ``nohup`` goes on when its terminal is closed."""

SILENCE_SECONDS = 5.0
"""Seconds without a sign of life after which an engine is taken to hang."""
START_SECONDS = 60.0
"""For how long a command waits for an engine that another process starts."""
MOST_BYTES = 16 * 1024 * 1024
KEEPER = "infold.cli.warm_engine.keeper"
"""The module that an engine's process runs."""
STARTER = "infold.cli.warm_engine.early"
"""The module that starts one early."""
PREFIX, SUFFIX, STARTING = "engine", ".sock", ".starting"


class Request:
    """What an engine is asked for: a command line, and where it was typed."""

    def __init__(
        self,
        kind: bytes,
        words: Sequence[bytes] = (),
        place: bytes = b"",
        environment: Mapping[bytes, bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.words = tuple(words)
        self.place = place
        self.environment = dict(environment or {})

    def packed(self) -> bytes:
        """The request as bytes: no part of a command line or of an environment has a NUL in it."""
        pairs = (name + b"=" + value for name, value in self.environment.items())
        parts = (self.kind, str(len(self.words)).encode(), *self.words, self.place, *pairs)
        return b"\0".join(parts)

    @classmethod
    def unpacked(cls, data: bytes) -> Request:
        """The request that was packed. Raises ValueError for anything else."""
        kind, count, *fields = data.split(b"\0")
        words, (place, *pairs) = fields[: int(count)], fields[int(count) :]
        split_pairs = (pair.partition(b"=") for pair in pairs)
        return cls(kind, words, place, {name: value for name, _, value in split_pairs})


def socket_file(root: str, target: str | None) -> str:
    """
    The socket of a project's engine, for a target as it was typed: None if none was.

    Where none was typed, infold.yml says which it is, and a client does not read that. Its socket
    is a link to the one of the target that was the first in infold.yml when the engine began.
    """
    name = PREFIX if target is None else f"{PREFIX}-{target}"
    return os.path.join(root, ".infold", name + SUFFIX)  # noqa: PTH118 (pathlib takes 5 ms)


def lock_start(file: str) -> int | None:
    """
    The right to start an engine at a socket, held by whoever has this descriptor open.

    None if a process is starting one. Raises OSError where nothing can be written.
    """
    import fcntl

    lock = os.open(file + STARTING, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def name_starter(lock: int, process: int) -> None:
    """Write down which process has the right to start an engine, from now on."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(process).encode(), 0)


def await_start(file: str, *, at_least: float = 0) -> None:
    """
    Wait while a process starts an engine at a socket, if one does. Raises OSError.

    One that began less than ``at_least`` seconds ago is ended instead.
    """
    try:
        lock = os.open(file + STARTING, os.O_RDONLY)
    except FileNotFoundError:
        return
    import fcntl
    import time

    until = time.monotonic() + START_SECONDS
    try:
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                has_just_begun = time.time() - os.fstat(lock).st_mtime < at_least
                process = int(os.pread(lock, 20, 0) or 0)
                if has_just_begun and process and _kill(process, STARTER, signal.SIGTERM):
                    break
            time.sleep(START_SECONDS / 600)
    finally:
        os.close(lock)


def connect(file: str) -> socket.socket:
    """A connection to an engine of this user. Raises OSError if there is none, as beside Linux."""
    if sys.platform != "linux":
        raise FileNotFoundError(file)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(SILENCE_SECONDS)
        with _short(file) as path:
            connection.connect(path)
        if peer(connection)[1] != os.geteuid():
            raise PermissionError(file)
    except BaseException:
        connection.close()
        raise
    return connection


def listen(file: str) -> socket.socket:
    """A new socket at a path, in place of what was there; only its owner can open it."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = f"{file}.{os.getpid()}"
    try:
        with _short(fresh) as path:
            listening.bind(path)
        os.chmod(fresh, 0o600)  # noqa: PTH101 (as above)
        listening.listen(16)
        os.replace(fresh, file)  # noqa: PTH105 (as above)
    except BaseException:
        listening.close()
        raise
    return listening


def peer(connection: socket.socket) -> tuple[int, int]:
    """The process at the other end of a connection, and its user, as the system knows them."""
    size = 12
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, user, _ = (int.from_bytes(credentials[at : at + 4], "little") for at in range(0, size, 4))
    return pid, user


def kill_hung(connection: socket.socket) -> None:
    """Kill the engine at the other end, which gives no sign of life; never anything else."""
    _kill(peer(connection)[0], KEEPER, signal.SIGKILL)


def _kill(process: int, module: str, number: int) -> bool:
    """
    Send a signal to a process that runs a module, and to no other.

    False while it can't be said what the process runs: its program is just being loaded.
    """
    try:
        with open(f"/proc/{process}/cmdline", "rb") as opened:  # noqa: PTH123 (as above)
            words = opened.read()
        if module.encode() in words.split(b"\0"):
            os.kill(process, number)
    except OSError:
        return True  # it is gone
    return words != b""


def send(connection: socket.socket, request: Request) -> None:
    """Four bytes with the length, big-endian, then the request."""
    data = request.packed()
    connection.sendall(len(data).to_bytes(4, "big") + data)


def receive(connection: socket.socket) -> Request:
    """The request of a client. Raises OSError or ValueError."""
    head = _exactly(connection, 4) or b""
    length = int.from_bytes(head, "big")
    data = _exactly(connection, length) if head and length <= MOST_BYTES else None
    if data is None:
        raise ValueError(length)
    return Request.unpacked(data)


def send_go(connection: socket.socket, files: Sequence[int]) -> None:
    """Let the command begin, with these open files. Raises OSError; nothing is begun then."""
    socket.send_fds(connection, [GO], [*files])


def receive_go(connection: socket.socket, count: int) -> list[int] | None:
    """The open files of a command that is to begin; None if it is not."""
    try:
        word, files, _, _ = socket.recv_fds(connection, 1, count)
    except OSError:
        return None
    return files if word == GO and len(files) == count else None


def reply(connection: socket.socket, kind: bytes, number: int = 0) -> bool:
    """Send a reply; False if nobody is there to read it."""
    try:
        connection.sendall(kind + number.to_bytes(4, "big", signed=True))
    except OSError:
        return False
    return True


def next_reply(connection: socket.socket) -> tuple[bytes, int] | None:
    """The next reply; None when the engine has gone. Raises TimeoutError after a silence."""
    try:
        data = _exactly(connection, REPLY_BYTES)
    except ConnectionError:
        return None
    return (data and (data[:1], int.from_bytes(data[1:], "big", signed=True))) or None


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts, left = [], size
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@contextmanager
def _short(file: str) -> Iterator[str]:
    """Another path of a file: a socket's may not have more than 107 bytes."""
    folder = os.open(os.path.dirname(file) or ".", os.O_PATH | os.O_DIRECTORY)  # noqa: PTH120
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(file)}"  # noqa: PTH119 (as above)
    finally:
        os.close(folder)
