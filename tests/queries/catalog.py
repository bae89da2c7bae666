"""Queries as people write them, each with its expected verdict.

A file has one theme. Its first line gives the keys that its queries have in common;
each block names a query and says what is expected: ``admitted``, or ``refused``
with the slug of the error. ``with`` changes keys for one query (null removes one).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from tests.declare.shop import project, read
from tests.queries.world import MODELS, PROJECT

from infold.core.project import Project

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Query:
    """One query of a theme."""

    theme: str
    name: str
    refused: str
    front: str
    sql: str

    def __str__(self) -> str:
        return f"{self.theme}.{self.name}"

    @property
    def model(self) -> str:
        """The file of the model."""
        return f"---\n{self.front}---\n{self.sql}\n"

    @property
    def expected(self) -> str:
        """In a word: admitted, or the slug."""
        return self.refused or "admitted"


@cache
def queries() -> tuple[Query, ...]:
    """All of them, in order."""
    found = []
    for path in sorted(HERE.glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        front = yaml.safe_load(text.splitlines()[0].removeprefix("-- front:"))
        blocks = re.split(r"\n{2,}(?=-- (?:admitted|refused):)", text)[1:]
        found += [_query(path.stem, front, block.strip().splitlines()) for block in blocks]
    assert len({query.name for query in found}) == len(found), "names are files of one project"
    return tuple(found)


def _query(theme: str, front: dict[str, object], lines: list[str]) -> Query:
    head = re.fullmatch(r"-- (?:admitted|refused: ([a-z-]+)): (\w+)", lines.pop(0))
    assert head, lines
    if lines[0].startswith("-- with:"):
        front = front | yaml.safe_load(lines.pop(0).removeprefix("-- with:"))
    keys = {key: value for key, value in front.items() if value is not None}
    return Query(theme, head[2], head[1] or "", json.dumps(keys) + "\n", "\n".join(lines))


def _files(chosen: Iterable[Query]) -> dict[str, str]:
    """A project of some queries."""
    files = {"infold.yml": PROJECT} | {f"models/{name}.sql": sql for name, sql in MODELS.items()}
    return files | {f"models/{query.name}.sql": query.model for query in chosen}


@cache
def verdicts() -> dict[str, str]:
    """What becomes of each: admitted, or the slugs of its errors. One project holds them all."""
    _, found = read(_files(queries()))
    slugs: dict[str, set[str]] = {f"models/{query.name}.sql": set() for query in queries()}
    for error in found:
        assert error.at is not None, error
        slugs[error.at.file].add(error.slug)
    return {Path(file).stem: " ".join(sorted(of)) or "admitted" for file, of in slugs.items()}


def admitted() -> tuple[Query, ...]:
    """Those that should be admitted: ``test_verdicts`` compares."""
    return tuple(one for one in queries() if not one.refused)


@cache
def project_of_admitted() -> Project:
    """One project of all of them."""
    return project(_files(admitted()))
