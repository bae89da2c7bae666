"""
How an error is worded: an entry with the words of all its cases, called with the facts of one.

The lists in this folder consist of such entries. Where the words themselves depend on the facts, a
function with typed arguments is in the entry's place, and is called in the same way.
``tests/messages`` renders each with the facts that its callers give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from infold.messages.errors import ExitCode, InfoldError, Spot


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
