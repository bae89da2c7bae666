"""What `infold explain` says of a model in Python: its function is called, no query runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SESSIONS, SHOP, write
from tests.running.commands import said

from infold import api

CELLS = """from infold import model

@model(
    materialization="table",
    timeseries={"event_time_column": "event_ts", "partition_column": "day"},
    incremental={},
    inputs={"clicks": {"before": "1 day"}},
    columns={"day": "date"},
)
def made(clicks):
    return clicks
"""
KEYS = """from infold import model

@model(
    materialization="cumulative_aggregate",
    group_by=["user_id"],
    inputs={"clicks": {"columns": ["event_ts"]}},
    columns={"user_id": "string", "n": "bigint"},
)
def made(rows):
    return {"n": len(rows)}
"""


ENDS = """from infold import session_rule

@session_rule(parameters={"page": "STRING"})
def ends(events):
    for event in events:
        yield event["page"] == "/bye"
"""


def test_where_the_code_of_functions_is(tmp_path: Path) -> None:
    """Of a session rule, and of a function in SQL."""
    ruled = SESSIONS.replace("gap: 30 minutes", "gap: 30 minutes, cuts: {rule: ends(url)}")
    half = "CREATE FUNCTION half(x DECIMAL(18,2)) RETURNS DECIMAL(18,2)\nRETURN x / 2\n"
    files = {"models/sessions.sql": ruled.replace("sum(amount)", "sum(half(amount))")}
    code = {"functions/ends.py": ENDS, "functions/half.sql": half}
    write(tmp_path, {**SHOP, **files, **code})

    lines = said(api.open_project(tmp_path), "explain", "sessions").splitlines()

    at = next(n for n, line in enumerate(lines) if line.startswith("  calls "))
    assert lines[at].split(None, 1)[1] == "ends, of functions/ends.py"
    assert lines[at + 1].strip() == "half, of functions/half.sql"


@pytest.mark.parametrize(
    ("text", "text_said"),
    [
        (CELLS, "batches          one call of its function for each cell"),
        (KEYS, "by user_id: where rows come or go, the function is called with its rows"),
    ],
    ids=["cells", "keys"],
)
def test_how_it_is_built(tmp_path: Path, text: str, text_said: str) -> None:
    """Each says how often its function is called, and names no query or override."""
    write(tmp_path, {**SHOP, "models/made.py": text})

    printed = said(api.open_project(tmp_path), "explain", "made")

    assert text_said in printed
    assert "override" not in printed
    assert "query" not in printed
