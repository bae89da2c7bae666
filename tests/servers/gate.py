"""
A server for tests, mostly in a JVM, and a gate of ours before it that counts and spoils requests.

It can do what stores, catalogs and networks do: refuse, be busy, be slow, cut a connection, and
lose an answer.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

from tests.servers.program import SMALL, java, program

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and content."""


@dataclass
class Rule:
    """What the gate does with requests of a method to paths that match, so many ``times``."""

    method: str
    path: str
    status: int = 0
    """Refuse with this status."""
    code: str = "Refused"
    """What S3 calls that."""
    seconds: float = 0.0
    """Wait before."""
    lost: bool = False
    """Do the request, and close the connection without an answer."""
    cut: bool = False
    """Send half of the answer, and close the connection."""
    every: int = 1
    """Only every so many-th request."""
    first: Callable[[], None] | None = None
    """What happens before the request is done, once."""
    times: int = 1_000_000
    met: int = 0


@dataclass
class Gated:
    """A server behind a gate."""

    url: str = ""
    """The gate."""
    rules: list[Rule] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """How many requests came to the gate, by method."""
    sent: int = 0
    """Bytes of their answers."""
    received: int = 0
    """Bytes of what was put."""

    @contextmanager
    def rule(self, method: str, path: str, **how: Any) -> Iterator[Rule]:
        """A rule for the block."""
        rule = Rule(method, path, **how)
        self.rules.append(rule)
        try:
            yield rule
        finally:
            self.rules.remove(rule)


class Gate(ThreadingHTTPServer):
    """The server that is asked."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that went away is none."""


class Passing(BaseHTTPRequestHandler):
    """A request, which is done by the server behind unless a rule says otherwise."""

    store: Gated
    port: int
    protocol_version = "HTTP/1.1"
    # An answer is sent in two parts: the second does not wait until the first one has come.
    disable_nagle_algorithm = True
    _behind: http.client.HTTPConnection | None = None

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _serve(self) -> None:
        content = self._content()
        self.store.seen[self.command] += 1
        self.store.received += len(content)
        rule = next((one for one in self.store.rules if self._fits(one)), None)
        if rule is not None:
            rule.times -= 1
            time.sleep(rule.seconds)
            if rule.first is not None:
                first, rule.first = rule.first, None
                first()
            if rule.status:
                return self._answer(self._says(rule.status, rule.code))
        answer = self._forward(content)
        if rule is not None and rule.lost:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        return self._answer(answer, cut=rule is not None and rule.cut)

    def _content(self) -> bytes:
        """What was sent; the server behind gets it whole, and as it is."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        del self.headers["Transfer-Encoding"]
        self.headers["Content-Length"] = str(len(content))
        return content

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 (its names)

    def _fits(self, rule: Rule) -> bool:
        here = re.fullmatch(rule.method, self.command) and re.search(rule.path, self.path)
        if not here or rule.times <= 0:
            return False
        rule.met += 1
        return rule.met % rule.every == 0

    def _says(self, status: int, code: str) -> Answer:
        """What such a server says that refuses."""
        body = f"<Error><Code>{code}</Code><Message>a rule says so</Message></Error>"
        return status, {"Content-Type": "application/xml"}, body.encode()

    def _forward(self, content: bytes) -> Answer:
        used, self._behind = self._behind, None
        if used is not None:
            try:
                return self._asked(used, content)
            except (http.client.HTTPException, OSError):
                used.close()  # the server closes connections that nobody used for a while
        new = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        return self._asked(new, content)

    def _asked(self, behind: http.client.HTTPConnection, content: bytes) -> Answer:
        behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                behind.putheader(name, value)
        behind.endheaders(content or None)
        answer = behind.getresponse()
        body = answer.read()
        headers = {
            name: value
            for name, value in answer.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "date", "server")
        }
        self._behind = behind
        return answer.status, headers, body

    def _answer(self, answer: Answer, *, cut: bool = False) -> None:
        status, headers, body = answer
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
        head = self.command == "HEAD"
        size = next((n for k, n in headers.items() if k.lower() == "content-length"), None)
        if status not in (204, 304):
            self.send_header("Content-Length", str(size or 0) if head else str(len(body)))
        self.end_headers()
        self.store.sent += len(body)
        if cut:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif not head and status not in (204, 304):
            self.wfile.write(body)


def handler(store: Gated, port: int, kind: type[Passing] = Passing) -> type[Passing]:
    """What a gate before a server does."""
    return type("Here", (kind,), {"store": store, "port": port})


def as_json(status: int, found: Mapping[str, Any], **headers: str) -> Answer:
    """An answer in JSON."""
    return status, {**headers, "Content-Type": "application/json"}, json.dumps(found).encode()


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

    def answers() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", path)
        status = connection.getresponse().status
        return not statuses or status in statuses

    all_words = [*(command or (java(), *SMALL)), *words]
    with program(all_words, log, answers, env=environment), opened(gate) as url:
        yield url


_numbers = count()


def new_name(of: str) -> str:
    """A name that nobody used, which begins so."""
    return f"{of}{os.getpid()}x{next(_numbers)}"


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
