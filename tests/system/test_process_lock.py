"""A target is locked for as long as whatever may still write, also a JVM that was there before."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infold.messages.errors import InfoldError
from infold.system import process_lock
from infold.system.process_lock import lock_in_jvm, writer_lock

JAVAS_LOCK = """
import fcntl, sys
opened = open(sys.argv[1], "w")
fcntl.lockf(opened, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
"""Another process that locks a file as Java does."""


class Jvm:
    """Locks a file in a process of its own."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.process: subprocess.Popen[bytes] | None = None

    def lock(self, file: Path) -> Callable[[], None]:
        """What ``lock_in_jvm`` calls."""
        self.files.append(file)
        words = [sys.executable, "-c", JAVAS_LOCK, str(file)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        return self.end

    def end(self) -> None:
        """What unlocks it, here by its death."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()


def test_a_jvm_that_outlives_its_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes to the target until it has ended."""
    jvm = Jvm()
    monkeypatch.setattr(process_lock, "WAIT_SECONDS", 0.2)
    with writer_lock(tmp_path, "dev"):
        pass
    jvm.lock(tmp_path / ".infold" / "dev.jvm-lock")  # of a process that was killed

    with pytest.raises(InfoldError, match="engine-busy"), writer_lock(tmp_path, "dev"):
        pytest.fail("two write")
    with writer_lock(tmp_path, "other"):
        pass
    jvm.end()
    with writer_lock(tmp_path, "dev"):
        pass


def test_a_jvm_locks_while_its_process_does(tmp_path: Path) -> None:
    """Once, however many sessions there are; not before, and not after the end of the run."""
    jvm = Jvm()
    lock_in_jvm(tmp_path, "dev", jvm.lock)
    assert jvm.files == []

    with writer_lock(tmp_path, "dev"):
        lock_in_jvm(tmp_path, "dev", jvm.lock)
        lock_in_jvm(tmp_path, "dev", jvm.lock)
        (file,) = jvm.files
        with file.open("r+") as opened, pytest.raises(BlockingIOError):
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)

    lock_in_jvm(tmp_path, "dev", jvm.lock)
    assert jvm.files == [file]
    with writer_lock(tmp_path, "dev"):
        pass
