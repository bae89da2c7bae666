"""Who gets the page: nobody without its address, and nobody who comes from elsewhere."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from tests.page.history import EVIL, history

from infold.cli import cli
from infold.messages.errors import InfoldError
from infold.page.server import PageServer, file_that_leads_to

SECRET: dict[str, dict[str, Any]] = {
    "project": {"name": EVIL, "models": [{"model": "a"}]},
    "model/a": {"model": "a"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """The page of two documents."""
    with PageServer(SECRET.get) as served:
        Thread(target=lambda: served.serve_forever(0.01), daemon=True).start()
        yield served
        served.shutdown()


def ask(
    server: PageServer, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, bytes, Mapping[str, str]]:
    """Status, body and headers of an answer; ``~`` is the token. No header is added but Host."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path.replace("~", server.token), skip_host=True)
    given = {"Host": f"127.0.0.1:{server.server_port}"} | dict(headers or {})
    for name, value in given.items():
        if value:
            connection.putheader(name, value.replace("PORT", str(server.server_port)))
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, {name.lower(): value for name, value in answer.getheaders()}


@pytest.mark.parametrize(
    ("path", "has"),
    [
        ("/~/", b"<!DOCTYPE html>"),
        ("/~/index.html", b"<!DOCTYPE html>"),
        ("/~/base.js", b'"use strict"'),
        ("/~/page.css?v=1", b":root"),
        ("/~/data/project", json.dumps(EVIL).encode()),
        ("/~/data/model/a", b'"model":"a"'),
        ("/~/data/model%2Fa", b'"model":"a"'),
    ],
)
def test_who_has_the_address_gets_the_page(server: PageServer, path: str, has: bytes) -> None:
    """Assets and documents are answered, each with a policy that allows the page's own scripts."""
    status, body, headers = ask(server, path)

    assert (status, has in body) == (200, True)
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:PORT"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Host": "localhost:PORT", "Origin": "http://127.0.0.1:PORT"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_who_comes_from_elsewhere_gets_nothing(
    server: PageServer, headers: Mapping[str, str]
) -> None:
    """A foreign host name or site gets no byte of a document, although it has the token."""
    status, body, _ = ask(server, "/~/data/project", headers)

    assert status in (400, 403, 421)
    assert EVIL.encode() not in body


NOTHING = [
    *("/", "/index.html", "/data/project", "/~", "/~x/data/project", "/X/data/project"),
    *("//data/project", "/?/~/data/project", "/%C3%A9/"),
]
"""Without the whole token nothing is answered, not even whether a thing exists."""
UNKNOWN = [
    *("/~/../server.py", "/~/..%2fserver.py", "/~/%2e%2e/server.py", "/~//etc/passwd"),
    *("/~/assets/base.js", "/~/base.js/", "/~/data/../base.js", "/~/data/", "/~/nothing.js"),
    *("/~/data/..%2f..%2f..%2fetc%2fpasswd", "/~/__init__.py"),
]
"""Only names of assets and documents are known; nothing is made a path of."""


@pytest.mark.parametrize("path", [*NOTHING, *UNKNOWN])
def test_paths_do_not_leave_the_page(server: PageServer, path: str) -> None:
    """Without the token nothing is answered, and with it only what belongs to the page."""
    forbidden, missing = (403, b"403 Forbidden\n"), (404, b"404 Not Found\n")
    assert ask(server, path)[:2] == (forbidden if path in NOTHING else missing)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "RUN"])
def test_it_only_answers_looks(server: PageServer, method: str) -> None:
    """Nothing can be asked for but to look; HEAD is answered as GET, without the body."""
    status, body, _ = ask(server, "/~/data/project", method=method)
    head, none, headers = ask(server, "/~/data/project", method="HEAD")

    assert (status, EVIL.encode() in body) == (501, False)
    assert (head, none, int(headers["content-length"]) > 0) == (200, b"", True)


def test_what_is_no_request_gets_an_answer(server: PageServer) -> None:
    """Bytes that are no request end in an answer without a traceback, and the server goes on."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as raw:
        raw.sendall(b"\x16\x03\x01 no request\r\n\r\n")
        answer = raw.recv(1000)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert ask(server, "/~/")[0] == 200


def test_where_it_listens(server: PageServer) -> None:
    """At this machine alone, each with its own token; a port in use is a message."""
    assert server.server_address[0] == "127.0.0.1"
    with PageServer(SECRET.get) as other:
        assert len(other.token) >= 32
        assert other.token != server.token
    with pytest.raises(InfoldError) as found:
        PageServer(SECRET.get, server.server_port)
    assert found.value.slug == "port-unavailable"


def test_a_port_can_be_taken_again_at_once() -> None:
    """The port of a page that has ended is free, although its connections are just closed."""
    with PageServer(SECRET.get) as first:
        Thread(target=lambda: first.serve_forever(0.01), daemon=True).start()
        assert ask(first, "/")[0] == 403  # the server closes the connection
        first.shutdown()

    with PageServer(SECRET.get, first.server_port) as again:
        assert again.server_port == first.server_port


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def test_a_link_with_the_address_opens_the_first_page(server: PageServer) -> None:
    """Who follows a link from elsewhere gets the first page, without data, and nothing else."""
    assert ask(server, "/~/", LINK)[0] == 200
    assert ask(server, "/~/", LINK | {"Sec-Fetch-Dest": "iframe"})[0] == 403
    assert ask(server, "/~/data/project", LINK)[0] == 403
    assert ask(server, "/x/", LINK)[0] == 403


def test_a_browser_is_started_with_a_private_file() -> None:
    """The file has the address, is for this user alone in a folder alike, and is gone after it."""
    url = "http://127.0.0.1:1/a-b_c/"
    with file_that_leads_to(url) as path:
        assert f'content="0; url={url}"' in path.read_text(encoding="utf-8")
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700

    assert not path.parent.exists()


def test_no_command_line_has_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--open` hands a browser the name of a file; the address with its token is in the file."""
    opened = []

    def look(url: str) -> None:
        assert urlsplit(url).scheme == "file"
        opened.append((url, Path(urlsplit(url).path).read_text(encoding="utf-8")))

    monkeypatch.setattr("webbrowser.open", look)
    monkeypatch.setattr(PageServer, "serve_forever", lambda *_, **__: None)
    root = history(tmp_path / "shop")
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--open"])

    ((url, text),) = opened
    address = done.output.splitlines()[0].removeprefix("The page is at ")
    assert f"url={address}" in text
    assert address.split("/")[3] not in url
