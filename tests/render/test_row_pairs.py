"""Rows that verify shows of a difference, as pairs before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from infold.render.json_shapes import pair_rows

Row = Mapping[str, Any]


def rows(side: str, *found: str) -> list[tuple[str, Row]]:
    """Rows drawn as ``a=1 b=x``."""
    return [(side, dict(word.split("=") for word in row.split())) for row in found]


@pytest.mark.parametrize(
    ("stored", "rebuilt", "key", "expected"),
    [
        (["k=1 n=1"], ["k=1 n=2"], ["k"], ["k=1: n 1 2"]),
        (["k=1 n=1", "k=2 n=2"], ["k=2 n=3"], ["k"], ["k=1: gone", "k=2: n 2 3"]),
        (["k=1 n=1"], ["k=2 n=1"], ["k"], ["k=1: gone", "k=2: new"]),
        (["k=1 n=1", "k=1 n=2"], ["k=1 n=3"], ["k"], ["k=1: n 1 3", "k=1: gone"]),
        (["d=1 a=1 b=1"], ["d=1 a=2 b=2"], [], [": a 1 2, b 1 2"]),
        (["d=1 a=1 b=1"], ["d=1 a=1 b=2", "d=1 a=2 b=1"], [], [": b 1 2", ": new"]),
        (["d=1 a=1"], ["d=2 a=2"], [], [": gone", ": new"]),
    ],
)
def test_pairs(
    stored: Sequence[str], rebuilt: Sequence[str], key: Sequence[str], expected: Sequence[str]
) -> None:
    """By key where it is known, else by similarity; without a partner it is single."""
    found = []
    for pair in pair_rows([*rows("stored", *stored), *rows("rebuilt", *rebuilt)], key):
        known = " ".join(f"{name}={value}" for name, value in pair.key.items())
        values = ", ".join(f"{name} {a} {b}" for name, (a, b) in pair.differing.items())
        alone = "gone" if pair.rebuilt is None else "new"
        found.append(f"{known}: {values or alone}")

    assert found == expected


def test_the_last_digits_of_doubles_are_no_difference() -> None:
    """Values that the comparison takes as equal are not shown as different."""
    sample = [
        ("stored", {"k": 1, "x": 0.1 + 0.2, "y": float("nan"), "n": 1}),
        ("rebuilt", {"k": 1, "x": 0.3, "y": float("nan"), "n": 2}),
    ]

    (pair,) = pair_rows(sample, ["k"])

    assert pair.differing == {"n": (1, 2)}
