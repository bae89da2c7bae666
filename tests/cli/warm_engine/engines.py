"""An engine without Spark, for tests: the keeper is the real one, its JVM only reads its input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from infold.api.warm_engines import engine_of

LEAVE = """
import os, subprocess, sys
from pathlib import Path
from infold.api.spark_sessions import Home
from infold.cli.warm_engine import leaving
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.lasting import Offer
from infold.system.circumstances import Began
from infold.system.process_lock import inherited_descriptors

if sys.argv[3:]:  # how the keeper is hasty, before it begins
    real = subprocess.Popen
    def hasty(words, **how):
        begun = [word.replace("main()", f"{sys.argv[3]}; main()") for word in words]
        return real(begun, **how)
    leaving.subprocess.Popen = hasty
locks = inherited_descriptors(Path(os.getcwd()), "dev")
jvm = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, pass_fds=locks,
                       start_new_session=True)
file, idle = sys.argv[1], int(sys.argv[2])
sys.path[0] = os.getcwd()  # as `python -m` has it
began = Began()
offer = Offer(Jvm(jvm, jvm.stdin.fileno(), "1", "secret"), "needs", False)
home = Home("dev", file, idle)
leaving._start_keeper(home, offer, began)
leaving._link(home)
print(jvm.pid, flush=True)
os._exit(0)
"""
HASTY = (
    "from infold.cli.warm_engine import keeper; keeper.TURN_SECONDS = 0.2; keeper.modules = tuple"
)
"""It looks around often, and imports nothing that a command might need."""
COMMAND = (sys.executable, "-m", "infold")
ON = {"INFOLD_ENGINE": "on"}
PATIENCE = 300


class Client(subprocess.Popen[str]):
    """A command that was typed. A test that fails ends it, and does not wait for its end."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)


@dataclass
class Engine:
    """The engine of a project, seen from outside."""

    root: Path
    jvm: int
    before: int = 0
    """Commands that do not count."""

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """That of all commands here."""
        found = {**os.environ, **ON, **(more or {})}
        found.pop("PYTEST_CURRENT_TEST", None)
        return found

    def start(self, *words: str, **how: Any) -> subprocess.Popen[str]:
        """Begin a command."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given: dict[str, Any] = {**pipes, **how}
        given["env"] = self.environment(given.pop("environment", None))
        return Client([*COMMAND, *words], text=True, cwd=self.root, **given)

    def run(self, *words: str, **how: Any) -> tuple[int, str, str]:
        """A command's exit code, output and errors."""
        with self.start(*words, **how) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def status(self) -> dict[str, Any] | None:
        """What the engine says of itself."""
        found = engine_of(self.root, None)
        return None if found is None else asdict(found)

    @property
    def keeper(self) -> int:
        """The keeper's process."""
        found = self.status()
        assert found is not None
        return int(found["process"])

    def served(self) -> int:
        """How many commands it carried out since."""
        found = self.status()
        assert found is not None
        return int(found["commands"]) - self.before

    def command_process(self) -> int:
        """The process that the keeper has forked for a command; waits for it."""
        keeper = self.keeper
        children = Path(f"/proc/{keeper}/task/{keeper}/children")
        await_that(lambda: children.read_text().split() != [])
        return int(children.read_text().split()[0])


def await_that(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether a process runs."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    return False


def waits(pid: int) -> bool:
    """Whether a process has come to where it waits: it does nothing, however often one looks."""
    for _ in range(8):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(0.03)
    return True


@contextmanager
def engine(root: Path, *how: str) -> Iterator[Engine]:
    """An engine that a command has left for a project."""
    found = Engine(root, 0)
    file = root / ".infold" / "engine-dev.sock"
    file.parent.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", LEAVE, str(file), "600", *how],
        cwd=root,
        env=found.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    found.jvm = int(done.stdout)
    try:
        yield found
    finally:
        with suppress(ProcessLookupError):
            os.killpg(found.jvm, signal.SIGKILL)  # the keeper ends when its JVM has
