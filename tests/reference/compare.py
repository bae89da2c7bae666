"""
Two tables as multisets of rows, with the differences spelled out.

Doubles are compared by relative tolerance: the contract is exact for everything else. Timestamps
become microseconds, Arrow's own values plain Python ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.reference.world import Row

from infold.core import interval

SHOWN = 6
"""How many differing rows a message shows on either side."""


def plain(value: Any) -> Any:
    """A stored value as the reference writes it."""
    if isinstance(value, datetime):
        return interval.micros_of(value)
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


def stored(rows: Iterable[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> list[Row]:
    """Rows read back from a table, in the reference's values."""
    return [
        {name: plain(value) for name, value in row.items() if name not in leave_out} for row in rows
    ]


def difference(expected: Sequence[Row], actual: Sequence[Row]) -> str:
    """Nothing when both hold the same rows equally often, else what is missing and too much."""
    names = {name for row in (*expected[:1], *actual[:1]) for name in row}
    for row in (*expected[:1], *actual[:1]):
        if set(row) != names:
            return f"columns differ: expected {sorted(expected[0])}, found {sorted(actual[0])}"
    order = sorted(names)
    wanted, found = Counter(_keys(expected, order)), Counter(_keys(actual, order))
    if wanted == found:
        return ""
    missing, surplus = _paired(sorted((wanted - found).elements(), key=repr), found - wanted)
    if not missing and not surplus:
        return ""
    lines = [f"expected {len(expected)} rows, found {len(actual)}"]
    lines += [f"  missing: {dict(zip(order, row, strict=True))}" for row in missing[:SHOWN]]
    lines += [f"  surplus: {dict(zip(order, row, strict=True))}" for row in surplus[:SHOWN]]
    lines.append(f"  {len(missing)} missing, {len(surplus)} too many")
    return "\n".join(lines)


def _keys(rows: Iterable[Row], order: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    for row in rows:
        yield tuple(_key(row[name]) for name in order)


def _key(value: Any) -> Any:
    """A value to count by; doubles by nine digits, so that almost all tolerances end here."""
    if isinstance(value, float):
        return float(f"{value:.9g}") + 0.0
    return tuple(map(_key, value)) if isinstance(value, list | tuple) else value


def _paired(
    missing: Sequence[tuple[Any, ...]], surplus: Counter[tuple[Any, ...]]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What stays unmatched after doubles that fell on either side of a rounding were paired."""
    rest = sorted(surplus.elements(), key=repr)
    unmatched = []
    for row in missing:
        match = next((other for other in rest if _close(row, other)), None)
        if match is None:
            unmatched.append(row)
        else:
            rest.remove(match)
    return unmatched, rest


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-8, abs_tol=1e-9)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    return bool(a == b)
