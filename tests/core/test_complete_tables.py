"""Tables of the code are complete: aggregate functions, and the keys of declarations."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import infold
from infold.analysis.sql.functions import BUILT_IN
from infold.core.aggregates import AGGREGATES
from infold.core.definition import KEYS, Decides
from infold.core.model import Incremental, Model, Source, Timeseries
from infold.core.queries import VersionRules
from infold.core.sessions import DeclaredCut, Sessions

SPARK = Path(infold.__file__).parent / "spark"
MERGES = SPARK / "sessions" / "aggregates.py"
FOLLOWED = SPARK / "cumulative" / "fold.py"


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


SECTIONS = (
    Model, Timeseries, Incremental, Sessions, VersionRules, Source, *DeclaredCut.__subclasses__(),
)  # fmt: skip


def test_every_field_of_a_declaration_is_in_the_table() -> None:
    """KEYS has every field and no other; nothing but places is never compared."""
    every = {f"{of.__name__}.{field.name}" for of in SECTIONS for field in fields(of)}

    assert set(KEYS) == every

    silent = {key for key, decides in KEYS.items() if decides is Decides.NOTHING}

    assert silent == {"Model.sql_line", "Model.place", "Source.place", "Source.unread_columns"}
