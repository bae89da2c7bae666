"""Debian's Chromium for tests, which `make test-servers` installs; another one by CHROMIUM=PATH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


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
