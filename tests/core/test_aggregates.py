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


def test_every_aggregate_has_what_it_names() -> None:
    """Every aggregate with a merge has a state, and every state a merge; what a cumulative one may
    follow has a state there (counts have one of their own); Spark has each under its name.
    """
    merged = {function.merge for function in AGGREGATES.values() if function.merge}
    followed = {function.follows for function in AGGREGATES.values() if function.follows}

    assert merged == _keys_of_tables(MERGES) | {"first", "last"}
    assert followed == _keys_of_tables(FOLLOWED) | {"count", "count_if"}
    assert set(AGGREGATES) <= BUILT_IN


def _keys_of_tables(module: Path) -> set[str]:
    """The keys of all dictionaries that a module defines."""
    found = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            found |= {ast.literal_eval(key) for key in node.value.keys if key is not None}
    return found
