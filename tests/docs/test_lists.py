"""Lists of words on the pages are those of the code, so that an added word fails here."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest
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


@pytest.mark.parametrize(
    ("kind", "begin", "end"),
    [
        (Cause, "\nA `cause` is ", ".\n"),
        (Action, "| What is built, and how:", "|"),
    ],
)
def test_the_reference_lists_every_word(kind: type[StrEnum], begin: str, end: str) -> None:
    """The reference lists every word that ``plan --json`` shows."""
    assert words(JSON, begin, end) == {each.value for each in kind}


def test_the_reference_explains_every_state() -> None:
    """The reference explains every state of `infold status` in its table."""
    part = COMMANDS.partition("\n| state | meaning |\n")[2].partition("\n\n")[0]

    assert re.findall(r"^\| ([a-z ]+) \|", part, re.MULTILINE) == [state.value for state in State]


def test_the_reference_lists_every_change_of_a_session() -> None:
    """The reference lists every verb that ``explain session --json`` shows."""
    assert words(JSON, "\n`verb` is ", ".\n\n") == {verb.value for verb in Verb}


def test_the_glossary_lists_every_reason() -> None:
    """The glossary lists every reason, in the order of the code."""
    (line,) = re.findall(r"^\| \*\*reason\*\* \| .*?: (.*?)\.", GLOSSARY, re.MULTILINE)

    assert line.split(", ") == [cause.value for cause in Cause]


def test_the_reference_explains_every_exit_code() -> None:
    """The table of exit codes has success, each code of an error, and 128 and each signal."""
    part = COMMANDS.partition("\n| exit code | meaning |\n")[2].partition("\n\n")[0]
    codes = re.findall(r"^\| ([\d, ]+) \|", part, re.MULTILINE)

    ended = {128 + number for number in SIGNALS}
    assert {int(code) for text in codes for code in text.split(", ")} == {0, *ExitCode, *ended}
