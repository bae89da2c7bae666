"""Lists of words on the pages are those of the code, so that an added word fails here."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS

from infold.core.plan import Action
from infold.core.report import State
from infold.core.trace import Cause
from infold.inspecting.session_history import Verb
from infold.messages.errors import ExitCode
from infold.system.signals import SIGNALS

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
