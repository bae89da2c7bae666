"""The pages hold together: links lead somewhere, and commands that they show exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infold.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "bench").glob("*.md")),
]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```[^\n]*\n.*?^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^(?: {4})?\$ | {4}|&& |`|^<sh>)infold ([a-z]+)", re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"(?:^ {4}(?:\$ )?|`)make ([a-z][a-z-]*)", re.MULTILINE)


def name(page: Path) -> str:
    """A page's path as the failing test shows it."""
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What a page's headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_project_are_valid(page: Path) -> None:
    """Every relative link names an existing file and an existing heading in it."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(link)

    assert broken == []


def test_the_readme_is_short() -> None:
    """The README has fewer than 120 lines of at most 100 characters, code left out."""
    lines = (ROOT / "README.md").read_text().splitlines()

    assert len(lines) < 120


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_shown_exist(page: Path) -> None:
    """Every `infold …` that a page shows is a command of the program."""
    text = page.read_text()
    for block in SHELL.findall(text):
        text += re.sub(r"^", "<sh>", block, flags=re.MULTILINE)

    assert set(COMMAND.findall(text)) - set(COMMANDS) == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_shown_exist(page: Path) -> None:
    """Every `make …` that a page shows is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))

    assert set(TARGET.findall(page.read_text())) - targets == set()


@pytest.mark.parametrize("decision", sorted((ROOT / "docs/decisions").glob("[0-9]*.md")), ids=name)
def test_decisions_have_the_form_of_the_template(decision: Path) -> None:
    """Each decision has context, decision and consequences, and is in the list."""
    text = decision.read_text()

    assert text.startswith(f"# {decision.name[:4]} ")
    for heading in ("## Context", "## Decision", "## Consequences"):
        assert heading in text
    assert decision.name in (decision.parent / "README.md").read_text()


def test_the_glossary_is_alphabetical() -> None:
    """The glossary is in alphabetical order, and no word occurs twice."""
    words = re.findall(
        r"^\| \*\*([^*]+)\*\*", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )

    assert words == sorted(set(words), key=str.lower)
