"""Compares the rows that a test expects with those that a table has, as multisets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from infold.core.unit_tests import ComparedRow, Comparison, Row, Side


def compare(columns: Sequence[str], expected: Sequence[Row], actual: Sequence[Row]) -> Comparison:
    """
    The rows in the order in which they are expected, each with the actual one that is most like it.

    Rows without one on the other side are missing, or too many. Doubles may differ in their last
    digits.
    """
    wanted = [tuple(row[name] for name in columns) for row in expected]
    found = sorted((tuple(row[name] for name in columns) for row in actual), key=_order)
    same = _equal_pairs(wanted, found)
    free = [at for at in range(len(found)) if at not in same.values()]
    alike = _alike_pairs(wanted, found, [at for at in range(len(wanted)) if at not in same], free)
    rows: list[ComparedRow] = []
    for at, row in enumerate(wanted):
        if at in same:
            rows.append(ComparedRow(Side.SAME, row))
        elif at in alike:
            other = found[alike[at]]
            differ = frozenset(
                i for i, pair in enumerate(zip(row, other, strict=True)) if not equal(*pair)
            )
            rows.append(ComparedRow(Side.EXPECTED, row, differ))
            rows.append(ComparedRow(Side.ACTUAL, other, differ))
        else:
            rows.append(ComparedRow(Side.MISSING, row))
    left = (at for at in free if at not in alike.values())
    rows += [ComparedRow(Side.SURPLUS, found[at]) for at in left]
    return Comparison(tuple(columns), tuple(rows))


def _equal_pairs(wanted: Sequence[Any], found: Sequence[Any]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    by_key: dict[str, list[int]] = {}
    for at, row in enumerate(found):
        by_key.setdefault(_key(row), []).append(at)
    for at, row in enumerate(wanted):
        candidates = [*by_key.get(_key(row), ()), *range(len(found))]
        other = next((i for i in candidates if i not in taken and equal(row, found[i])), None)
        if other is not None:
            pairs[at] = other
            taken.add(other)
    return pairs


def _alike_pairs(
    wanted: Sequence[Any], found: Sequence[Any], rows: Sequence[int], free: Sequence[int]
) -> dict[int, int]:
    """The pairs that are most alike, best first; a third of the values is the same in each."""
    likeness = []
    for at in rows:
        for other in free:
            pairs = zip(wanted[at], found[other], strict=True)
            same = sum(equal(a, b) for a, b in pairs)
            if same * 3 >= max(1, len(wanted[at])):
                likeness.append((-same, at, other))
    pairs_: dict[int, int] = {}
    for _, at, other in sorted(likeness):
        if at not in pairs_ and other not in pairs_.values():
            pairs_[at] = other
    return pairs_


def equal(a: Any, b: Any) -> bool:
    """Whether two values are one, up to the last digits of doubles."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return bool(a == b)


def _key(row: tuple[Any, ...]) -> str:
    return repr([float(f"{v:.8g}") if isinstance(v, float) else str(v) for v in row])


def _order(row: tuple[Any, ...]) -> tuple[tuple[bool, str, Any], ...]:
    """NULL first, then by value; values of one column are of one type."""
    return tuple(
        (
            value is not None,
            "" if isinstance(value, int | float | str) else str(value),
            value if isinstance(value, int | float | str) else 0,
        )
        for value in row
    )
