"""
Hands out the page on this machine alone, to who has its address.

The address has a random token, which no other page can guess. Nothing is answered that does not
have it, nor what comes by another host name (a name of somebody else's may point to this machine)
or from another site; only a link to the first page, which has no data, may be anywhere. Only GET
and HEAD are answered, so nothing can be asked for but to look, unless the page may start runs: then
a POST from the page itself starts one (``PageRuns``). What a browser may do with the answers is in
their headers: run the scripts of this page, and talk to nobody else.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hmac import compare_digest
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

from infold.messages import command_errors
from infold.page.export import INDEX, assets, type_of
from infold.page.project_documents import JsonObject

LOOPBACK = "127.0.0.1"
"""Where it listens: nobody else's machine reaches it."""

DATA = "data/"
RUN = "run"
"""Where a run is asked for, below the token; and how the last one goes, below the data."""
LONGEST = 1 << 20
"""How many bytes a request for a run may have."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Documents = Callable[[str], "Mapping[str, Any] | None"]
"""The documents by their names; None for what is none."""


class PageServer(ThreadingHTTPServer):
    """The page of some documents, at ``url``."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"
    """There it lets a port that has just been left be taken; elsewhere, one that is in use."""

    def __init__(self, documents: Documents, port: int = 0, runs: PageRuns | None = None) -> None:
        """
        Raises ``command_errors.port_unavailable``; port 0 is one that is free.

        Without ``runs`` the page only looks.
        """
        self.documents, self.runs = documents, runs
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            why = error.strerror or str(error)
            raise command_errors.port_unavailable(port=port, why=why) from error
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))

    @property
    def url(self) -> str:
        """The address, with the token."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no error."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: PageServer
    server_version = "infold"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """An asset or a document."""
        status = self._refused()
        if status is not None:
            self._answer(status)
            return
        path = self._path()
        if path.startswith(DATA):
            self._answer_json(self._document(unquote(path.removeprefix(DATA))))
            return
        name = path or INDEX
        if name in assets():
            self._answer(HTTPStatus.OK, assets()[name], type_of(name))
        else:
            self._answer(HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        """The same without its body."""
        self.do_GET()

    def do_POST(self) -> None:
        """Starts a run, if that is allowed and none goes on."""
        runs = self.server.runs
        if runs is None:
            self.send_error(HTTPStatus.NOT_IMPLEMENTED)
            return
        # A browser says where a POST comes from, so one that says nothing is none of the page's.
        status = self._refused() or (None if self.headers.get("Origin") else HTTPStatus.FORBIDDEN)
        if status is None and self._path() != RUN:
            status = HTTPStatus.NOT_FOUND
        models = None if status is not None else self._asked_models()
        if status is not None or models is None:
            self._answer(status or HTTPStatus.BAD_REQUEST)
        elif runs.start(models):
            self._answer_json(runs.document())
        else:
            self._answer(HTTPStatus.CONFLICT)

    def _path(self) -> str:
        return urlsplit(self.path).path.removeprefix(f"/{self.server.token}/")

    def _document(self, name: str) -> Mapping[str, Any] | None:
        if name == RUN:
            runs = self.server.runs
            return {"allowed": False} if runs is None else runs.document()
        return self.server.documents(name)

    def _asked_models(self) -> Sequence[str] | None:
        """The models in the body of a request; None if it is no such request."""
        if self.headers.get("Content-Type") != "application/json":
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            return None
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return None
        project = self.server.documents("project") or {}
        return asked_models(body, [one["model"] for one in project.get("models", ())])

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no request, or asks for anything but to look, gets its status and no more."""
        del message, explain
        if not hasattr(self, "headers"):
            self.command, self.request_version = "GET", self.protocol_version
        self._answer(HTTPStatus(code))

    def _refused(self) -> HTTPStatus | None:
        """Why a request gets nothing: a foreign host or site, or no token."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return HTTPStatus.MISDIRECTED_REQUEST
        origins = self.headers.get_all("Origin", [])
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return HTTPStatus.FORBIDDEN
        from_elsewhere = self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        if from_elsewhere and not self._opens_the_page():
            return HTTPStatus.FORBIDDEN
        token = self.path.removeprefix("/").partition("/")
        if not token[1] or not compare_digest(token[0].encode(), self.server.token.encode()):
            return HTTPStatus.FORBIDDEN
        return None

    def _opens_the_page(self) -> bool:
        """
        Whether somebody follows a link to the first page, which has no data.

        The file of ``--open`` is such a link, and a browser calls it another site.
        """
        asked = [self.headers.get(f"Sec-Fetch-{name}", "") for name in ("Mode", "Dest")]
        return asked == ["navigate", "document"] and self.path == f"/{self.server.token}/"

    def _answer_json(self, found: Mapping[str, Any] | None) -> None:
        if found is None:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        body = json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=str)
        self._answer(HTTPStatus.OK, body.encode(), "application/json")

    def _answer(self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain") -> None:
        body = body or f"{status.value} {status.phrase}\n".encode()
        if status is not HTTPStatus.OK:
            self.close_connection = True  # a body that was sent is not read
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name it has there)
        """Nothing is printed: the address would be, with its token."""


# Other users of the machine see the words that programs were started with. So what a browser is
# started with is the name of a file, which only this user can read, and not the address itself.

_TEXT = """\
<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={url}">
<title>infold</title>
<p><a href="{url}">The page of infold</a></p>
"""


@contextmanager
def file_that_leads_to(url: str) -> Iterator[Path]:
    """A file of this user alone that opens ``url``; it is gone at the end."""
    with TemporaryDirectory(prefix="infold-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "page.html"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_TEXT.format(url=escape(url, quote=True)))
        yield path


# A run from the page is ``infold run`` in a process of its own. So it is what somebody would have
# typed, with the same lease, checks and messages, and an end of the page leaves no half of it.

LINES = 400
"""How many of the last lines that a run printed are kept."""


class PageRuns:
    """The runs of one page: ``start`` begins one, and ``document`` says how the last one goes."""

    def __init__(self, command: Sequence[str]) -> None:
        """``command`` is that of a run (:func:`run_command`); which models, is added to it."""
        self._command = tuple(command)
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._reader: Thread | None = None
        self._lines: deque[str] = deque(maxlen=LINES)
        self._models: Sequence[str] = ()

    def start(self, models: Sequence[str]) -> bool:
        """Run models, and what they read; all for none. False while an earlier run goes on."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return False
            self._lines, self._models = deque(maxlen=LINES), tuple(models)
            self._process = subprocess.Popen(
                [*self._command, *(f"--select=+{model}" for model in models)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
                # Ctrl-C is for the page, which then stops its run itself.
                start_new_session=True,
            )
            self._reader = Thread(target=self._read, args=(self._process, self._lines), daemon=True)
            self._reader.start()
            return True

    def document(self) -> JsonObject:
        """Whether a run goes on, of which models, what it printed, and its exit code."""
        with self._lock:
            process = self._process
            code = process.poll() if process is not None else None
            if self._reader is not None and code is not None:
                self._reader.join(1)  # its last lines are on their way
            return {
                "allowed": True,
                "running": process is not None and code is None,
                "models": list(self._models),
                "lines": list(self._lines),
                "exit_code": code,
            }

    def end(self) -> None:
        """
        Stop a run that goes on: what is committed stays. Waits for it.

        By SIGTERM: a script's background job, and what that starts, ignore SIGINT from the start.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()
                self._process.wait()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: deque[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))


def run_command(root: Path, target: str | None) -> Sequence[str]:
    """``infold run`` of a project and target, by the Python that serves the page."""
    of = [] if target is None else [f"--target={target}"]
    return [sys.executable, "-m", "infold", f"--project={root.absolute()}", *of, "run"]


def asked_models(body: object, known: Collection[str]) -> Sequence[str] | None:
    """The models that a request asks to run; None if it is none, or names another model."""
    if not isinstance(body, dict) or body.keys() != {"models"}:
        return None
    models = body["models"]
    if not isinstance(models, list) or not all(isinstance(one, str) for one in models):
        return None
    return models if set(models) <= set(known) else None
