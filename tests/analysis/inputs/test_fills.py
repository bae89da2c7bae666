"""Which models have rows in cells without input rows of
that time, because a lookup's rows are kept.
"""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import MODELS, PROJECT
from tests.declare.shop import project

FRONT = """---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day}
incremental: {}
---
"""
KEPT = (
    "SELECT to_date(k.since) AS day, count(c.event_id) AS n FROM raw.countries AS k "
    "LEFT JOIN clicks AS c ON to_date(c.event_ts) = to_date(k.since) GROUP BY 1"
)
MATCHED = (
    "SELECT to_date(event_ts) AS day, country FROM clicks LEFT JOIN raw.countries USING (code)"
)


@pytest.mark.parametrize(
    ("sql", "fills"),
    [
        (KEPT, True),
        (KEPT.replace("LEFT JOIN", "JOIN"), False),
        (MATCHED, False),
        ("SELECT to_date(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1", False),
    ],
)  # fmt: skip
def test_unmatched_rows_fill_cells(sql: str, fills: bool) -> None:
    """With rows kept without a match, the day comes from
    the lookup, so a day without events has rows too.
    """
    files = {f"models/{name}.sql": text for name, text in MODELS.items()}
    found = project({"infold.yml": PROJECT, **files, "models/query.sql": FRONT + sql})

    assert found["query"].fills_cells is fills
