"""
A real server of Iceberg's REST protocol for tests: Iceberg's own, and a gate before it.

Iceberg publishes its server for tests without any check of who asks. The gate asks for a token, and
can do what servers and networks do: refuse, be slow, be busy, and lose an answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.servers.gate import Answer, Gate, Gated, Passing, as_json, behind, free_port, handler
from tests.servers.jars import fetched_jars, listed_jars

from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import spark_home

JARS = listed_jars(Path(__file__).with_suffix(".jars"))
"""Of the server, which also uses Spark's own."""


@dataclass
class RestServer(Gated):
    """A running server."""

    token: str = "s3cret-token/1"
    secret: str = "s3cret:word/2"


class RestPassing(Passing):
    """A request, whose token is checked."""

    store: RestServer

    def _forward(self, content: bytes) -> Answer:
        if self.path.endswith("/oauth/tokens"):
            return self._token(parse_qs(content.decode()).get("client_secret", [""])[0])
        if self.headers.get("Authorization") != f"Bearer {self.store.token}":
            return self._says(401, "Unknown")
        return super()._forward(content)

    def _token(self, given: str) -> Answer:
        if given != self.store.secret:
            return as_json(401, {"error": "invalid_client", "error_description": "no"})
        found = {
            "access_token": self.store.token,
            "token_type": "bearer",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }
        return as_json(200, found)

    def _says(self, status: int, code: str) -> Answer:
        error = {"message": "a rule says so", "type": code, "code": status}
        return as_json(status, {"error": error})


@contextmanager
def running(folder: Path) -> Iterator[RestServer]:
    """A server for the block."""
    server = RestServer()
    port, log = free_port(), folder / "server.log"
    sqlite = [path for path in jar_paths() if "sqlite" in path.name]
    own = [*map(str, [*fetched_jars(JARS), *sqlite]), f"{spark_home()}/jars/*"]
    main = "org.apache.iceberg.rest.RESTCatalogServer"
    environment = os.environ | {
        "CATALOG_URI": f"jdbc:sqlite:{folder / 'catalog.db'}?busy_timeout=30000&synchronous=OFF",
        "CATALOG_WAREHOUSE": str(folder / "warehouse"),
        "REST_PORT": str(port),
        "CATALOG_REST_PORT": str(port),
    }
    gate = Gate(("127.0.0.1", 0), handler(server, port, RestPassing))
    words = ("-cp", ":".join(own), main)
    answer: dict[str, Any] = {"path": "/v1/config", "statuses": [200], "environment": environment}
    with behind(gate, words, port, log, **answer) as server.url:
        yield server
