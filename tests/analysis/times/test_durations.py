"""Lengths of SQL intervals, and distances of time zones from UTC."""

from __future__ import annotations

import pytest
import sqlglot

from infold.analysis.times.durations import interval_length, zone_offsets
from infold.core.interval import DAY, HOUR, MINUTE, SECOND


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
