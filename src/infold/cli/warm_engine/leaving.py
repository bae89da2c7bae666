"""A command's Spark, left to a keeper when the command ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from infold.cli.warm_engine.client import Typed, leaves
from infold.system import engine_socket as wire
from infold.system.circumstances import Began, place, set_session_priority
from infold.system.kept_files import open_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infold.api.spark_sessions import Home
    from infold.spark.jvm.lasting import Offer

LOG = "engine.log"


def leave(began: Began) -> str:
    """
    Leave the Spark that this process started to a keeper, if it started one and may.

    A line that says what stays; empty if nothing does. No failure to leave it is a failure of the
    command, which ``began`` so.
    """
    typed = Typed(sys.argv[1:])
    environment = {
        os.fsdecode(name): os.fsdecode(value) for name, value in began.environment.items()
    }
    if not leaves(typed, environment, terminal=_is_terminal()):
        return ""
    from infold.api.spark_sessions import home
    from infold.spark.jvm import lasting

    engine_home = home()
    if engine_home is None:
        return ""
    try:
        offer = lasting.to_leave()
        if offer is None:
            return ""
        replaces = _may_replace(engine_home, offer, began)
        if replaces:
            _start_keeper(engine_home, offer, began)
        if typed.target is None:
            _link(engine_home)
        if not replaces:
            return ""
    except Exception:  # noqa: BLE001 (the JVM ends with this process, as ever)
        return ""
    target = "" if typed.target is None else f" --target {typed.target}"
    return (
        f"Spark stays ready for the next command, until none came for {engine_home.idle_text}: "
        f"infold{target} engine status."
    )


def _is_terminal() -> bool:
    with suppress(OSError):
        return os.isatty(2)
    return False


def _may_replace(home: Home, offer: Offer, began: Began) -> bool:
    """Whether there is no engine, or one that serves no command like this any more."""
    try:
        connection = wire.connect(home.socket)
    except OSError:
        return True
    with connection:
        words = (offer.needs.encode(), b"large" if offer.large else b"")
        wire.send(
            connection, wire.Request(wire.REPLACE, words, place(began.path), began.environment)
        )
        try:
            answer = wire.next_reply(connection)
        except TimeoutError:
            return True
        return answer != (wire.CODE, 0)


def _start_keeper(home: Home, offer: Offer, began: Began) -> None:
    """Start the process; the socket is there before it, so the next command finds it at once."""
    from infold.system.process_lock import open_locks

    listening = wire.listen(home.socket)
    locks, watched = open_locks(), os.pidfd_open(offer.jvm.process.pid)
    given = {
        "socket": home.socket,
        "listening": listening.fileno(),
        "target": home.target,
        "idle": home.idle,
        "pid": offer.jvm.process.pid,
        "watched": watched,
        "input": offer.jvm.input,
        "port": offer.jvm.port,
        "secret": offer.jvm.secret,
        "needs": offer.needs,
        "large": offer.large,
        "locks": dict(locks),
    }
    # A file, not a pipe: this process is not to wait until the other one reads.
    with (
        open_log(Path(home.socket).parent / LOG) as log,
        os.fdopen(os.memfd_create("given"), "w+b") as described,
    ):
        described.write(json.dumps(given).encode())
        described.seek(0)
        subprocess.Popen(
            python_words(wire.KEEPER, ["infold"], began.path),
            stdin=described,
            stdout=log,
            stderr=log,
            env=began.environment,
            pass_fds=(listening.fileno(), watched, offer.jvm.input, *locks.values()),
            start_new_session=True,
        )
    set_session_priority(offer.jvm.process.pid, 0)  # it may have been started early


def python_words(module: str, argv: Sequence[str], path: Sequence[str]) -> list[str]:
    """
    The command line of a process that calls the ``main`` of a module, with ``argv``.

    ``path`` is where it looks for modules, before anything is imported: nothing comes from
    elsewhere than in the command that starts it.
    """
    begin = (
        "import sys; _, _, count, *rest = sys.argv; sys.path[:] = rest[int(count):]; "
        f"sys.argv = rest[:int(count)]; from {module} import main; main()"
    )
    options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return [
        *(sys.executable, *options, "-P", "-c", begin, module),
        *(str(len(argv)), *argv, *path),
    ]


def _link(home: Home) -> None:
    """Let the socket be found where no target is typed."""
    name = Path(wire.socket_file(str(Path(home.socket).parents[1]), None))
    fresh = name.with_suffix(f".{os.getpid()}")
    fresh.symlink_to(Path(home.socket).name)
    fresh.replace(name)
