"""
What the analysis takes for determined by the rows gives the same whichever way they come.

The queries of the rules on order, accepted and refused ones, are evaluated by Spark over the same
rows forwards and backwards, with ties everywhere that no key forbids. An accepted query gives the
same rows both times. A refused one does not: what sees no difference at all would say nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.analysis.rules.cases import Case, cases
from tests.spark.analysis.at_once import interpreted, rows_of, view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


# Rows of one time that Spark sorts alike, and buckets that it makes of one row: their order is
# Spark's own, whichever way the rows come.
UNSEEN = {"alike rows, in two orders", "several buckets of one row tie", "above them, too"}

CASES = [
    case
    for case in cases()
    if case.file in ("ties.sql", "order_dependent.sql")
    if case.front["materialization"] not in ("sessions", "cumulative_aggregate")
    if "allow_nondeterministic" not in str(case.front)
    if case.claim not in UNSEEN
    if {slug for slug, _ in case.refused} <= {"order-not-total", "order-dependent"}
]

AT = datetime(2024, 3, 1, tzinfo=UTC)
TIES = [AT + timedelta(minutes=20 * (i % 4)) for i in range(24)]
TABLES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "clicks": (
        """event_id string, user_id string, event_ts timestamp, url string, amount decimal(18,2),
        code string, unit string, tags array<string>""",
        [
            (f"e{i}", f"u{i % 3}", ts, f"/{i * 7 % 5}", Decimal(i % 3), f"c{i % 2}", u, ["t"])
            for i, (ts, u) in enumerate(zip(TIES, "ab" * 12, strict=True))
        ],
    ),
    "sessions": (
        """session_id string, user_id string, session_start timestamp, session_end timestamp,
        events bigint, revenue decimal(18,2)""",
        [
            (f"s{i}", f"u{i % 3}", AT + timedelta(hours=i), AT + timedelta(hours=i), 1, Decimal(1))
            for i in range(6)
        ],
    ),
    "daily": (
        "day date, user_id string, n bigint",
        [(date(2024, 3, 1 + i // 3), f"u{i % 3}", 1) for i in range(6)],
    ),
    "users": ("user_id string, first_seen timestamp", [(f"u{i}", AT) for i in range(3)]),
    "raw__countries": (
        "code string, country string, parent string, since timestamp",
        [(f"c{i % 2}", f"n{i}", None, None) for i in range(4)],
    ),
}


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> list[dict[str, Counter[str] | None]]:
    """What each query yields over the rows forwards, and over the rows backwards."""
    return [_evaluated(interpreted(spark), step) for step in (1, -1)]


def _evaluated(session: SparkSession, step: int) -> dict[str, Counter[str] | None]:
    for name, (columns, rows) in TABLES.items():
        view(session, name, rows[::step], columns)
    found = rows_of(session, [_plain(case.sql) for case in CASES])
    return dict(zip(map(str, CASES), found, strict=True))


def _plain(sql: str) -> str:
    return re.sub(r"\braw\.(\w+)", r"raw__\1", sql)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_order_of_rows_shows_where_a_query_is_refused(
    both: list[dict[str, Counter[str] | None]], case: Case
) -> None:
    """An accepted query gives the same rows for any order
    of its input; a refused one shows a difference.
    """
    one, other = (found[str(case)] for found in both)

    assert one
    assert (one == other) == (not case.refused)
