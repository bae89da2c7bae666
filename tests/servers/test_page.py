"""The page in a real browser, served and as files: every page opens, and HTML in names is text."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.cli import sample
from tests.page.history import EVIL, history

from infold.page.documents import Documents
from infold.page.export import export
from infold.page.project_documents import plain
from infold.page.server import PageRuns, PageServer
from infold.render.session_history import session_history_shape

pytestmark = pytest.mark.servers


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the block; without one this fails, and no test is left out."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert path, "Chromium is needed: apt-get install chromium"
    # Its sandbox refuses to run as root; the pages are the tests' own.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


Made = Callable[[str], Mapping[str, Any] | None]
"""What makes the documents of the page, by their names."""

ADDRESSES = ["served", "files"]
PAGES = {
    "project": "shop",
    "model/clicks": "clicks",
    "model/daily": "daily",
    "model/names": "names",
    "runs": "Runs",
    "run/run-2": "Run of ",
    "lateness": "Lateness of clicks",
    "lateness/clicks": "Lateness of clicks",
    "aside": "Rows set aside",
    "changes": "Environments",
}
"""Each page with how its title begins."""
WITH_HTML = ("model/clicks", "run/run-2", "lateness")
"""Pages that show a name with HTML in it."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all of them."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    """A project of two runs, with HTML in the names of a column and of a file."""
    return Documents(history(tmp_path_factory.mktemp("page") / "shop"))


@pytest.fixture(scope="module")
def address(
    request: pytest.FixtureRequest, documents: Documents, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The page as `infold ui` serves it, or as `infold ui --export` writes it."""
    if getattr(request, "param", "") == "files":
        folder = tmp_path_factory.mktemp("site") / "site"
        export(documents, folder)
        yield (folder / "index.html").as_uri()
        return
    with serving(documents) as url:
        yield url


@contextmanager
def serving(documents: Made, **how: Any) -> Iterator[str]:
    """The address of the page, served for the block."""
    with PageServer(documents, **how) as server:
        Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()
        yield server.url
        server.shutdown()


@dataclass
class Opened:
    """A page with what went wrong in it, and what it asked for elsewhere."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)

    def open(self, name: str) -> Page:
        """Go to one of the pages, by a fresh load; it is there once its scripts say so."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#/{'' if name == 'project' else name}")
        self.page.wait_for_selector(f'body[data-shown="{name}"]', timeout=8_000)
        return self.page


@contextmanager
def window(browser: Browser, address: str) -> Iterator[Opened]:
    """A narrow window for the block, in which nothing may go wrong."""
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    found = Opened(page, address)
    page.on("console", lambda said: found.wrong.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: found.wrong.append(str(error)))
    page.on("request", lambda asked: _note_elsewhere(found, asked.url))
    yield found
    context.close()
    assert found.wrong == []


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    """The page in a window."""
    with window(browser, address) as found:
        yield found


def _note_elsewhere(found: Opened, url: str) -> None:
    own = found.address.rpartition("/")[0]
    if not url.startswith((own, "about:")):
        found.wrong.append(f"asked for {url}")


@pytest.mark.parametrize("address", ADDRESSES, indirect=True)
def test_every_page_opens(opened: Opened) -> None:
    """
    A page has its title, no error, no request elsewhere, and fits into 360 pixels.

    A column, a file and a reason with HTML are shown as they are, and make no element. No run is
    offered, as none may be started.
    """
    for name, title in PAGES.items():
        page = opened.open(name)
        assert page.inner_text("h1").startswith(title)
        assert page.locator("main section").count() > 0
        assert page.get_by_text("This cannot be shown").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("img").count() == 0
        assert name not in WITH_HTML or EVIL in page.inner_text("main")
        if name == "project":
            page.wait_for_load_state("networkidle")
            assert page.get_by_role("button", name="Run").count() == 0


def test_a_model_says_what_changed_its_rows(opened: Opened) -> None:
    """
    The newest change comes first: how many rows, why, by which file, in which cells.

    Picking a cell shows its rows before and after; a date does the same by keyboard. Whoever cannot
    see a picture opens the same as a table.
    """
    page = opened.open("model/clicks")
    first = page.locator('section[aria-label="Why its rows changed"] tbody tr').first.inner_text()
    assert "+7" in first
    assert f"landing/{EVIL}.json" in first
    assert "2024-03-02: 10 → 13" in first

    calendar = page.locator('section[aria-label="Coverage calendar"]')
    page.locator("svg .cell.h4, svg .cell.h3").first.click()
    page.get_by_label("Look up a day").fill("2024-03-02")
    page.get_by_label("Look up a day").dispatch_event("change")
    assert calendar.locator("circle.late").count() == 1
    assert "10 → 13 rows (3 added, 0 removed)" in calendar.inner_text()

    calendar.get_by_text("Show as a table").click()
    rows = calendar.locator("figure tbody tr")
    rows.first.wait_for()  # it is made as it is opened
    assert rows.count() == 6


@pytest.mark.parametrize("address", ADDRESSES, indirect=True)
def test_search_goes_to_what_is_found(opened: Opened) -> None:
    """Ctrl-K, a part of a name and Enter open its page; HTML in a hit is text."""
    page = opened.open("project")
    page.keyboard.press("Control+k")
    page.keyboard.type("onerror")
    assert EVIL in page.inner_text("#hits")
    page.get_by_role("searchbox").fill("dail")
    page.keyboard.press("Enter")
    page.wait_for_selector('body[data-shown="model/daily"]')

    assert page.inner_text("h1").startswith("daily")
    assert not page.locator("dialog").is_visible()


def test_a_session_is_drawn(browser: Browser, documents: Documents) -> None:
    """Its events by arrival and what runs did to it are there, each in words and on a line."""
    shape = plain(session_history_shape(sample.histories()))

    def made(name: str) -> Mapping[str, Any] | None:
        return shape if name == f"session/{EVIL}/" else documents(name)

    with serving(made) as url, window(browser, url) as opened:
        opened.page.goto(f"{url}#/session/{quote(f'{EVIL}/', safe='')}")
        opened.page.wait_for_selector("h1")
        text = opened.page.inner_text("main")
        drawn = opened.page.locator("svg rect").count()

    session = shape["sessions"][0]
    assert session["session_id"] in text
    assert all(run["verb"] in text for run in session["runs"])
    assert drawn >= len(session["arrivals"])


@pytest.mark.parametrize("address", ADDRESSES, indirect=True)
def test_a_page_that_is_none_says_so(opened: Opened) -> None:
    """An address of nothing has a message, whatever is in it."""
    page = opened.open("model/nothing")
    assert "no model/nothing" in page.inner_text("main")
    page = opened.open("toString")
    assert "There is no such page." in page.inner_text("main")
    opened.wrong = [one for one in opened.wrong if "404" not in one]  # the browser notes it


def test_it_has_landmarks_and_a_way_past_the_head(opened: Opened) -> None:
    """
    A screen reader finds the navigation, the main part, and names of all sections.

    The graph has a link to each model, and so has the table below it, with its state.
    """
    page = opened.open("model/clicks")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "main"
    assert page.get_by_role("navigation", name="Pages").count() == 1
    sections = page.locator("main section").count()
    assert page.get_by_role("region").count() == sections

    page = opened.open("project")
    links = page.locator("svg a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    table = page.locator('section[aria-label="Models"] table').inner_text()
    assert sorted(links) == ["#/model/clicks", "#/model/daily", "#/model/names"]
    assert table.count("up to date") == 2


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """`infold ui` prints the address first; Ctrl-C ends it, and then nobody answers there."""
    words = [sys.executable, "-m", "infold", "-C", str(history(tmp_path / "shop")), "ui"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with urlopen(f"{url}data/project", timeout=20) as answer:
            found = json.load(answer)
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)

    assert (found["project"], code) == ("shop", 130)
    with pytest.raises(URLError):
        urlopen(url, timeout=5)


def test_a_run_is_started_and_seen(browser: Browser, documents: Documents) -> None:
    """Its output is there while it goes on, and at its end the page is drawn anew."""
    code = "import sys, time; print('began', *sys.argv[1:], flush=True); time.sleep(2); sys.exit(1)"
    runs = PageRuns([sys.executable, "-c", code])
    with serving(documents, runs=runs) as url, window(browser, url) as opened:
        page = opened.open("model/daily")
        page.get_by_role("button", name="Run this model and what it reads").click()
        page.get_by_text("began --select=+daily").wait_for(timeout=8_000)
        assert page.get_by_role("button", name="Running…").is_disabled()
        page.get_by_text("exit code 1").wait_for(timeout=8_000)
        assert page.get_by_role("button", name="Run this model").is_enabled()
        page.goto(f"{url}#/")
        page.get_by_role("button", name="Run now").wait_for(timeout=8_000)
        assert "The run of daily with all it reads" in page.inner_text("main")
