"""What became of each part of a project that is imported: one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What became of a part; the value is the word that people read."""

    CAME = "came over"
    CHANGED = "changed"
    TO_FILL = "to fill in"
    LEFT = "left out"


@dataclass(frozen=True, slots=True)
class Line:
    """
    One part of a project: what became of it, and why.

    ``what`` names it by its kind and name (`model orders`), ``at`` is its file, with the line where
    that helps, relative to the imported folder.
    """

    outcome: Outcome
    what: str
    at: str = ""
    why: str = ""

    @property
    def record(self) -> dict[str, str]:
        """The same as plain values, for ``--json``."""
        return {
            "outcome": self.outcome.value,
            "what": self.what,
            "at": self.at,
            "why": self.why,
        }


def came(what: str, at: str = "", why: str = "") -> Line:
    """It means the same in infold's project."""
    return Line(Outcome.CAME, what, at, why)


def changed(what: str, at: str, why: str) -> Line:
    """It came over, and what it means or how it is kept is something else."""
    return Line(Outcome.CHANGED, what, at, why)


def to_fill(what: str, at: str, why: str) -> Line:
    """It is in the project, and only a person knows the rest."""
    return Line(Outcome.TO_FILL, what, at, why)


def left(what: str, at: str, why: str) -> Line:
    """It is not in the project."""
    return Line(Outcome.LEFT, what, at, why)


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Each line once, by outcome, else in the order in which they were found."""
    place = {outcome: i for i, outcome in enumerate(Outcome)}
    return sorted(dict.fromkeys(lines), key=lambda line: place[line.outcome])


def counts(lines: Sequence[Line]) -> dict[str, dict[str, int]]:
    """How many parts of each kind (the first word of ``what``) ended in which outcome."""
    worst: dict[str, Outcome] = {}
    for line in in_order(lines):
        worst[line.what] = line.outcome
    found: dict[str, Counter[str]] = {}
    for what, outcome in worst.items():
        found.setdefault(what.split()[0], Counter())[outcome.value] += 1
    return {kind: dict(of) for kind, of in found.items()}
