"""A project that is being made: what readers of other tools find, before infold has judged it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infold.importing.report import Line


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

    found = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return found if found[:1].isalpha() else f"project_{found}".rstrip("_")
