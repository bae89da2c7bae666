# ruff: noqa: E501 (one case is one row of a table)
"""
A column that only got another name is no other column, if the model says so.

And what a changed definition takes from its table, as far as the two texts show it.
"""

from __future__ import annotations

import pytest
from tests.analysis.fingerprints import ALL, redefinitions
from tests.declare.shop import project

from infold.core.definition import Category, How, Redefinition

SUMS = """---
materialization: cumulative_aggregate
---
SELECT user_id, sum(amount) AS total, count(*) AS n FROM clicks GROUP BY user_id
"""
BEFORE = {**ALL, "models/sums.sql": SUMS}


def redefined(model: str, *changes: tuple[str, str], front: str = "") -> Redefinition:
    """What becomes of a model by changes of its file, with a line more in its front matter."""
    file = f"models/{model}.sql"
    text = BEFORE[file]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    text = text.replace("---\n", f"---\n{front}\n", 1) if front else text
    return redefinitions(BEFORE, {**BEFORE, file: text})[model]


@pytest.mark.parametrize(
    ("model", "changes", "front", "pairs"),
    [
        ("daily", [("AS revenue", "AS income")], "renamed_from: {income: revenue}", (("revenue", "income"),)),
        ("daily", [("AS revenue", "AS Income"), ("AS sessions", "AS visits")], "renamed_from: {income: REVENUE, visits: sessions}", (("sessions", "visits"), ("revenue", "Income"))),
        ("totals", [("AS total", "AS sums")], "renamed_from: {sums: total}", (("total", "sums"),)),
        ("sums", [("AS total", "AS sums"), ("GROUP BY user_id", "GROUP BY 1")], "renamed_from: {sums: total, n: m}", (("total", "sums"),)),
        ("sums", [("SELECT user_id", "SELECT user_id AS who")], "renamed_from: {who: user_id}", (("user_id", "who"),)),
    ],
)  # fmt: skip
def test_a_renamed_column(
    model: str, changes: list[tuple[str, str]], front: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    """Tables of all kinds evolve; nothing is lost, and the columns beside it are kept."""
    found = redefined(model, *changes, front=front)

    assert (found.how, found.category, found.renamed) == (How.EVOLVE, Category.METADATA, pairs)
    assert (found.losses, found.destroys) == ((), ())
    assert found.columns_kept.isdisjoint({name.lower() for pair in pairs for name in pair})


@pytest.mark.parametrize(
    ("model", "changes", "front"),
    [
        ("daily", [("AS revenue", "AS income")], ""),
        ("daily", [("AS revenue", "AS income")], "renamed_from: {income: session}"),
        ("daily", [("sum(revenue) AS revenue", "sum(-revenue) AS income")], "renamed_from: {income: revenue}"),
        ("daily", [("AS revenue", "AS income, 1 AS one")], "renamed_from: {income: revenue}"),
        ("daily", [("AS revenue", "AS income"), ("GROUP BY", "WHERE events > 1 GROUP BY")], "renamed_from: {income: revenue}"),
        ("daily", [("AS day", "AS date"), ("partition_column: day", "partition_column: date")], "renamed_from: {date: day}"),
        ("totals", [("user_id, sum(amount) AS total", "sum(amount) AS sums, user_id")], "renamed_from: {sums: total}"),
        ("clicks", [("SELECT event_id", "SELECT event_id AS id"), ("[event_id]", "[id]")], "renamed_from: {id: event_id}"),
        ("sums", [("sum(amount)", "sum(user_id)"), ("SELECT user_id", "SELECT amount AS who"), ("BY user_id", "BY amount")], "renamed_from: {who: user_id}"),
    ],
)  # fmt: skip
def test_what_is_no_renaming(model: str, changes: list[tuple[str, str]], front: str) -> None:
    """Another value, another order, another key, or a pair that is not there: as without the key."""
    found = redefined(model, *changes, front=front)

    assert found.how is not How.EVOLVE
    assert found.renamed == ()


def test_two_columns_may_change_places() -> None:
    """Their values are in other columns then, which is a change like any other, and no renaming."""
    swap = [("AS total", "AS x"), ("AS n", "AS total"), ("AS x", "AS n")]
    assert redefined("sums", *swap).how is How.REBUILD
    with pytest.raises(AssertionError, match="cannot be 'total', which is a column still"):
        redefined("sums", *swap, front="renamed_from: {n: total, total: n}")


def test_a_name_that_no_column_has_is_a_mistake() -> None:
    """The new name has to be a column of the query, whatever kind of table it is."""
    for model in ("sums", "sessions"):
        text = BEFORE[f"models/{model}.sql"].replace("---\n", "---\nrenamed_from: {x: y}\n", 1)
        with pytest.raises(AssertionError, match="renamed_from names 'x'"):
            project({**BEFORE, f"models/{model}.sql": text})


def test_readers_fail_by_name() -> None:
    """Whoever reads the earlier name is refused as for any unknown column."""
    text = BEFORE["models/sessions.sql"].replace("AS revenue", "AS income")
    text = text.replace("---\n", "---\nrenamed_from: {income: revenue}\n", 1)
    with pytest.raises(AssertionError, match="unknown-column"):
        project({**BEFORE, "models/sessions.sql": text})


def test_how_the_key_is_shown() -> None:
    """The pairs are shown as they are written."""
    found = redefined("daily", ("AS revenue", "AS income"), front="renamed_from: {income: revenue}")
    assert [one.after for one in found.differences if one.part == "renamed_from"] == [
        "income: revenue"
    ]


TOTALS = """---
materialization: cumulative_aggregate
---
SELECT user_id, cast(sum(amount) AS int) AS total FROM clicks GROUP BY user_id
"""
VIEW = "---\nmaterialization: view\n---\nSELECT event_id, url FROM clicks\n"
FORMER = {**ALL, "models/sums.sql": TOTALS, "models/seen.sql": VIEW}

Losses = list[tuple[str, str, str, str, str]]


def lost(file: str, *changes: tuple[str, str]) -> dict[str, Losses]:
    """What tables lose by a change of one file, by model."""
    text = FORMER[file]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return {
        name: [
            (str(loss.part), loss.name, loss.before, loss.after, str(loss.at))
            for loss in one.destroys
        ]
        for name, one in redefinitions(FORMER, {**FORMER, file: text}).items()
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
    found = redefinitions(FORMER, {name: FORMER[name] for name in FORMER if name not in gone})

    parts = {name: [str(loss.part) for loss in one.destroys] for name, one in found.items()}
    assert parts == {"seen": [], "sums": ["table"]}
