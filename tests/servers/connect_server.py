"""A real server of Spark Connect for tests: a process of this machine, of little memory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.ports import free_port
from tests.servers.standalone import STARTS_WITHIN, UNTIL_THE_END

from infold.spark.jvm.jars import jar_paths, spark_home
from infold.spark.jvm.java import find_java
from infold.spark.tables.jar import Jar

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = "Spark Connect server started at"


def as_it_should_be(*jars: Jar) -> Mapping[str, str]:
    """The settings that infold needs; ``jars`` besides those of every target."""
    return {
        "spark.jars": ",".join(map(str, jar_paths(jars))),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalogImplementation": "in-memory",
    }


@dataclass
class ConnectServer:
    """A server, which may be killed and started again at the same address."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=as_it_should_be)
    token: str = ""
    master: str = "local[2]"
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"sc://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / "connect.log"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            **self.settings,
        }
        confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        environment = os.environ | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        if self.token:
            environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = self.token
        command = [
            str(spark_home() / "bin" / "spark-submit"),
            *("--class", SERVER, "--master", self.master, "--driver-memory", "1g"),
            *("--driver-java-options", "-Xss8m -Duser.timezone=UTC"),
            *confs,
            "spark-internal",
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", UNTIL_THE_END, "sh", *command],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + STARTS_WITHIN
        while STARTED not in self.log.read_text(errors="replace"):
            assert time.monotonic() < until, self.log.read_text(errors="replace")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            until = time.monotonic() + STARTS_WITHIN
            with suppress(ConnectionRefusedError):  # a JVM of some memory takes a while to go
                while time.monotonic() < until:
                    socket.create_connection(("127.0.0.1", self.port), 1).close()
                    time.sleep(0.1)

    def restart(self) -> None:
        """End it, and start another one at its address."""
        self.kill()
        self.start()

    def target(self) -> Mapping[str, Any]:
        """What a target says to compute here."""
        return {"engine": {"remote": self.url, "shared_disk": True}}


@contextmanager
def running(folder: Path, **given: Any) -> Iterator[ConnectServer]:
    """A server for the block."""
    server = ConnectServer(folder, **given)
    try:
        server.start()
        yield server
    finally:
        server.kill()
