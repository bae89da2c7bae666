"""
Whether a command uses a warm engine, and which: read from its words before anything is imported.

By default one is used where a person waits: at a terminal, and not in CI. ``INFOLD_ENGINE=on`` and
``off`` say it, and ``--no-engine`` for one command.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing takes long
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS = frozenset(
    "apply audit backbuild check diff explain restate run show test verify".split()  # noqa: SIM905
)
"""The commands that may need Spark."""

COMMANDS_BEFORE = frozenset({"check", "init", "plan", "status"})
"""The commands after which one that needs Spark is likely."""

VARIABLE = "INFOLD_ENGINE"
OFF_WORD = "--no-engine"
_WITH_VALUE = {"-C": "root", "--project": "root", "--target": "target"}


class Typed:
    """The global options of a command line, and the command."""

    def __init__(self, words: Sequence[str]) -> None:
        self.root, self.target, self.command, self.off = ".", None, "", False
        self.first_argument = ""
        given = iter(words)
        for word in given:
            name, equals, value = word.partition("=")
            if word in _WITH_VALUE:
                setattr(self, _WITH_VALUE[word], next(given, ""))
            elif equals and name in _WITH_VALUE and name.startswith("--"):
                setattr(self, _WITH_VALUE[name], value)
            elif word == OFF_WORD:
                self.off = True
            elif word.startswith("-"):
                return  # help, a version, or a mistake
            else:
                self.command, self.first_argument = word, next(given, "")
                return

    root: str
    target: str | None
    command: str
    first_argument: str
    off: bool


STARTS = "engine"
"""`infold engine restart` starts one, wherever it is called."""


def leaves(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may leave an engine."""
    if typed.command == STARTS:
        return sys.platform == "linux"
    return is_on(typed, environment, terminal=terminal)


def is_on(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may use an engine that is there."""
    if typed.off or typed.command not in COMMANDS or sys.platform != "linux":
        return False
    if "PYSPARK_GATEWAY_PORT" in environment:  # of spark-submit, which gave its own Spark
        return False
    said = environment.get(VARIABLE, "").lower()
    if said in ("on", "off"):
        return said == "on"
    return terminal and not environment.get("CI")


def starts_early(typed: Typed, environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may start an engine that it does not need: only where a person waits."""
    if typed.off or typed.command not in COMMANDS_BEFORE or sys.platform != "linux":
        return False
    if "PYSPARK_GATEWAY_PORT" in environment or environment.get(VARIABLE, "").lower() == "off":
        return False
    return terminal and not environment.get("CI")
