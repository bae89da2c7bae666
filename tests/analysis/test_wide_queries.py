"""
Queries of many columns: what an analysis costs grows as they do.

Calls are counted, of our functions and of Python's own: what looks at all columns for each of them
makes 16 times as many for 4 times the columns, and that of 2,000 takes minutes.
"""

from __future__ import annotations

from cProfile import Profile

import pytest
from tests.declare.shop import read

EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.events"""
DAILY = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
"""
WHOLE = "---\nmaterialization: table\n---\n"
USERS = "---\nmaterialization: cumulative_aggregate\n---\n"
VISITS = "---\nmaterialization: sessions\nsessions: {user: id, gap: 30 minutes}\n---\n"
DAY = "SELECT cast(at AS date) AS day, "
SHAPES = {
    "star": (DAILY + DAY + "* FROM events", ""),
    "nested": (
        DAILY + "WITH a AS (SELECT *, cast(at AS date) AS day FROM events), "
        "b AS (SELECT day, {each} FROM a) SELECT * FROM b",
        "upper({0}) AS {0}",
    ),
    "renamed": (
        DAILY + "SELECT * FROM (" + DAY + "{each} FROM events) AS t(day, {names})",
        "{0}",
    ),
    "natural": (WHOLE + "SELECT * FROM events NATURAL JOIN events AS other", ""),
    "using": (WHOLE + "SELECT {names} FROM events JOIN events AS o USING ({each})", "{0}"),
    "union": (DAILY + DAY + "{each} FROM events UNION ALL " + DAY + "{each} FROM events", "{0}"),
    "keys": (DAILY + DAY + "{each}, count(*) AS n FROM events GROUP BY day, {names}", "{0}"),
    "lists": (
        DAILY + DAY + "{each} FROM events GROUP BY 1",
        "sort_array(collect_list({0})) AS {0}",
    ),
    "windows": (
        DAILY + DAY + "{each} FROM events",
        "lag({0}) OVER (PARTITION BY cast(at AS date), id ORDER BY at) AS {0}",
    ),
    "subqueries": (WHOLE + "SELECT {each} FROM raw.few", "(SELECT max({0}) FROM events) AS {0}"),
    "users": (
        USERS + "SELECT id, {each} FROM events GROUP BY id",
        "count(DISTINCT {0}) AS {0}",
    ),
    "visits": (
        VISITS + "SELECT {each} FROM events",
        "first({0}) AS {0}",
    ),
}
WIDTHS = (40, 160)


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_grow_with_the_columns(shape: str) -> None:
    """Four times the columns, about four times the calls."""
    few, many = (_calls(shape, width) for width in WIDTHS)

    assert many < 4.6 * few


def _calls(shape: str, width: int) -> int:
    """How many calls the analysis of a project makes."""
    names = [f"c{number}" for number in range(width)]
    columns = "".join(f", {name}: string" for name in names)
    query, each = SHAPES[shape]
    listed = ", ".join(each.format(name) for name in names)
    texts = {
        "infold.yml": "name: wide\nsources:\n  raw.events:\n    path: landing/*.json\n"
        "    event_time_column: at\n"
        f"    columns: {{id: string, at: timestamp{columns}}}\n"
        "  raw.few: {path: few/*.json, columns: {id: string}}\n",
        "models/events.sql": EVENTS,
        f"models/{shape}.sql": query.replace("{names}", ", ".join(names)).replace("{each}", listed),
    }
    with Profile() as profile:
        _, errors = read(texts)
    assert not errors, errors
    return sum(entry.callcount for entry in profile.getstats())
