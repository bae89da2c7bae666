"""A server of HTTP on this machine, which answers what a function says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def answering(answer: Callable[[str, str, bytes], tuple[int, bytes]]) -> Iterator[str]:
    """The URL of one for the block; the function has a method, a path and what was sent."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, found = answer(self.command, self.path, content)
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        do_POST = do_DELETE = do_GET  # noqa: N815 (its names)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
