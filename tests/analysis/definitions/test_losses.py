# ruff: noqa: E501 (one case is one row of a table)
"""What a changed definition takes from its table, as far as the two texts show it."""

from __future__ import annotations

import pytest
from tests.analysis.fingerprints import ALL, redefinitions

SUMS = """---
materialization: cumulative_aggregate
---
SELECT user_id, cast(sum(amount) AS int) AS total FROM clicks GROUP BY user_id
"""
VIEW = "---\nmaterialization: view\n---\nSELECT event_id, url FROM clicks\n"
BEFORE = {**ALL, "models/sums.sql": SUMS, "models/seen.sql": VIEW}

Losses = list[tuple[str, str, str, str, str]]


def lost(file: str, *changes: tuple[str, str]) -> dict[str, Losses]:
    """What tables lose by a change of one file, by model."""
    text = BEFORE[file]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {
        name: [
            (str(loss.part), loss.name, loss.before, loss.after, str(loss.at))
            for loss in one.destroys
        ]
        for name, one in redefinitions(BEFORE, {**BEFORE, file: text}).items()
    }


@pytest.mark.parametrize(
    ("file", "changes", "model", "expected"),
    [
        ("models/totals.sql", [("AS total", "AS sums")], "totals",
         ("column", "total", "", "", "models/totals.sql:4")),
        ("models/sums.sql", [("user_id", "event_id"), ("SELECT event_id", "SELECT event_id AS user_id")], "sums",
         ("key", "GROUP BY", "user_id", "event_id", "models/sums.sql:4")),
        ("models/clicks.sql", [("unique_key: [event_id]", "unique_key: [url]")], "clicks",
         ("key", "unique_key", "event_id", "url", "models/clicks.sql:1")),
        ("models/sessions.sql", [("user: user_id", "user: event_id")], "sessions",
         ("key", "user", "user_id", "event_id", "models/sessions.sql:1")),
        ("models/daily.sql", [("partition_column: day", "partition_column: session_start"), ("cast(session_start AS date) AS day", "session_start, cast(session_start AS date) AS day"), ("GROUP BY 1", "GROUP BY 1, 2")], "daily",
         ("key", "partition_column", "day", "session_start", "models/daily.sql:1")),
        ("infold.yml", [("amount: decimal(18,2)", "amount: decimal(12,2)")], "clicks",
         ("type", "amount", "decimal(18,2)", "decimal(12,2)", "infold.yml:5")),
        ("models/sums.sql", [("AS int", "AS smallint")], "sums",
         ("type", "total", "int", "smallint", "models/sums.sql:4")),
        ("models/totals.sql", [("materialization: table", "materialization: view")], "totals",
         ("table", "totals", "", "", "models/totals.sql:4")),
    ],
)  # fmt: skip
def test_a_loss_has_its_name_and_place(
    file: str, changes: list[tuple[str, str]], model: str, expected: tuple[str, ...]
) -> None:
    """Columns, keys and types that go are losses of the model's table, and nothing else is."""
    found = lost(file, *changes)[model]
    assert [one for one in found if one[1] != "user_id" or one[0] == "key"] == [expected]


@pytest.mark.parametrize(
    ("file", "old", "new", "model"),
    [
        ("models/totals.sql", "AS total", "AS total, 1 AS one", "totals"),
        ("models/totals.sql", "sum(amount)", "sum(-amount)", "totals"),
        ("models/sessions.sql", "30 minutes", "20 minutes", "sessions"),
        ("infold.yml", "amount: decimal(18,2)", "amount: decimal(20,2)", "clicks"),
        ("models/daily.sql", "incremental: {}", "incremental: {unique_key: [day]}", "daily"),
        ("models/sums.sql", "AS int", "AS bigint", "sums"),
        ("models/seen.sql", ", url", "", "seen"),
    ],
)
def test_other_rows_are_no_loss(file: str, old: str, new: str, model: str) -> None:
    """A table with other values, more columns or wider types has all that its readers name, and a
    view stores nothing that could be lost.
    """
    assert lost(file, (old, new))[model] == []


def test_a_removed_model_loses_its_table() -> None:
    """A view has none."""
    gone = ("models/seen.sql", "models/sums.sql")
    found = redefinitions(BEFORE, {name: BEFORE[name] for name in BEFORE if name not in gone})

    parts = {name: [str(loss.part) for loss in one.destroys] for name, one in found.items()}
    assert parts == {"seen": [], "sums": ["table"]}
