"""Pages and messages are written in plain sentences: some turns of phrase are not among them."""

from __future__ import annotations

import re

from tests.docs.pages import PAGES, ROOT
from tests.docs.test_hints import SOURCES, texts

TEXTS = [
    *PAGES,
    ROOT / "tests" / "messages" / "every_message.txt",
    *sorted((ROOT / "tests" / "cli" / "screens").glob("*.txt")),
]

UNPLAIN = re.compile(
    r"\bby which\b|\bof which\b|\bwhatever becomes of\b|\bstands\b|\bis told\b"
    r"|\bholds\b(?! the lock| this target's lease)"
    r"|\bis said\b|\banew\b|\bdear\b|\bputs right\b|\blooks after\b|\binside of\b"
    r"|\bneedless\b(?!-)|\bwithout a word\b|^#+ .*\b[Ff]urther\b"
    r"|\bof before\b|\bgoes before\b|\bit is meant\b|\btakes in further\b"
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
