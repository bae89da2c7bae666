"""Which columns of a table `allow_nondeterministic` leaves open: verify does not compare them."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, read

from infold.core.project import ALL_COLUMNS

HEAD = """---
materialization: table
incremental: {enabled: false, safety_overrides: {allow_nondeterministic: true}}
---
"""

CASES = {
    "SELECT user_id, rand() AS r, current_date() AS d FROM clicks": ("r", "d"),
    "SELECT user_id, first(url) AS url, count(*) AS n FROM clicks GROUP BY 1": ("url",),
    "SELECT user_id, (SELECT max(rand()) FROM clicks) AS r FROM clicks": ("r",),
    "SELECT event_id, row_number() OVER (PARTITION BY user_id ORDER BY url) AS n FROM clicks": (
        "n",
    ),
    "SELECT *, coalesce(rand(), [1, 2][0]) AS r FROM clicks": ("r",),
    "WITH c AS (SELECT * FROM clicks) SELECT user_id, now() AS seen FROM c": ("seen",),
    # rows, or all columns that follow from one
    "SELECT user_id FROM clicks WHERE event_ts < now()": ALL_COLUMNS,
    "SELECT user_id, now() AS seen FROM clicks WHERE event_ts < now()": ALL_COLUMNS,
    "WITH c AS (SELECT *, rand() AS r FROM clicks) SELECT user_id, r FROM c": ALL_COLUMNS,
    "SELECT user_id, rand() AS r, r + 1 AS more FROM clicks": ALL_COLUMNS,
    "SELECT DISTINCT user_id, first_value(url) OVER (ORDER BY user_id) AS u FROM clicks": (
        ALL_COLUMNS
    ),
    "SELECT user_id, now() AS seen FROM clicks UNION ALL SELECT user_id, now() FROM clicks": (
        ALL_COLUMNS
    ),
    "SELECT current_date() AS d, count(*) AS n FROM clicks GROUP BY 1": ALL_COLUMNS,
    "SELECT user_id, count(*) OVER w AS n FROM clicks WINDOW w AS (ORDER BY now())": ALL_COLUMNS,
    # nothing that can be seen without Spark
    "SELECT user_id FROM clicks": ALL_COLUMNS,
}


@pytest.mark.parametrize(("sql", "columns"), CASES.items())
def test_the_columns_that_any_result_will_do_for(sql: str, columns: tuple[str, ...]) -> None:
    """Those whose own expression has the construct; anywhere else it may decide about rows."""
    found, errors = read({**SHOP, "models/picks.sql": HEAD + sql})

    assert errors == []
    assert found is not None
    assert found["picks"].undetermined == columns


def test_what_is_not_allowed_is_compared() -> None:
    """Without the override nothing is left out."""
    found, _ = read(SHOP)

    assert found is not None
    assert {node.undetermined for node in found} == {()}
