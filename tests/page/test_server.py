"""The page is served, starts runs, and is written as files."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from tests.cli.warm_engine.engines import await_that
from tests.page.history import EVIL, history

from infold.cli import cli
from infold.messages.errors import InfoldError
from infold.page.documents import Documents
from infold.page.export import MARK, assets, export
from infold.page.server import PageRuns, PageServer, file_that_leads_to, run_command

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
    """Nothing can be asked for but to look, and no run is started without `--allow-runs`; HEAD is
    answered as GET, without the body.
    """
    status, body, _ = ask(server, "/~/data/project", method=method)
    assert ask(server, "/~/run", method=method)[0] == 501
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


SLOW = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: (print('stopped'), sys.exit(143)))\n"
    "print('began', *sys.argv[1:], flush=True)\n"
    "time.sleep(60)"
)
"""A run that takes long, ends by SIGTERM, and says of what it is."""


@pytest.fixture
def slow() -> Iterator[PageRuns]:
    """Runs that go on until they are stopped."""
    runs = PageRuns([sys.executable, "-c", SLOW])
    yield runs
    runs.end()


def until(runs: PageRuns, key: str, value: object) -> Mapping[str, Any]:
    """The document once it says this."""
    await_that(lambda: runs.document()[key] == value)
    return runs.document()


def test_one_run_at_a_time(slow: PageRuns) -> None:
    """A second one is refused while the first goes on; one that has just begun is stopped too."""
    assert slow.document()["exit_code"] is None
    assert slow.start(["daily", "a b"])
    assert not slow.start([])
    began = until(slow, "lines", ["began --select=+daily --select=+a b"])
    assert (began["running"], began["models"]) == (True, ["daily", "a b"])

    slow.end()

    ended = slow.document()
    assert (ended["running"], ended["exit_code"]) == (False, 143)
    assert ended["lines"][-1] == "stopped"
    assert slow.start([])
    assert slow.document()["models"] == []


@pytest.mark.deep
def test_a_run_is_the_command(tmp_path: Path) -> None:
    """It is `infold run` of the page's project and target, with that command's errors."""
    root = history(tmp_path / "a shop")
    runs = PageRuns(run_command(root, "nowhere"))
    assert runs.start([])

    ended = until(runs, "running", False)

    assert ended["exit_code"] == 2
    assert "no target 'nowhere'" in "\n".join(ended["lines"])


class Asked:
    """A page that may start runs, and who asks it."""

    def __init__(self, root: Path, runs: PageRuns) -> None:
        self.server = PageServer(Documents(root), runs=runs)
        Thread(target=lambda: self.server.serve_forever(0.01), daemon=True).start()
        self.own = {
            "Origin": f"http://127.0.0.1:{self.server.server_port}",
            "Content-Type": "application/json",
        }

    def post(self, body: str, path: str = "/~/run", **headers: str) -> int:
        """The status of an answer; an empty header is left out."""
        given = {**self.own, **{name.replace("_", "-"): text for name, text in headers.items()}}
        sent = {name: text for name, text in given.items() if text}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        connection.request("POST", path.replace("~", self.server.token), body, sent)
        return connection.getresponse().status


@pytest.fixture
def asked(tmp_path: Path, slow: PageRuns) -> Iterator[Asked]:
    """A page whose runs go on until they are stopped."""
    found = Asked(history(tmp_path / "shop"), slow)
    yield found
    found.server.shutdown()
    found.server.server_close()


ALL = json.dumps({"models": []})


def test_the_page_starts_a_run(asked: Asked, slow: PageRuns) -> None:
    """Of models by name or of all, with the token and at one place, one after the other."""
    assert asked.post(ALL, "/run") == 403
    assert asked.post(ALL, "/~/data/run") == 404
    assert not slow.document()["running"]
    assert asked.post('{"models": ["daily"]}') == 200
    assert until(slow, "lines", ["began --select=+daily"])["running"]
    assert asked.post(ALL) == 409


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content_Type": "text/plain"}, 400),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 400),
    ],
)
def test_no_other_page_starts_a_run(
    asked: Asked, slow: PageRuns, headers: dict[str, str], status: int
) -> None:
    """Not even with the token: a run is asked for by the page itself, in JSON."""
    assert asked.post(ALL, **headers) == status
    assert slow.document()["models"] == []
    assert not slow.document()["running"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"models": "daily"}',
        '{"models": [1]}',
        '{"models": ["nothing"]}',
        '{"models": ["daily --full-refresh"]}',
        '{"models": [], "options": ["--allow-removals"]}',
        "[" * 100_000,
    ],
    ids=lambda body: body[:40],
)
def test_only_models_of_the_project_are_run(asked: Asked, slow: PageRuns, body: str) -> None:
    """No option and no other term comes from a request."""
    assert asked.post(body) == 400
    assert not slow.document()["running"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with two runs."""
    return history(tmp_path_factory.mktemp("page") / "shop")


def listed(folder: Path) -> dict[str, str]:
    """The files of the documents by their names."""
    text = (folder / "data" / "index.js").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text.removeprefix("infold.exported = ").rstrip(";\n"))
    return found


def test_every_document_is_a_file(root: Path, tmp_path: Path) -> None:
    """The same as the server's, as scripts, and a page that refers to nothing elsewhere."""
    documents, site = Documents(root), tmp_path / "site"
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--export", str(site)])
    files = listed(site)

    said = f"{len(files)} documents written. Open {site / 'index.html'}\n"
    assert (done.exit_code, done.output) == (0, said)
    assert {*files} == {*documents.names()}
    text = (site / files["model/clicks"]).read_text(encoding="utf-8")
    data = json.loads(text.removeprefix('infold.arrived("model/clicks", ').rstrip(");\n"))
    assert data == documents("model/clicks")
    first = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-form="files"' in first
    assert "Content-Security-Policy" in first
    for name in re.findall(r'(?:src|href)="([^"#]+)"', first):
        assert (site / name).is_file()
    assert EVIL not in first


def test_an_earlier_export_is_replaced(root: Path, tmp_path: Path) -> None:
    """A second export leaves nothing of the first, and all that a user put beside it."""
    site = tmp_path / "site"
    export(Documents(root), site)
    (site / "data" / "999.js").write_text("old", encoding="utf-8")
    (site / MARK).write_text(json.dumps({"files": [*noted(site), "data/999.js"]}))
    mine = [site / "notes.txt", site / "data" / "notes.txt"]
    for file in mine:
        file.write_text("mine", encoding="utf-8")

    export(Documents(root), site)

    assert [file.read_text(encoding="utf-8") for file in mine] == ["mine", "mine"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert files_in(site) == {*noted(site), MARK, "notes.txt", "data/notes.txt"}


def noted(site: Path) -> list[str]:
    """The files that the mark lists."""
    found: list[str] = json.loads((site / MARK).read_text(encoding="utf-8"))["files"]
    return found


def files_in(folder: Path) -> set[str]:
    """All that is in it."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


LOOKS_LIKE_ONE = {"index.html": "mine", "data/index.js": "mine", "thesis.txt": "mine"}


@pytest.mark.parametrize(
    "there",
    [
        {"thesis.txt": "mine"},
        LOOKS_LIKE_ONE,
        LOOKS_LIKE_ONE | {MARK: "mine"},
        LOOKS_LIKE_ONE | {MARK: '{"files": ["../thesis.txt"]}'},
        LOOKS_LIKE_ONE | {MARK: '{"files": ["index.html", 7]}'},
        {MARK: '{"files": ["index.html"]}', "data/index.js": "mine"},
        {MARK: '{"files": ["index.html"]}', "data": "mine"},
    ],
    ids=" ".join,
)
def test_other_folders_are_left_alone(root: Path, tmp_path: Path, there: Mapping[str, str]) -> None:
    """A folder that no export wrote, or with a file in its way, is refused, and stays as it is."""
    site = tmp_path / "site"
    for name, text in there.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")

    with pytest.raises(InfoldError) as found:
        export(Documents(root), site)

    assert found.value.slug == "folder-in-use"
    assert {name: (site / name).read_text(encoding="utf-8") for name in files_in(site)} == there


def test_a_file_is_no_folder(root: Path, tmp_path: Path) -> None:
    """A file of that name is refused, and stays."""
    (tmp_path / "site").write_text("mine", encoding="utf-8")

    with pytest.raises(InfoldError, match="it is not a folder"):
        export(Documents(root), tmp_path / "site")

    assert files_in(tmp_path) == {"site"}


def test_data_that_leads_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    """Where the folder of the documents was made a link, nothing is written through it."""
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    export(Documents(root), site)
    (site / "data").rename(elsewhere)
    (site / "data").symlink_to(elsewhere)
    before = {path: path.stat().st_ino for path in elsewhere.iterdir()}

    with pytest.raises(InfoldError, match="data in it is not of the earlier export"):
        export(Documents(root), site)

    assert {path: path.stat().st_ino for path in elsewhere.iterdir()} == before


def test_the_present_folder_and_a_link_take_an_export(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--export .` fills an empty folder; a link to one stays a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "real")
    export(Documents(root), tmp_path / "site")
    assert (tmp_path / "site").is_symlink()
    assert (tmp_path / "real" / "index.html").is_file()

    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    export(Documents(root), Path())
    assert files_in(tmp_path / "new") == {*noted(Path()), MARK}


@pytest.mark.parametrize("words", [(), ("--port", "8000"), ("--allow-runs",)])
def test_an_export_that_fails_leaves_nothing(
    root: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """A folder that was made for an export is gone when the project cannot be opened, and none is
    made where something else is asked for as well: files listen at no port and start nothing.
    """
    folder = root if words else root / "models"
    done = CliRunner().invoke(
        cli, ["-C", str(folder), "ui", "--export", str(tmp_path / "site"), *words]
    )

    assert done.exit_code == 2
    assert all(word in done.output for word in words[:1])
    assert list(tmp_path.iterdir()) == []


def test_documents_with_errors_are_named(tmp_path: Path) -> None:
    """What could not be made is said with its reason, and the command fails."""
    root, site = history(tmp_path / "shop"), tmp_path / "site"
    project = root / "infold.yml"
    text = project.read_text(encoding="utf-8").replace("landing/", "nowhere/")
    project.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli, ["-C", str(root), "ui", "--export", str(site)])

    assert (done.exit_code, done.output.splitlines()[1:]) == (
        1,
        [
            "1 document with an error in place of data:",
            "  explained/clicks: no-such-folder: the folder of source raw.clicks does not exist",
        ],
    )


def test_what_scripts_and_styles_may_not_have() -> None:
    """The scripts make text of what they get, and no file of the page names another host. A
    document may be an error, so no script takes parts of one before it has looked. The first page
    names every script and style that there is.
    """
    spoilt = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    )
    unseen = re.compile(r"\{[^{}]*\} = await infold\.load\(|infold\.load\([^)]*\)\.then\(\(\{")
    for name, content in assets().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")

        assert not spoilt.search(text), name
        assert not unseen.search(text), name
        assert not re.search(r"https?:|//[a-z]+\.", text), name
        assert "<script>" not in text
        assert not re.search(r'\son\w+="|style="', text), name

    first = assets()["index.html"].decode()
    assert {*re.findall(r'(?:src|href)="([\w.]+\.(?:js|css|svg))"', first)} == {
        name for name in assets() if name != "index.html"
    }
