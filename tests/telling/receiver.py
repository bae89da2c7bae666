"""A server that keeps the requests it gets, for tests of what is sent to others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> str:
        """The same as text."""
        return self.content.decode()

    @property
    def json(self) -> Any:
        """The body as plain values."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """A server on this machine; ``answer`` is the status that it answers with."""

    url: str = ""
    answer: int = 200
    location: str = ""
    hang: threading.Event | None = None
    """Where there is one: no answer before it is set."""
    got: list[Got] = field(default_factory=list)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A server until the end of the block."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            found.got.append(Got(self.path, dict(self.headers), self.rfile.read(length)))
            if found.hang is not None:
                found.hang.wait(20)
            self.send_response(found.answer)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            found.got.append(Got(self.path, dict(self.headers), b"GET"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nothing: tests print what they mean to."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        if found.hang is not None:
            found.hang.set()
        server.shutdown()
        server.server_close()
        thread.join()
