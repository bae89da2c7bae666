"""
The engine that a command left running for a project's target: asked how it is, and ended.

For that the project is not read: it may be wrong.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from contextlib import suppress
from pathlib import Path

from infold.core.project import Project
from infold.core.target import WarmEngine
from infold.messages.errors import InfoldError
from infold.system import engine_socket as wire

STOP_SECONDS = 30  # for one that is idle; then its process is killed
BEGIN_SECONDS = 5.0  # for a socket that is there already, while its engine still begins


def engine_of(root: Path, target: str | None) -> WarmEngine | None:
    """The engine of a project's target; None if there is none, or it does not answer."""
    with suppress(OSError, ValueError), wire.connect(_socket(root, target)) as connection:
        wire.send(connection, wire.Request(wire.STATUS))
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return WarmEngine(**json.loads(b"".join(parts)))
    return None


def await_engine(root: Path, target: str | None) -> None:
    """Wait for an engine that starts, if one does."""
    with suppress(OSError, ValueError):
        wire.await_start(_socket(root, target))


def stop_engine(root: Path, target: str | None) -> bool | None:
    """
    End the engine of a project's target; None if there is none.

    True once it has ended. False if it first carries a command out to its end. One that does not
    answer is killed: it has no part in what a command does.
    """
    try:
        connection, watched = _connected(_socket(root, target))
    except OSError:
        return None
    with connection:
        try:
            wire.send(connection, wire.Request(wire.STOP))
            answer = wire.next_reply(connection)
            if answer == (wire.CODE, 1):
                return False
        except OSError:
            wire.kill_hung(connection)
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        if not poll.poll(STOP_SECONDS * 1000):
            wire.kill_hung(connection)
        os.close(watched)
    return True


def _connected(file: str) -> tuple[socket.socket, int]:
    """
    A connection to an engine, and its process. Raises OSError if there is none.

    For a moment the socket is that of the command that left it, which has ended: until the keeper
    has begun.
    """
    until = time.monotonic() + BEGIN_SECONDS
    while True:
        connection = wire.connect(file)
        try:
            return connection, os.pidfd_open(wire.peer(connection)[0])
        except OSError:
            connection.close()
            if time.monotonic() > until:
                raise
        time.sleep(BEGIN_SECONDS / 10)


def start_engine(project: Project) -> None:
    """
    Start Spark as a command does that has work; it stays when the process ends.

    It has met the project's definitions then, as a first run has it do: that is a second less.
    """
    from infold.api.opening import definition_errors

    with suppress(InfoldError):  # for the command that asks for it
        definition_errors(project)


def _socket(root: Path, target: str | None) -> str:
    return wire.socket_file(str(root), target)
