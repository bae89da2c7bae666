"""How far a cell reads an input, and the lengths of intervals and zones that this is made of."""

from __future__ import annotations

from functools import cache

import pytest
import sqlglot
from tests.analysis.rules.cases import around
from tests.analysis.rules.drawn import FILES, model
from tests.declare.shop import read

from infold.analysis.times.durations import interval_length, zone_offsets
from infold.core.interval import DAY, HOUR, MINUTE, SECOND

FRONT = (
    "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: day, partition_column: day}\n---\n"
)
DAYS_6 = "RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW"


@cache
def bounds(sql: str) -> dict[str, list[tuple[float, float]]]:
    """The days before and after a cell that each input is read, at each place that names it."""
    project, errors = read({**around(sql), "models/subject.sql": FRONT + sql})
    assert project is not None, errors
    return {
        entry.name: [(round(b.before / DAY, 3), round(b.after / DAY, 3)) for b in entry.bounds]
        for entry in project["subject"].inputs
        if entry.time_column is not None
    }


SIDE_BY_SIDE = f"""
SELECT cast(event_ts AS date) AS day,
       sum(amount) OVER (PARTITION BY user_id ORDER BY event_ts {DAYS_6}) AS total,
       min(amount) OVER (PARTITION BY user_id ORDER BY event_ts {DAYS_6}) AS least,
       max(amount) OVER (PARTITION BY user_id ORDER BY event_ts DESC {DAYS_6}) AS most
FROM clicks
"""
NESTED = f"""
SELECT cast(event_ts AS date) AS day, sum(n) OVER (ORDER BY event_ts {DAYS_6}) AS n
FROM (SELECT event_ts, count(*) OVER (ORDER BY event_ts {DAYS_6}) AS n FROM clicks)
"""
KEYED = """
SELECT cast(o.session_start AS date) AS day,
       row_number() OVER (PARTITION BY o.session_id, o.session_start ORDER BY c.event_id) AS n
FROM sessions AS o
JOIN clicks AS c
  ON c.event_ts BETWEEN o.session_start - INTERVAL 30 DAYS AND o.session_start
"""
GROUPED = """
SELECT cast(o.session_start AS date) AS day, o.session_id, max(c.event_ts) AS last
FROM sessions AS o
JOIN clicks AS c
  ON c.event_ts BETWEEN o.session_start - INTERVAL 30 DAYS AND o.session_start
GROUP BY o.session_id, o.session_start
"""
SIDES = """(
  SELECT event_ts AS ts, event_ts AS key FROM clicks
  UNION ALL SELECT session_start AS ts, session_start - INTERVAL 5 DAYS AS key FROM sessions
) AS x"""


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param(SIDE_BY_SIDE, {"clicks": [(6, 6)]}, id="windows side by side"),
        pytest.param(NESTED, {"clicks": [(12, 0)]}, id="a window over a window"),
        pytest.param(
            KEYED,
            {"sessions": [(0, 0)], "clicks": [(30, 0)]},
            id="a partition by the time column of the join",
        ),
        pytest.param(
            GROUPED, {"sessions": [(0, 0)], "clicks": [(30, 0)]}, id="the same as a group"
        ),
        pytest.param(
            f"SELECT cast(ts AS date) AS day, count(*) OVER (PARTITION BY key) AS n FROM {SIDES}",
            {"clicks": [(5, 0)], "sessions": [(0, 5)]},
            id="a partition by a column that is further off on one side of a UNION",
        ),
        pytest.param(
            f"SELECT cast(ts AS date) AS day, d.n FROM {SIDES} JOIN daily AS d ON d.day = x.key",
            {"clicks": [(0, 0)], "sessions": [(0, 0)], "daily": [(5, 0)]},
            id="a join by such a column",
        ),
    ],
)
def test_a_bound_is_as_long_as_it_has_to_be(
    sql: str, expected: dict[str, list[tuple[float, float]]]
) -> None:
    """Bounds of nested ranges add up, parallel ranges share
    the longest, and a UNION has those of both sides.
    """
    assert bounds(sql) == expected


def test_the_extreme_of_a_value_that_shares_no_input_with_its_group_is_refused() -> None:
    """A LEFT JOIN of rows that nothing bounds is refused, also where a group over it has a MIN."""
    far = "SELECT a.ts FROM clicks AS a JOIN clicks AS b ON b.ts <= a.ts"
    sql = (
        "SELECT p.since AS part, min(p.place) AS n FROM places AS p LEFT JOIN "
        f"({far}) AS o ON o.ts BETWEEN p.since - INTERVAL '1' DAY AND p.since GROUP BY p.since"
    )

    _, found = read({**FILES, "models/subject.sql": model(sql, "hour")})

    assert [finding.slug for finding in found] == ["join-over-cells"]


@pytest.mark.parametrize(
    ("sql", "least", "most"),
    [
        ("INTERVAL '30 minutes'", 30 * MINUTE, None),
        ("INTERVAL 30 MINUTES", 30 * MINUTE, None),
        ("INTERVAL '1' DAY", DAY, None),
        ("INTERVAL -3 DAYS", -3 * DAY, None),
        ("- INTERVAL 1 DAY", -DAY, None),
        ("INTERVAL 1 DAY 2 HOURS", 26 * HOUR, None),
        ("INTERVAL '1 day 2 hours'", 26 * HOUR, None),
        ("INTERVAL '1 02:03:04' DAY TO SECOND", 26 * HOUR + 3 * MINUTE + 4 * SECOND, None),
        ("INTERVAL '-1 02:00:00' DAY TO SECOND", -26 * HOUR, None),
        ("INTERVAL '10:20' HOUR TO MINUTE", 10 * HOUR + 20 * MINUTE, None),
        ("INTERVAL '1.5' SECOND", SECOND + SECOND // 2, None),
        ("INTERVAL 2 WEEKS", 14 * DAY, None),
        ("2 * INTERVAL 3 HOURS", 6 * HOUR, None),
        ("make_dt_interval(1, 2)", 26 * HOUR, None),
        ("make_interval(0, 0, 0, 1)", DAY, None),
        ("INTERVAL '1' MONTH", 25 * DAY, 31 * DAY),
        ("INTERVAL '1-0' YEAR TO MONTH", 362 * DAY, 366 * DAY),
        *(
            (sql, None, None)
            for sql in ("INTERVAL '1 day' HOUR", "x", "INTERVAL n DAYS", "'1 day'")
        ),
    ],
)
def test_spark_intervals_have_a_length(sql: str, least: int | None, most: int | None) -> None:
    """Spark intervals in every syntax have a length; months have a shortest and a longest one. A
    column, or a text that Spark does not accept as an interval, has no constant length.
    """
    node = sqlglot.parse_one(f"SELECT {sql}", read="spark").expressions[0]
    length = None if least is None else (least, least if most is None else most)

    assert interval_length(node) == length


def test_zones_are_as_far_from_utc_as_their_clocks_ever_were() -> None:
    """A zone's distance from UTC is the largest its clocks
    ever had, local mean time and double summer time included.
    """
    assert zone_offsets("+05:30") == (5 * HOUR + 30 * MINUTE,) * 2
    assert zone_offsets("UTC") == (0, 0)
    berlin = zone_offsets("Europe/Berlin")
    assert berlin is not None
    assert (berlin[0] < HOUR, berlin[1]) == (True, 3 * HOUR)
    assert zone_offsets("Mars/Base") is None
