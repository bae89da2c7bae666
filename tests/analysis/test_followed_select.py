"""Which queries with GROUP BY are expressions over aggregates that have states."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, project

HEAD = "---\nmaterialization: cumulative_aggregate\n---\n"


def followed(sql: str) -> list[str] | None:
    """The outputs over aggregates, then HAVING; None where rows of a key are read again."""
    query = project({**SHOP, "models/users.sql": HEAD + sql})["users"].grouped
    assert query is not None
    found = query.followed
    if found is None:
        return None
    assert sql[found.items_end :].startswith("FROM")
    return [*(f"{one.name}: {one.sql}" for one in found.outputs), found.having or ""]


def test_outputs_are_expressions_over_aggregates() -> None:
    """Equal calls are one aggregate, table names go, and keys have no SQL."""
    sql = (
        "SELECT c.user_id AS u, count(*) AS n, 2 * COUNT( * ) + max(c.event_ts) AS m, 1 AS i "
        "FROM clicks c GROUP BY c.user_id HAVING n > 1 AND count(*) < 9"
    )
    assert followed(sql) == ["u: ", "n: _a0", "m: 2 * _a0 + _a1", "i: 1", "n > 1 AND _a0 < 9"]


@pytest.mark.parametrize(
    "items",
    [
        "count(DISTINCT event_ts) AS n",
        "sum(DISTINCT 1) AS n",
        "count(*) AS n, n + 1 AS m",
        "upper(user_id) AS name",
        "count(user_id, event_ts) AS n",
        "median(1) AS n",
    ],
)
def test_others_are_read_again(items: str) -> None:
    """Aggregates without a state, columns that are neither in an aggregate nor a key, and a column
    in HAVING that is no output, which is not known of a stored row.
    """
    having = "SELECT user_id AS u, count(*) AS n FROM clicks GROUP BY user_id HAVING user_id > 'a'"
    assert followed(having) is None
    assert followed(f"SELECT user_id, {items} FROM clicks GROUP BY user_id") is None
