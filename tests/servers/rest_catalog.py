"""
A real server of Iceberg's REST protocol for tests: Iceberg's own, and a gate before it.

Iceberg publishes its server for tests without any check of who asks. The gate asks for a token, and
can do what servers and networks do: refuse, be slow, be busy, and lose an answer.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.servers.gated import behind
from tests.servers.jars import fetched_jars
from tests.servers.ports import free_port

from infold.spark.jvm.jars import jar_paths, spark_home

JARS = (
    (
        "com/github/ben-manes/caffeine/caffeine",
        "2.9.3",
        "",
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    (
        "org/apache/httpcomponents/client5/httpclient5",
        "5.6.1",
        "",
        "1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772",
    ),
    (
        "org/apache/httpcomponents/core5/httpcore5",
        "5.4.2",
        "",
        "7c34a25506e7207b6748cef9e91163ed03081bee805cef930d82e1d8761d62f1",
    ),
    (
        "org/apache/httpcomponents/core5/httpcore5-h2",
        "5.4.2",
        "",
        "a70da7280f63ddbb7da2869a2e7aba7d8bde3f2aff050e1324ef60ea1d9fab43",
    ),
    (
        "org/apache/iceberg/iceberg-api",
        "1.11.0",
        "",
        "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a",
    ),
    (
        "org/apache/iceberg/iceberg-bundled-guava",
        "1.11.0",
        "",
        "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1",
    ),
    (
        "org/apache/iceberg/iceberg-common",
        "1.11.0",
        "",
        "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d",
    ),
    (
        "org/apache/iceberg/iceberg-core",
        "1.11.0",
        "tests",
        "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3",
    ),
    (
        "org/apache/iceberg/iceberg-core",
        "1.11.0",
        "",
        "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090",
    ),
    (
        "org/apache/iceberg/iceberg-open-api",
        "1.11.0",
        "test-fixtures",
        "b0aa8636d88c24976d552ac9b3075a1315dc1ccd4fa6ed95b365901842664316",
    ),
    (
        "jakarta/servlet/jakarta.servlet-api",
        "6.0.0",
        "",
        "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef",
    ),
    (
        "org/eclipse/jetty/compression/jetty-compression-common",
        "12.1.5",
        "",
        "f9eaa16477daaf7ff41e5489e6d41268c42cd58888396762ef093ace819ab683",
    ),
    (
        "org/eclipse/jetty/compression/jetty-compression-gzip",
        "12.1.5",
        "",
        "f9a3b082a4eeb0013226c9fd9e9dd60f77c1bf93a87d95e741be9553e769c7b5",
    ),
    (
        "org/eclipse/jetty/compression/jetty-compression-server",
        "12.1.5",
        "",
        "f84f42035fec0df6815cdbff80cf324db99d0ca72d9c4922c1f7a94c7dda4e17",
    ),
    (
        "org/eclipse/jetty/ee10/jetty-ee10-servlet",
        "12.1.5",
        "",
        "ffd35e86226246c8a57ade503fae733b37e687844c726f63f02c6e5fa9220ace",
    ),
    (
        "org/eclipse/jetty/jetty-http",
        "12.1.5",
        "",
        "20a6f605e802789990855b81f75dadfa8ab152e81713080c295c333d7cce7daa",
    ),
    (
        "org/eclipse/jetty/jetty-io",
        "12.1.5",
        "",
        "9c388018412d9bd9a1b9c35ca373e25fd845706f82549f2a7039ae9fefb45e69",
    ),
    (
        "org/eclipse/jetty/jetty-security",
        "12.1.5",
        "",
        "9972b67058ad7a58a0517cd14502e67e2e1071c74b00f51c6487518f0bfdc02e",
    ),
    (
        "org/eclipse/jetty/jetty-server",
        "12.1.5",
        "",
        "e0964741f132de3bdb48ca59c4b9bb8555f966d46b660c8c88f1e157cedbaa02",
    ),
    (
        "org/eclipse/jetty/jetty-session",
        "12.1.5",
        "",
        "ebe4f30c6fe7656294d884e1dc8eea4c77b6c861e3c010847a76fd78164ae166",
    ),
    (
        "org/eclipse/jetty/jetty-util",
        "12.1.5",
        "",
        "3b165498c1409db1a2463c367250c9225635cf68cd4529fbb0610324942bbc07",
    ),
)
"""
Folder in Maven Central, version, classifier and SHA-256. The server also uses Spark's own jars.
"""


@dataclass
class Rule:
    """What the gate does with requests of a method to paths that match, so many ``times``."""

    method: str
    path: str
    status: int = 0
    """Refuse with this status."""
    seconds: float = 0.0
    """Wait before."""
    lose: bool = False
    """Have it done, and close the connection in place of an answer."""
    times: int = 1_000_000


@dataclass
class RestServer:
    """A running server; ``direct`` has no gate before it."""

    folder: Path
    direct: str = ""
    url: str = ""
    token: str = "s3cret-token/1"
    secret: str = "s3cret:word/2"
    rules: list[Rule] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Method and path of each request that came to the gate."""

    def next_namespace(self) -> str:
        """One that nobody used."""
        self._spaces = getattr(self, "_spaces", 0) + 1
        return f"space_{os.getpid()}_{self._spaces}"

    @contextmanager
    def rule(self, method: str, path: str, **how: Any) -> Iterator[Rule]:
        """A rule for the block."""
        rule = Rule(method, path, **how)
        self.rules.append(rule)
        try:
            yield rule
        finally:
            self.rules.remove(rule)


@contextmanager
def running(folder: Path) -> Iterator[RestServer]:
    """A server for the block."""
    server = RestServer(folder)
    port, log = free_port(), folder / "server.log"
    sqlite = [path for path in jar_paths() if "sqlite" in path.name]
    own = [*map(str, [*fetched_jars(JARS), *sqlite]), f"{spark_home()}/jars/*"]
    main = "org.apache.iceberg.rest.RESTCatalogServer"
    environment = os.environ | {
        "CATALOG_URI": f"jdbc:sqlite:{folder / 'catalog.db'}?busy_timeout=30000",
        "CATALOG_WAREHOUSE": str(folder / "warehouse"),
        "REST_PORT": str(port),
        "CATALOG_REST_PORT": str(port),
    }
    gate = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server, port))
    gate.daemon_threads = True
    server.direct = f"http://127.0.0.1:{port}"
    words = ("-cp", ":".join(own), main)
    answer: dict[str, Any] = {"path": "/v1/config", "statuses": [200], "environment": environment}
    with behind(gate, words, port, log, **answer) as server.url:
        yield server


def _handler(server: RestServer, port: int) -> Callable[..., BaseHTTPRequestHandler]:
    class Gate(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.seen.append(f"{self.command} {self.path}")
            if self.path.endswith("/oauth/tokens"):
                return self._give_token(content)
            if self.headers.get("Authorization") != f"Bearer {server.token}":
                return self._refuse(401, "the token is not known here")
            rule = next((one for one in server.rules if self._fits(one)), None)
            if rule is not None:
                rule.times -= 1
                time.sleep(rule.seconds)
                if rule.status:
                    return self._refuse(rule.status, "a rule says so")
            status, headers, answer = self._forward(content)
            if rule is not None and rule.lose:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return None
            return self._answer(status, answer, headers)

        do_GET = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 (its names)

        def _fits(self, rule: Rule) -> bool:
            here = self.command == rule.method and re.search(rule.path, self.path)
            return bool(here) and rule.times > 0

        def _give_token(self, content: bytes) -> None:
            given = parse_qs(content.decode()).get("client_secret", [""])[0]
            if given != server.secret:
                return self._answer(
                    401, json.dumps({"error": "invalid_client", "error_description": "no"}).encode()
                )
            found = {
                "access_token": server.token,
                "token_type": "bearer",
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            }
            return self._answer(200, json.dumps(found).encode())

        def _refuse(self, status: int, why: str) -> None:
            error = {"error": {"message": why, "type": "Refused", "code": status}}
            self._answer(status, json.dumps(error).encode())

        def _forward(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            kept = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in ("host", "connection", "accept-encoding", "authorization")
            }
            connection.request(self.command, self.path, content or None, kept)
            answer = connection.getresponse()
            body = answer.read()
            headers = {
                name: value
                for name, value in answer.getheaders()
                if name.lower() in ("content-type", "etag")
            }
            connection.close()
            return answer.status, headers, body

        def _answer(
            self, status: int, content: bytes, headers: dict[str, str] | None = None
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {"Content-Type": "application/json"}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Gate
