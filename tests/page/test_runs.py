"""Runs from the page: who may start one, of what, one at a time, and how it ends."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.cli.warm_engine.engines import await_that
from tests.page.history import history

from infold.page.documents import Documents
from infold.page.runs import PageRuns, run_command
from infold.page.server import PageServer

SLOW = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGINT, lambda *_: (print('stopped'), sys.exit(130)))\n"
    "print('began', *sys.argv[1:], flush=True)\n"
    "time.sleep(60)"
)
"""A run that takes long, ends by Ctrl-C, and says of what it is."""


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
    """A second one is refused while the first goes on; it stops as by Ctrl-C."""
    assert slow.document()["exit_code"] is None
    assert slow.start(["daily", "a b"])
    assert not slow.start([])
    began = until(slow, "lines", ["began --select=+daily --select=+a b"])
    assert (began["running"], began["models"]) == (True, ["daily", "a b"])

    slow.end()

    ended = slow.document()
    assert (ended["running"], ended["exit_code"]) == (False, 130)
    assert ended["lines"][-1] == "stopped"
    assert slow.start([])
    assert slow.document()["models"] == []


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

    def __init__(self, root: Path, runs: PageRuns | None) -> None:
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


def test_a_page_that_only_looks_starts_none(tmp_path: Path) -> None:
    """Without `--allow-runs` the request is not even known."""
    looks = Asked(history(tmp_path / "shop"), None)
    try:
        assert looks.post(ALL) == 501
    finally:
        looks.server.shutdown()
        looks.server.server_close()
