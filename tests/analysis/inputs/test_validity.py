# ruff: noqa: E501 (one case is one row of a table)
"""
Lookups that are read as of a time, and whether the stretch is used for anything else.

And those whose rows are kept, so that cells without input rows of that time have rows.
"""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import MODELS, PROJECT
from tests.declare import shop
from tests.declare.shop import project

from infold.core.project import Validity

VERSIONS = """---
materialization: scd_type_2
unique_key: [user_id]
scd_type_2: {updated_at: event_ts}
---
SELECT user_id, url, event_ts FROM clicks"""
HEAD = """---
materialization: table
timeseries: {event_time_column: day}
incremental: {}
---
SELECT cast(c.event_ts AS date) AS day, """
KEY = "v.user_id = c.user_id"
FROM, TO = "c.event_ts >= v.valid_from", "(c.event_ts < v.valid_to OR v.valid_to IS NULL)"
AS_OF = f"ON {KEY} AND {FROM} AND {TO}"
LEFT = f"clicks c LEFT JOIN v {AS_OF}"


def validity(query: str) -> Validity | None:
    """The stretch by which a query finds rows of the lookup."""
    files = {**shop.SHOP, "models/v.sql": VERSIONS, "models/x.sql": HEAD + query}
    [match] = [one for one in shop.project(files)["x"].matches if one.lookup == "v"]
    return match.validity


@pytest.mark.parametrize(
    ("query", "open_", "passed_on"),
    [
        (f"v.url FROM {LEFT}", True, False),
        (f"v.url FROM clicks c JOIN v ON {KEY} AND v.valid_from <= c.event_ts AND (v.valid_to IS NULL OR v.valid_to > c.event_ts)", True, False),
        (f"v.url FROM clicks c JOIN v ON {KEY} AND {FROM} AND c.event_ts < v.valid_to", False, False),
        (f"v.url FROM clicks c JOIN v ON {KEY} WHERE {FROM} AND {TO}", True, False),
        (f"v.url FROM v RIGHT JOIN clicks c {AS_OF}", True, False),
        (f"count(*) AS n FROM clicks c LEFT ANTI JOIN v {AS_OF} GROUP BY 1", True, False),
        (f"v.url, v.valid_to FROM {LEFT}", True, True),
        (f"v.url, x.u FROM clicks c JOIN v {AS_OF}, LATERAL (SELECT v.valid_to AS u) x", True, True),
        (f"v.* FROM {LEFT}", True, True),
        (f"v.url FROM {LEFT} AND v.valid_from > TIMESTAMP '2024-01-01'", True, True),
        (f"v.url, (SELECT max(country) FROM raw.countries r WHERE r.code = v.url) AS m FROM {LEFT}", True, True),
    ],
)  # fmt: skip
def test_a_lookup_read_as_of_a_time(query: str, open_: bool, passed_on: bool) -> None:
    """Both ends in a condition of the join are its stretch; any other use of them is noted."""
    assert validity(query) == Validity("`event_ts`", "valid_from", "valid_to", open_, passed_on)


@pytest.mark.parametrize(
    "query",
    [
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM}",
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND c.event_ts > v.valid_from AND {TO}",
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND (c.event_ts <= v.valid_to OR v.valid_to IS NULL)",
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND ({FROM} OR c.url = v.url) AND {TO}",
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND (c.event_ts < v.valid_to OR v.valid_from IS NULL)",
        f"v.url FROM clicks c JOIN clicks d ON d.event_ts = c.event_ts JOIN v ON {KEY} AND d.event_ts >= v.valid_from AND (d.event_ts < v.valid_to OR v.valid_to IS NULL)",
        f"v.url FROM clicks c LEFT JOIN v ON {KEY} AND {FROM} AND date_trunc('hour', c.event_ts) < v.valid_to",
    ],
)
def test_a_lookup_read_by_its_key(query: str) -> None:
    """One end, another comparison, another row or another time is no stretch."""
    assert validity(query) is None


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
