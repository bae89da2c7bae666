"""The table of aggregate functions agrees with the modules that use it."""

from __future__ import annotations

import ast
from pathlib import Path

import infold
from infold.analysis.sql.functions import BUILT_IN
from infold.core.aggregates import AGGREGATES

MERGES = Path(infold.__file__).parent / "spark" / "sessions" / "mergeable.py"


def test_every_merge_has_a_state_and_every_state_a_merge() -> None:
    """Every aggregate with a merge has a state, and every state has a merge."""
    found = set()
    for node in ast.parse(MERGES.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            found |= {ast.literal_eval(key) for key in node.value.keys if key is not None}

    named = {function.merge for function in AGGREGATES.values() if function.merge}
    assert named == found | {"first", "last"}


def test_spark_has_every_one_of_them() -> None:
    """Spark has every aggregate of the table under its name."""
    assert set(AGGREGATES) <= BUILT_IN
