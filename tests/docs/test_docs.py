"""The pages hold together: links, lists, plain words, the site; what they name exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.pages import DOCS, PAGES, ROOT
from tests.docs.test_hints import SOURCES, texts

from infold.core.plan import Action
from infold.core.report import State
from infold.core.trace import Cause
from infold.inspecting.session_history import Verb
from infold.messages.errors import ExitCode
from infold.system.signals import SIGNALS

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


def test_pages_say_the_same_times() -> None:
    """What a first run and a click take: the README and the FAQ say what the table of times has."""
    times = (DOCS / "operations.md").read_text()
    table = [
        re.search(rf"^\| {row}.* \| (\d+ s) \|$", times, re.MULTILINE)
        for row in ("a project's first run", "a run for one click")
    ]
    first, click = (found[1] for found in table if found)

    readme = (ROOT / "README.md").read_text()
    assert f"a project's first one {first}, one for a click {click}." in readme
    faq = " ".join((DOCS / "faq.md").read_text().split())
    assert f"takes {first} in a fresh process, and {click} where" in faq


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


JSON = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
COMMANDS = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "glossary.md").read_text(encoding="utf-8")


def words(text: str, begin: str, end: str) -> set[str]:
    """The words in backticks between two texts."""
    part = text.partition(begin)[2].partition(end)[0]
    return set(re.findall(r"`([a-z ]+)`", part))


def test_the_reference_lists_every_word() -> None:
    """The reference lists every word that ``plan --json`` and ``explain session --json`` show."""
    assert words(JSON, "\nA `cause` is ", ".\n") == set(Cause)
    assert words(JSON, "| What is built, and how:", "|") == set(Action)
    assert words(JSON, "\n`verb` is ", ".\n\n") == set(Verb)


def test_the_reference_explains_every_state_and_exit_code() -> None:
    """Each state of `infold status`; success, each code of an error, and of each signal."""
    states = COMMANDS.partition("\n| state | meaning |\n")[2].partition("\n\n")[0]
    ends = COMMANDS.partition("\n| exit code | meaning |\n")[2].partition("\n\n")[0]
    codes = re.findall(r"^\| ([\d, ]+) \|", ends, re.MULTILINE)

    assert re.findall(r"^\| ([a-z ]+) \|", states, re.MULTILINE) == list(State)
    ended = {128 + number for number in SIGNALS}
    assert {int(code) for text in codes for code in text.split(", ")} == {0, *ExitCode, *ended}


def test_the_glossary_lists_every_reason() -> None:
    """The glossary lists every reason, in the order of the code."""
    (line,) = re.findall(r"^\| \*\*reason\*\* \| .*?: (.*?)\.", GLOSSARY, re.MULTILINE)

    assert line.split(", ") == list(Cause)


TEXTS = [
    *PAGES,
    ROOT / "tests" / "messages" / "every_message.txt",
    *sorted((ROOT / "tests" / "cli" / "screens").glob("*.txt")),
]

UNPLAIN = re.compile(
    r"\b(?:by which\b|of which\b|whatever becomes of\b|stands\b|is told\b"
    r"|holds\b(?! the lock| this target's lease)"
    r"|is said\b|anew\b|dear\b|puts right\b|looks after\b|inside of\b"
    r"|needless\b(?!-)|without a word\b"
    r"|of before\b|goes before\b|it is meant\b|takes in further\b)"
    r"|^#+ .*\b[Ff]urther\b"
)
"""What a reader stumbles over, where a plainer word says the same."""


def test_pages_and_messages_are_plain() -> None:
    """No line has one of the phrases that read like a translation."""
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for page in TEXTS
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if UNPLAIN.search(line)
    ]

    assert found == []


def test_texts_of_the_program_are_plain() -> None:
    """No text that the program may print has one of these phrases; docstrings are not printed."""
    found = [
        f"{path.relative_to(ROOT)}: {text.strip()[:80]}"
        for path in SOURCES
        for text in texts(path)
        if UNPLAIN.search(text)
    ]

    assert found == []


PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:[\w.]+/)+(?:[\w.]+)?)`", PAGE)))


def test_files_that_the_page_names_exist() -> None:
    """Every file that the page names exists in the checkout or in the package."""
    folders = (ROOT, ROOT / "src" / "infold")

    assert len(NAMED) > 30
    assert [path for path in NAMED if not any((each / path).exists() for each in folders)] == []


def test_every_room_is_in_the_table() -> None:
    """Every folder of the package with code is in the table of the page, and no other."""
    package = ROOT / "src" / "infold"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}

    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == rooms


def layers_of_the_contract() -> list[set[str]]:
    """The rooms of each layer that import-linter checks, from high to low."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Layers, high to low"
    ]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_the_drawing_has_the_layers_of_the_import_contract() -> None:
    """The drawing, the pages' words for it and `pyproject.toml` have the same rooms in order."""
    drawing = (ROOT / "docs/drawings/rooms.txt").read_text(encoding="utf-8")
    drawn = [
        set(found) for line in drawing.splitlines() if (found := re.findall(r"│  (\w+) ", line))
    ]
    assert drawn == layers_of_the_contract()
    for page in ("contributing.md", "how-it-works.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        (named,) = re.findall(r"!\[[^\]]*high to low: ([^\]]*)\.\]\(drawings/rooms\.svg\)", text)
        assert [set(re.findall(r"\w+", layer)) - {"and"} for layer in named.split(";")] == drawn


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
