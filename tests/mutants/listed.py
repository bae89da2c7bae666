"""
The mutants that are kept: small wrong changes to the program, each of which the tests must notice.

Each file ``*.toml`` beside this one is an area. A mutant names a file below ``src/infold``, the
text to replace (there once), what to put in its place, and what goes wrong then. ``spark`` names
the tests that must notice where only Spark can tell; the others are killed without a JVM.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "infold"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong change; ``number`` is its place in its ``area``, from 1."""

    area: str
    number: int
    file: str
    old: str
    new: str
    why: str
    spark: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How the screen and a command name it."""
        return f"{self.area}-{self.number}"

    @property
    def mutated(self) -> str:
        """The text of its file with the change. Raises ValueError unless the old is there once."""
        text = (PACKAGE / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {text.count(self.old)} times in {self.file}: {self.old}"
            )
        return text.replace(self.old, self.new)


def mutants() -> Iterator[Mutant]:
    """All of them, area by area."""
    for path in sorted(HERE.glob("*.toml")):
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
        for number, entry in enumerate(listed, 1):
            spark = tuple(entry.pop("spark", ()))
            yield Mutant(path.stem, number, spark=spark, **entry)
