"""The table of aggregate functions agrees with the modules that use it."""

from __future__ import annotations

import ast
from pathlib import Path

import infold
from infold.analysis.sql.functions import BUILT_IN
from infold.core.aggregates import AGGREGATES

SPARK = Path(infold.__file__).parent / "spark"
MERGES = SPARK / "sessions" / "mergeable.py"
FOLLOWED = SPARK / "cumulative" / "states.py"


def test_every_merge_has_a_state_and_every_state_a_merge() -> None:
    """Every aggregate with a merge has a state, and every state has a merge."""
    named = {function.merge for function in AGGREGATES.values() if function.merge}

    assert named == _keys_of_tables(MERGES) | {"first", "last"}


def test_every_aggregate_that_follows_has_a_state() -> None:
    """What a cumulative aggregate may follow has a state there; counts have one of their own."""
    named = {function.follows for function in AGGREGATES.values() if function.follows}

    assert named == _keys_of_tables(FOLLOWED) | {"count", "count_if"}


def _keys_of_tables(module: Path) -> set[str]:
    """The keys of all dictionaries that a module defines."""
    found = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            found |= {ast.literal_eval(key) for key in node.value.keys if key is not None}
    return found


def test_spark_has_every_one_of_them() -> None:
    """Spark has every aggregate of the table under its name."""
    assert set(AGGREGATES) <= BUILT_IN
