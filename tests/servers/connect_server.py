"""A real server of Spark Connect for tests: a process of this machine, of little memory."""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.gate import free_port
from tests.servers.program import STARTS_WITHIN, awaited, begin
from tests.servers.standalone import environment, kill_at_once

from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import spark_home
from infold.spark.tables.iceberg.catalogs import POSTGRESQL

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = "Spark Connect server started at"


TOKEN = "SPARK_TOKEN"
"""The variable with the token of clients."""

SETTINGS = {
    "spark.jars": ",".join(map(str, jar_paths((POSTGRESQL,)))),
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.executor.extraJavaOptions": "-Xss8m -Duser.timezone=UTC",
    "spark.executor.memory": "450m",
    "spark.executor.cores": "1",
}
"""What infold needs, a driver for a catalog in PostgreSQL, and what fits into small workers."""


@dataclass
class ConnectServer:
    """A server for a cluster, which may be killed and started again at the same address."""

    folder: Path
    master: str
    token: str = field(default_factory=lambda: f"s3cret-{secrets.token_hex(8)}")
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is, as errors name it."""
        return f"sc://localhost:{self.port}"

    @property
    def secret_url(self) -> str:
        """Where it is, with its token."""
        return f"{self.url}/;token={self.token}"

    @property
    def remote(self) -> str:
        """Where it is, as infold.yml has it."""
        return f"{self.url}/;token=${{env:{TOKEN}}}"

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
            **SETTINGS,
        }
        confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
        env = environment(SPARK_CONNECT_AUTHENTICATE_TOKEN=self.token)
        command = [
            str(spark_home() / "bin" / "spark-submit"),
            *("--class", SERVER, "--master", self.master, "--driver-memory", "1g"),
            *("--driver-java-options", "-Xss8m -Duser.timezone=UTC"),
            *confs,
            "spark-internal",
        ]
        self._process = begin(command, self.log, env=env, cwd=self.folder, start_new_session=True)
        awaited(lambda: STARTED in self.log.read_text(errors="replace"), self.log)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        if self._process is not None:
            kill_at_once(self._process)
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
        return {"engine": {"remote": self.remote, "shared_disk": True}, "spark": {}}


@contextmanager
def running(folder: Path, master: str) -> Iterator[ConnectServer]:
    """A server for the block."""
    server = ConnectServer(folder, master)
    try:
        server.start()
        yield server
    finally:
        server.kill()
