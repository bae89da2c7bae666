"""Which changed models are carried out by deriving rows, and what else is known of the change."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.compare import compare_projects
from infold.core.definition import Category, How, Redefinition

HEAD = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
"""
ROWS = "SELECT cast(session_start AS date) AS day, user_id, revenue FROM sessions"


def redefined(before: str, after: str, yaml: str = SHOP["infold.yml"]) -> Redefinition:
    """The change of the daily table, and of the project's file."""
    old = project({**SHOP, "models/daily.sql": before})
    new = project({**SHOP, "models/daily.sql": after, "infold.yml": yaml})
    found = compare_projects(old.nodes, old.sources, new.nodes, new.sources)
    return next(one for one in found if one.model == "daily")


def queries(before: str, after: str) -> Redefinition:
    """The change of the daily table's query."""
    return redefined(HEAD + before, HEAD + after)


def test_a_dropped_column() -> None:
    """The other columns are kept; the dropped one is the loss."""
    found = queries(ROWS, ROWS.replace(", revenue", ""))

    assert (found.category, found.how, found.losses) == (
        Category.BREAKING,
        How.DERIVE,
        ("revenue",),
    )
    assert found.derivation is not None
    assert found.derivation.columns == (("day", "`day`"), ("user_id", "`user_id`"))
    assert not found.derivation.changes_nothing


def test_an_added_column() -> None:
    """A column that follows is additive."""
    found = queries(ROWS, ROWS.replace("revenue", "revenue, revenue * 2 AS twice"))

    assert (found.category, found.how) == (Category.ADDITIVE, How.DERIVE)


def test_another_order() -> None:
    """The same columns in another order are none, and written by deriving them."""
    found = queries(ROWS, ROWS.replace("user_id, revenue", "revenue, user_id"))

    assert (found.category, found.how) == (Category.NONE, How.DERIVE)


def test_the_order_of_columns_in_a_union() -> None:
    """So are those of a UNION ALL."""
    union = "SELECT {0} FROM ({1} UNION ALL {1}) AS q"
    found = queries(union.format("day, user_id, revenue", ROWS), union.format("day, revenue", ROWS))

    assert found.how is How.DERIVE


def test_a_moved_start() -> None:
    """No row is proven to stay; all values are known nevertheless."""
    found = redefined(
        HEAD + ROWS, HEAD.replace("incremental: {}", "incremental: {start: 2024-01-05}") + ROWS
    )

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.columns_kept == frozenset()
    assert found.derivation is not None
    assert found.derivation.changes_nothing


SHIFTED = "date_add(cast(session_start AS date), 1) AS day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + ROWS, HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED)),
        (
            HEAD + ROWS.replace("revenue", "revenue, cast(session_start AS date) AS other"),
            HEAD + ROWS.replace("cast(session_start AS date) AS day", SHIFTED),
        ),
        (
            HEAD.replace("incremental: {}", "tags: [whole]") + ROWS,
            HEAD.replace("incremental: {}", "tags: [whole]") + ROWS.replace(", revenue", ""),
        ),
        (
            HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}") + ROWS + " LIMIT 3",
            HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}")
            + ROWS.replace(", revenue", "")
            + " LIMIT 3",
        ),
        (
            HEAD.replace("{}", "{safety_overrides: {allow_nondeterministic: true}}")
            + ROWS.replace("revenue", "max(revenue) AS m, any_value(entry_url) AS u")
            + " GROUP BY ALL",
            HEAD.replace("{}", "{safety_overrides: {allow_nondeterministic: true}}")
            + ROWS.replace("revenue", "max(revenue) AS m, any_value(entry_url) AS u")
            + " GROUP BY ALL HAVING max(revenue) > 1",
        ),
        (HEAD + ROWS, HEAD + ROWS.replace("FROM sessions", "FROM sessions WHERE events > 1")),
        (
            HEAD + ROWS.replace("revenue", "collate(user_id, 'UTF8_LCASE') AS name"),
            HEAD + ROWS.replace(", revenue", " ") + " WHERE collate(user_id, 'UTF8_LCASE') = 'a'",
        ),
    ],
    ids=["moved", "other cells", "whole", "limit", "vouched", "unknown", "letters"],
)  # fmt: skip
def test_built_again(before: str, after: str) -> None:
    """Rows in other cells, tables without cells, and what nobody proves are built."""
    found = redefined(before, after)

    assert found.how is How.REBUILD
    assert found.derivation is None
