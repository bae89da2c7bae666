"""A real Spark cluster for tests: a master and two workers, processes of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.arrivals.shapes import FOLD
from tests.servers.program import awaited, begin

from infold.spark.jvm.java import find_java, spark_home

WORKERS = 2
EXECUTOR = "CoarseGrainedExecutorBackend"
SHAPE = replace(
    FOLD,
    sources=FOLD.sources[:1],
    tables={
        "clicks": FOLD.tables["clicks"][-2:],
        "sessions": FOLD.tables["sessions"][:1],
        "users": FOLD.tables["users"][-1:],
    },
    lookup=None,
)
"""A project for executors: events and rows by key that functions in Python make, and sessions."""


def environment(**more: str) -> dict[str, str]:
    """That of a program of Spark's."""
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }


def kill_at_once(process: subprocess.Popen[bytes]) -> None:
    """End a program, and what it started, whatever they do."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


@dataclass
class Cluster:
    """A running cluster, with one core and half a gigabyte on each worker."""

    folder: Path
    url: str = ""
    _servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start it, and wait until all workers are there."""
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0")
        self.url = self._said("master", r"Starting Spark master at (spark://\S+)")[0]
        for number in range(WORKERS):
            self.add_worker(f"worker{number}")
        self._said("master", "(?s)" + "Registering worker .*" * WORKERS)

    def add_worker(self, name: str) -> None:
        """One worker more."""
        work = self.folder / name
        words = ("--host", "127.0.0.1", "--cores", "1", "--memory", "512m", "--work-dir", str(work))
        self._start(name, "worker.Worker", *words, self.url)

    def executors(self) -> list[int]:
        """The processes that compute now."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                works_in = path.with_name("cwd").resolve()
                if EXECUTOR in path.read_text(errors="replace") and self.folder in works_in.parents:
                    found.append(int(path.parent.name))
        return sorted(found)

    def kill_executor(self) -> None:
        """Kill one of those that compute, once there is one."""
        found = awaited(self.executors, self.folder / "master.log")
        os.kill(found[0], signal.SIGKILL)

    def lose_worker(self) -> None:
        """Kill the worker that came last, with what it runs."""
        kill_at_once(self._servers.pop())

    def stop(self) -> None:
        """End everything."""
        for process in reversed(self._servers):
            kill_at_once(process)

    def target(self) -> Mapping[str, dict[str, Any]]:
        """What a target says to compute here."""
        return {
            "engine": {"master": self.url, "shared_disk": True},
            "spark": {"spark.executor.memory": "450m", "spark.executor.cores": "1"},
        }

    def _start(self, name: str, class_: str, *words: str) -> None:
        program = str(spark_home() / "bin" / "spark-class")
        command = [program, f"org.apache.spark.deploy.{class_}", "--webui-port", "0", *words]
        log = self.folder / f"{name}.log"
        env = environment(SPARK_DAEMON_MEMORY="256m")
        self._servers.append(begin(command, log, env=env, start_new_session=True))

    def _said(self, name: str, pattern: str) -> list[str]:
        """What a server's log says; it is waited for."""
        log = self.folder / f"{name}.log"
        return awaited(lambda: re.findall(pattern, log.read_text(errors="replace")), log)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster for the block."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
