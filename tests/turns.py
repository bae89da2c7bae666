"""
Long tests that take turns: with ``--turns`` one in five of those marked so is tried.

``@pytest.mark.turns(8)`` on a test has one in eight tried.

Which ones follows from the code: the same code has the same, and a change has others as likely as
not. A test with a single case is tried with one state of the code in so many. Each is alike to
others that are always tried or take turns too (one program on a cluster, in each store, by each
catalog), or draws at random what is drawn without Spark too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "infold"


def not_their_turn(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests marked ``turns`` that are left out this time."""
    marked = (item for item in items if item.get_closest_marker("turns"))
    return [
        case
        for test, cases in groupby(marked, lambda item: item.nodeid.partition("[")[0])
        for number, case in enumerate(cases)
        if (number + turn(test)) % _one_in(case)
    ]


def _one_in(case: pytest.Item) -> int:
    mark = case.get_closest_marker("turns")
    return mark.args[0] if mark and mark.args else 5


def turn(test: str) -> int:
    """Which case of a test comes first, by the code."""
    return int.from_bytes(sha256(_code() + test.encode()).digest()[:4], "big")


@cache
def _code() -> bytes:
    code = sha256()
    for file in sorted(SOURCES.rglob("*.py")):
        code.update(file.read_bytes())
    return code.digest()
