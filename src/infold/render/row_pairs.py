"""
Rows that one side of a comparison has and the other has not, in pairs: what differs in which row.

Two rows are one row and what became of it if they have one key. Where no key is known, rows pair up
with the one that they are most like, if a third of their values are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """What is stored and what a rebuild has in its place; None where one has nothing there."""

    key: Row
    stored: Row | None
    rebuilt: Row | None

    @property
    def differing(self) -> Mapping[str, tuple[Any, Any]]:
        """Column -> value stored and value rebuilt, of rows on both sides."""
        if self.stored is None or self.rebuilt is None:
            return {}
        both = {name: (value, self.rebuilt.get(name)) for name, value in self.stored.items()}
        return {name: pair for name, pair in both.items() if not _equal_values(*pair)}


def pair_rows(sample: Sequence[tuple[str, Row]], key: Sequence[str]) -> tuple[Pair, ...]:
    """Rows of both sides (``stored`` or ``rebuilt``) in pairs, in order of the first of each."""
    stored = [row for side, row in sample if side == "stored"]
    rebuilt = [row for side, row in sample if side == "rebuilt"]
    partners = _pairs_by_key(stored, rebuilt, key) if key else _pairs_by_likeness(stored, rebuilt)
    found = []
    for side, row in sample:
        if side == "stored":
            at = next(i for i, other in enumerate(stored) if other is row)
            other = partners.get(at)
            found.append(
                Pair(_key_values(row, key), row, None if other is None else rebuilt[other])
            )
        elif not any(rebuilt[other] is row for other in partners.values()):
            found.append(Pair(_key_values(row, key), None, row))
    return tuple(found)


def _key_values(row: Row, key: Sequence[str]) -> Row:
    return {name: row[name] for name in key if name in row}


def _pairs_by_key(
    stored: Sequence[Row], rebuilt: Sequence[Row], key: Sequence[str]
) -> dict[int, int]:
    """Rows of one key; where several have it, one after the other."""
    free = list(range(len(rebuilt)))
    found = {}
    for at, row in enumerate(stored):
        other = next(
            (i for i in free if _key_values(rebuilt[i], key) == _key_values(row, key)), None
        )
        if other is not None:
            free.remove(other)
            found[at] = other
    return found


def _pairs_by_likeness(stored: Sequence[Row], rebuilt: Sequence[Row]) -> dict[int, int]:
    """The pairs that are most alike, best first."""
    likeness = sorted(_likely_pairs(stored, rebuilt), key=lambda entry: -entry[0])
    found: dict[int, int] = {}
    for _, at, other in likeness:
        if at not in found and other not in found.values():
            found[at] = other
    return found


def _likely_pairs(
    stored: Sequence[Row], rebuilt: Sequence[Row]
) -> Iterator[tuple[float, int, int]]:
    for at, row in enumerate(stored):
        for i, other in enumerate(rebuilt):
            same = sum(_equal_values(value, other.get(name)) for name, value in row.items())
            if same and same * 3 >= len(row):
                yield same / len(row), at, i


def _equal_values(a: Any, b: Any) -> bool:
    """Whether two values are one, up to the last digits of doubles."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9)
    same: bool = a == b
    return same
