"""Programs that tests start: each ends with whoever started it, at the latest."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from infold.spark.jvm.java import find_java

Found = TypeVar("Found")

STARTS_WITHIN = 120
SMALL = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For the JVM of a server."""
_UNTIL_THE_END = '"$@" & cat; kill -{} $!; wait'
"""A shell that has a server run as long as whoever started it: until its own input ends."""


def begin(
    command: Sequence[str], log: Path, *, ended_by: str = "KILL", **how: Any
) -> subprocess.Popen[bytes]:
    """Start a program, whose output is in a file."""
    words = ["sh", "-c", _UNTIL_THE_END.format(ended_by), "sh", *command]
    with log.open("wb") as output:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=output, stderr=output, **how)


def awaited(find: Callable[[], Found], log: Path) -> Found:
    """What is found at last; an error that has the program's output where nothing is."""
    until = time.monotonic() + STARTS_WITHIN
    while True:
        with suppress(OSError, http.client.HTTPException):
            if found := find():
                return found
        if time.monotonic() > until:
            raise RuntimeError(log.read_text(encoding="utf-8", errors="replace"))
        time.sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program by its own means, if those are quick."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    process.kill()
    process.wait()


def java() -> str:
    """The program that runs those of Java."""
    return str(find_java().home / "bin" / "java")


def site(settings: Mapping[str, str]) -> str:
    """Settings as programs of Hadoop read them."""
    rows = (f"<name>{name}</name><value>{value}</value>" for name, value in settings.items())
    properties = "".join(f"<property>{row}</property>" for row in rows)
    return f"<configuration>{properties}</configuration>"


@contextmanager
def program(
    command: Sequence[str], log: Path, answers: Callable[[], bool], **how: Any
) -> Iterator[None]:
    """A program in the block, which begins once it answers."""
    process = begin(command, log, **how)
    try:
        awaited(answers, log)
        yield
    finally:
        end(process)
