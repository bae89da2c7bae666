"""A project that is being made: what readers of other tools find, before infold has judged it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any


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
    outcomes: dict[str, Counter[str]] = {}
    for what, outcome in worst.items():
        outcomes.setdefault(what.split()[0], Counter())[outcome.value] += 1
    return {kind: dict(of) for kind, of in outcomes.items()}


@dataclass(frozen=True, slots=True)
class Way:
    """
    One way to keep a model: keys of its front matter.

    ``lost`` is what is to be said if ``infold check`` refuses this way and the next one is tried.
    With ``only_for`` it is tried after findings of these slugs alone, and ``gained`` is said of it.
    """

    keys: Mapping[str, Any]
    lost: str = ""
    only_for: frozenset[str] = frozenset()
    gained: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """An audit of a model as it is written, and where the test is that it was made from."""

    entry: Mapping[str, Any] | str
    at: str


@dataclass(frozen=True, slots=True)
class DraftModel:
    """
    A model: its query in Spark SQL, and the ways to keep it, best first.

    ``time_column`` is the output column that places rows in cells, if there is one. ``at`` is the
    file that it was made from.
    """

    name: str
    at: str
    query: str
    ways: tuple[Way, ...]
    audits: tuple[Audit, ...] = ()
    time_column: str = ""
    called: str = "model"

    @property
    def what(self) -> str:
        """How the report names it."""
        return f"{self.called} {self.name}"


@dataclass(frozen=True, slots=True)
class DraftSource:
    """
    A table that the project reads: ``group.name``.

    ``columns`` are those whose types are declared; others are found in the queries. ``keys`` are
    further keys of infold.yml.
    """

    name: str
    at: str
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DraftSeed:
    """A CSV file, and the keys of infold.yml for it."""

    name: str
    at: str
    content: bytes
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DraftFile:
    """
    An audit's or a test's file of infold, and what it was made from.

    ``what`` is how the report names it. ``needs`` are models and sources that it names: without one
    of them it is left out. ``gives`` are the columns that a test gives rows of.
    """

    path: str
    text: str
    what: str
    at: str
    needs: frozenset[str] = frozenset()
    gives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole project, and what is said of what it was made from."""

    name: str
    models: tuple[DraftModel, ...]
    sources: tuple[DraftSource, ...] = ()
    seeds: tuple[DraftSeed, ...] = ()
    files: tuple[DraftFile, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()


UNDETERMINED = frozenset({"clock", "not-deterministic", "order-dependent", "order-not-total"})
"""Findings about queries whose rows do not follow from their inputs alone."""


def any_result(keys: Mapping[str, Any]) -> Way:
    """A table whose rows are any that its query may give, as they are for other tools."""
    override = {"enabled": False, "safety_overrides": {"allow_nondeterministic": True}}
    return Way(
        {**keys, "materialization": "table", "incremental": override},
        only_for=UNDETERMINED,
        gained="its rows do not follow from its inputs alone, as before: it is a table with "
        "allow_nondeterministic, and `infold verify` does not compare what that leaves open",
    )


def project_name(name: str) -> str:
    """A name that a project of infold may have."""
    import re

    cleaned = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"project_{cleaned}".rstrip("_")


Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """
    One test: rows of tables by their names in infold, and the rows that a model then has.

    Values are those of YAML; texts of a CSV are texts. ``clock`` is the run's, if it is given.
    """

    name: str
    at: str
    given: Mapping[str, Rows]
    expected: Mapping[str, Rows]
    clock: str = ""


def case_file(case: Case) -> DraftFile:
    """A file of ``tests/`` with one test: its rows arrive once, at its clock."""
    lines = [f"From {case.at.partition(':')[0]}.", "", f"# {case.name}", "", "## Arrival", ""]
    if case.clock:
        lines += [f"clock: {case.clock}", ""]
    for name, rows in case.given.items():
        lines += _table(f"{name}:", rows)
    for name, rows in case.expected.items():
        lines += _table(f"expect {name}:", rows)
    names = frozenset({*case.given, *case.expected})
    path = f"tests/{project_name(case.name)}.md"
    gives = {name: tuple(_columns(rows)) for name, rows in case.given.items()}
    return DraftFile(path, "\n".join(lines), f"test {case.name}", case.at, names, gives)


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _table(head: str, rows: Rows) -> list[str]:
    columns = _columns(rows)
    if not columns:
        return [f"{head} no rows", ""]
    cells = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]

    def line(row: Iterable[str]) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"

    dashes = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [head, "", line(cells[0]), dashes, *map(line, cells[1:]), ""]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, dict | list):
        text = json.dumps(value, default=str, ensure_ascii=False)
    else:
        text = str(value)
        if isinstance(value, str) and _QUOTED.search(text):
            text = json.dumps(text, ensure_ascii=False)
    return text.replace("|", "\\|")


_QUOTED = re.compile(r"\A\s*\Z|\A\s|\s\Z|\ANULL\Z|\A[\"`\[{]|\n|\t", re.IGNORECASE)
"""Texts that are not themselves without quotes."""
