"""A server for tests, mostly in a JVM; a gate of ours before it counts and spoils requests."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.servers.standalone import UNTIL_THE_END

from infold.spark.jvm.java import find_java

STARTS_WITHIN = 120
_SMALL = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@contextmanager
def opened(gate: ThreadingHTTPServer) -> Iterator[str]:
    """The URL of a gate that is open for the block."""
    Thread(target=gate.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{gate.server_address[1]}"
    finally:
        gate.shutdown()
        gate.server_close()


@contextmanager
def program(
    command: Sequence[str],
    log: Path,
    answers: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[None]:
    """A program in the block, which begins once it answers; it ends with this process, too."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", UNTIL_THE_END, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
        )
    try:
        _await(answers, log)
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        process.kill()
        process.wait()


def _await(answers: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + STARTS_WITHIN
    while True:
        with suppress(OSError, http.client.HTTPException):
            if answers():
                return
        if time.monotonic() > until:
            raise RuntimeError(log.read_text(encoding="utf-8", errors="replace"))
        time.sleep(0.2)


@contextmanager
def behind(
    gate: ThreadingHTTPServer,
    words: Sequence[str],
    port: int,
    log: Path,
    *,
    path: str = "/",
    statuses: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
) -> Iterator[str]:
    """
    The URL of a gate, for the block, before a server that Java, or ``command``, runs with these
    words.

    The server is there once it answers at ``path``, with one of ``statuses`` if any are given.
    """
    java = (str(find_java().home / "bin" / "java"), *_SMALL)

    def answers() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", path)
        status = connection.getresponse().status
        return not statuses or status in statuses

    all_words = [*(command or java), *words]
    with program(all_words, log, answers, environment=environment), opened(gate) as url:
        yield url
