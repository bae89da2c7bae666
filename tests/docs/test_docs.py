"""The pages hold together: links lead somewhere, and what they show of make exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.docs.pages import PAGES, ROOT

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"(?:^ {4}(?:\$ )?|`)make ([a-z][a-z-]*)", re.MULTILINE)


def name(page: Path) -> str:
    """A page's path as the failing test shows it."""
    return str(page.relative_to(ROOT))


@cache
def anchors(page: Path) -> set[str]:
    """What a page's headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def test_links_inside_the_project_are_valid() -> None:
    """Every relative link names an existing file and an existing heading in it."""
    assert [f"{name(page)}: {link}" for page in PAGES for link in broken_links(page)] == []


def broken_links(page: Path) -> list[str]:
    """The relative links of a page without a file, or without a heading in it."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(link)
    return broken


def test_the_readme_is_short() -> None:
    """The README has fewer than 120 lines of at most 100 characters, code left out."""
    lines = (ROOT / "README.md").read_text().splitlines()

    assert len(lines) < 120


def test_make_targets_shown_exist() -> None:
    """Every `make …` that a page shows is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    unknown = {name(page): set(TARGET.findall(page.read_text())) - targets for page in PAGES}

    assert {page: found for page, found in unknown.items() if found} == {}


def test_decisions_have_the_form_of_the_template() -> None:
    """Each decision has its number, context, decision and consequences, and is in the list."""
    folder = ROOT / "docs/decisions"
    listed = (folder / "README.md").read_text()
    missing = []
    for page in sorted(folder.glob("[0-9]*.md")):
        text = page.read_text()
        if not text.startswith(f"# {page.name[:4]} "):
            missing.append(f"{page.name}: its number in the title")
        missing += [
            f"{page.name}: {part}"
            for part in ("## Context", "## Decision", "## Consequences")
            if part not in text
        ]
        if page.name not in listed:
            missing.append(f"{page.name}: its line in README.md")

    assert missing == []


def test_the_glossary_is_alphabetical() -> None:
    """The glossary is in alphabetical order, and no word occurs twice."""
    words = re.findall(
        r"^\| \*\*([^*]+)\*\*", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )

    assert words == sorted(set(words), key=str.lower)
