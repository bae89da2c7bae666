"""
What an error is (a slug and what is wrong, aligned facts, what to do), and how it is worded.

The words are in the lists beside this file, an entry for each error: of the command line in
``command_errors``, of ledger, sources and runs in ``run_errors``, of a ledger on a server in
``ledger_errors``, of catalogs, databases, stores and Delta tables in ``catalog_errors``,
``database_errors``, ``store_errors`` and ``delta_errors``, of `infold apply` in ``apply_errors``,
of environments in ``environment_errors``, of unit tests in ``unit_test_errors``. What is written
wrongly in a project is in ``findings``, ``function_findings`` and ``audit_findings``, what is
understood and refused in ``refusals``, and what another tool or dialect would write in
``other_tools``; what is wrong with ledger and tables in ``mismatches``, with the machine in
``faults``. No module outside of this folder words an error, and each slug has a section in
docs/errors/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """How a command that does not succeed ends; what a signal ends has 128 and its number."""

    FAILED = 1
    WRONG = 2
    REFUSED = 3
    DIFFERENT = 4
    CHANGED = 5


_WIDEST = 200
"""The most characters of a line that are shown: some files have all they say in one."""


@dataclass(frozen=True, slots=True)
class Spot:
    """
    The place of a mistake: file (relative to the project), 1-based line and column.

    ``text`` is that whole line and ``width`` how many characters of it are meant, so that a
    caret can be drawn under them; without ``text`` none is drawn. ``function`` is the file of the
    project's function whose call is there, if the mistake is in that.
    """

    file: str
    line: int = 1
    column: int = 1
    text: str = ""
    width: int = 1
    function: str = ""

    @classmethod
    def of_line(cls, file: str, line: int, text: str) -> Self:
        """A whole line, but for the blanks around it."""
        indent = len(text) - len(text.lstrip())
        return cls(file, line, indent + 1, text, max(1, len(text.strip())))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def caret(self) -> str:
        """The line and a caret under what is meant, indented by four, or nothing."""
        if not self.text.strip():
            return ""
        indent = len(self.text) - len(self.text.lstrip())
        shown = self.text.strip().replace("\t", " ")
        before = max(0, self.column - 1 - indent)
        cut = max(0, min(before, len(shown)) - _WIDEST // 4)
        if len(shown) > _WIDEST and cut:
            shown, before = f"…{shown[cut + 1 :]}", before - cut
        if len(shown) > _WIDEST:
            shown = f"{shown[: _WIDEST - 1]}…"
        width = max(1, min(self.width, len(shown) - before))
        return f"    {shown}\n    {' ' * before}{'^' * width}"


class InfoldError(Exception):
    """
    A mistake or a refusal that the user can do something about.

    ``exit_code`` follows the command line: 1 a step failed, 2 the project, the command or the
    machine is wrong, 3 refused, 4 a difference was found, 5 an environment differs. ``at`` is the
    place in a file, for those that have one. A fact without text is left out.
    """

    def __init__(
        self,
        slug: str,
        what: str,
        facts: tuple[tuple[str, str], ...] = (),
        todo: str = "",
        exit_code: int = ExitCode.WRONG,
        at: Spot | None = None,
    ) -> None:
        super().__init__(slug, what)
        self.slug = slug
        self.what = what
        found = tuple((name, text) for name, text in facts if text)
        if at is not None and at.function:
            found = (("in", at.function), *found)
        self.facts = found if at is None else (("at", str(at)), *found)
        self.todo = todo
        self.exit_code = exit_code
        self.at = at

    def __str__(self) -> str:
        """The parts as they are shown, without a final newline."""
        parts = [f"{self.slug}: {self.what}"]
        if self.facts:
            width = max(len(name) for name, _ in self.facts) + 1
            parts.append("\n".join(f"  {name + ':':<{width}}  {text}" for name, text in self.facts))
        if self.at is not None and self.at.caret:
            parts.append(self.at.caret)
        if self.todo:
            parts.append(self.todo)
        return "\n\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows, as IPython asks for it: the message, and no lines of infold's."""
        return str(self).splitlines()

    @property
    def each(self) -> tuple[InfoldError, ...]:
        """The error; of several at once every one."""
        return (self,)

    def with_facts(self, *facts: tuple[str, str]) -> Self:
        """The same with more facts."""
        found = copy(self)
        found.facts = (*self.facts, *facts)
        return found

    def moved_to(self, at: Spot) -> InfoldError:
        """The same at another place: of text that stands for what is written there."""
        facts = tuple(fact for fact in self.facts if fact[0] != "at")
        return InfoldError(self.slug, self.what, facts, self.todo, self.exit_code, at)

    @property
    def record(self) -> dict[str, object]:
        """The same as plain values, for ``--json``."""
        found: dict[str, object] = {"slug": self.slug, "what": self.what, "facts": dict(self.facts)}
        if self.at is not None:
            found |= {"file": self.at.file, "line": self.at.line, "column": self.at.column}
        return found | {"todo": self.todo, "exit_code": self.exit_code}


class InfoldErrors(InfoldError):  # noqa: N818 (it is what its name says: several)
    """
    Several at once: all that is wrong with a project, so that it is put right in one go.

    The exit code is the least of theirs: 2 as soon as the project is wrong, and 3 only where all
    are refusals of a command.
    """

    def __init__(self, errors: Iterable[InfoldError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        code = min(error.exit_code for error in self.errors)
        super().__init__(first.slug, first.what, first.facts, first.todo, code, None)

    def __str__(self) -> str:
        """Every one of them, and how many there are when there are several."""
        shown = [str(error) for error in self.errors]
        if len(shown) > 1:
            shown.append(f"{len(shown)} errors.")
        return "\n\n\n".join(shown)

    @property
    def each(self) -> tuple[InfoldError, ...]:
        """Every one of them."""
        return self.errors

    def moved_to(self, at: Spot) -> InfoldError:
        """The same at another place: of text that stands for what is written there."""
        facts = tuple(fact for fact in self.facts if fact[0] != "at")
        return InfoldError(self.slug, self.what, facts, self.todo, self.exit_code, at)

    @property
    def record(self) -> dict[str, object]:
        """All of them as plain values, for ``--json``."""
        return {"errors": [error.record for error in self.errors], "exit_code": self.exit_code}


def by_place(errors: Iterable[InfoldError]) -> list[InfoldError]:
    """Errors in the order of the files that they are about, each once."""
    once = {str(error): error for error in errors}.values()
    return sorted(once, key=lambda e: (e.at.file, e.at.line) if e.at else ("", 0))


# The lists in this folder consist of such entries. Where the words themselves depend on the facts,
# a function with typed arguments is in the entry's place, and is called in the same way.
# `tests/messages` renders each with the facts that its callers give.


@dataclass(frozen=True, slots=True)
class Near:
    """
    In place of a fact's text: the names in ``known`` that are most like the ``word`` in question.

    The fact is called ``nearest`` then. Where none is like it, it has its own name and shows all
    of them if they are few, else it is left out.
    """

    word: str

    def fact(self, label: str, given: Mapping[str, object]) -> tuple[str, str]:
        """The fact's name and text, in the case of these facts."""
        known = given["known"]
        assert isinstance(known, Iterable)
        return nearest_fact(self.word.format(**given), map(str, known), label)


def nearest(word: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The names most like ``word``, best first, without regard to case."""
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), by_lower, n=count, cutoff=0.5)
    return tuple(by_lower[name] for name in found)


def nearest_fact(word: str, names: Iterable[str], all_of: str) -> tuple[str, str]:
    """The fact that shows the nearest right names, or all when nothing is near and few are."""
    names = tuple(dict.fromkeys(names))
    close = nearest(word, names)
    if close:
        return "nearest", ", ".join(close)
    return all_of, ", ".join(names) if len(names) <= 12 else ""


@dataclass(frozen=True, slots=True)
class _Words:
    """
    What the entries have: the parts of an error, in the order in which they are shown.

    ``{name}`` is replaced by the fact that a caller gives by that name; several values are shown
    with commas.
    """

    slug: str
    what: str
    facts: Mapping[str, str | Near] = field(default_factory=dict)
    todo: str = ""
    exit_code: ExitCode = ExitCode.WRONG

    def filled(self, at: Spot | None, given: Mapping[str, object]) -> InfoldError:
        """The error of one case."""
        shown = {name: _shown(value) for name, value in given.items()}
        facts = (
            text.fact(label, given) if isinstance(text, Near) else (label, text.format(**shown))
            for label, text in self.facts.items()
        )
        return InfoldError(
            self.slug,
            self.what.format(**shown),
            tuple(facts),
            self.todo.format(**shown),
            self.exit_code,
            at,
        )


def _shown(value: object) -> object:
    """A fact as ``format`` takes it: of several values all, each once."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(dict.fromkeys(map(str, value)))
    return "" if value is None else value


@dataclass(frozen=True, slots=True)
class Message(_Words):
    """The words of an error that has no place in a file."""

    def __call__(self, /, **given: object) -> InfoldError:
        """The error of one case, which gives each fact by its name."""
        return self.filled(None, given)


@dataclass(frozen=True, slots=True)
class Finding(_Words):
    """The words of an error in a file of the project: it is called with its place first."""

    def __call__(self, at: Spot, /, **given: object) -> InfoldError:
        """The error of one case, which gives each fact by its name."""
        return self.filled(at, given)
