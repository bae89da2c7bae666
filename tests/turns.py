"""
Long tests that take turns: of several alike one in three is tried.

Which ones follows from the code: the same code has the same, and a change has others as
likely as not. ``INFOLD_TURNS=all`` tries all of them, as the mutants and a soak do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

SOURCES = Path(__file__).parents[1] / "src" / "infold"

Case = TypeVar("Case")


def in_turn(cases: Iterable[Case]) -> list[Case]:
    """One in three of some cases; all of them with ``INFOLD_TURNS=all``."""
    every = list(cases)
    return (
        every
        if os.environ.get("INFOLD_TURNS") == "all"
        else every[_turn() % min(3, len(every)) :: 3]
    )


@cache
def _turn() -> int:
    code = sha256()
    for file in sorted(SOURCES.rglob("*.py")):
        code.update(file.read_bytes())
    return code.digest()[0]
