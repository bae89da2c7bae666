"""The site has every page, in ``mkdocs.yml`` and in ``docs/index.md``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BESIDE = {"measurements.md": "../bench/RESULTS.md", "changelog.md": "../CHANGELOG.md"}
"""Pages that docs/site.py adds, and how pages link to them."""

LOADED = re.compile(
    r'(?:<script[^>]* src|<img[^>]* src|<link rel="(?:stylesheet|preconnect)" href)="([^"]+)"'
)
"""What a browser fetches for a page."""


class _Loader(yaml.SafeLoader):
    """Reads the tags that name Python objects as their text."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, name, _node: name)


def pages_of(nav: Any) -> list[str]:
    """The paths in a nav, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in pages_of(part)]


def listed() -> list[str]:
    """The pages that ``mkdocs.yml`` lists."""
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    return pages_of(config["nav"])


def written() -> list[str]:
    """The pages in docs/; of the decisions, their list."""
    found = (str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    return [page for page in found if not re.match(r"decisions/\d", page)]


def test_the_nav_lists_every_page_once() -> None:
    """The nav lists every page exactly once, so that an added or removed page fails here."""
    assert sorted(listed()) == sorted([*written(), *BESIDE])


def test_the_index_links_to_every_page() -> None:
    """The index links to every page but itself."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(([^)#]+)", text))

    expected = {BESIDE.get(page, page) for page in listed()} - {"index.md"}

    assert expected - links == set()


def test_no_page_names_a_folder_of_a_machine() -> None:
    """No page names a folder of the machine it was written on."""
    for page in DOCS.rglob("*.md"):
        assert not re.search(r"(?<![\w.])/(work|root|home)/", page.read_text()), page


@pytest.mark.deep
def test_the_site_can_be_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Every page, picture and script is in the site, so it needs neither host nor network."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        loaded = LOADED.findall(page.read_text(encoding="utf-8"))
        assert [link for link in loaded if "://" in link] == []
        if page.name != "404.html":
            missing = [
                link
                for link in loaded
                if not (page.parent / link.partition("?")[0]).resolve().exists()
            ]
            assert missing == []
