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
from tests.analysis.rules.cases import Case, around, cases, under_caret
from tests.declare.shop import read
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


REFUSED = (
    "SELECT user_id, {} AS x FROM clicks GROUP BY user_id",
    "SELECT event_id, {} AS x FROM clicks",
)
CALLS = (
    (0, "max_by(url, event_ts)"),
    (0, "min_by(url, amount)"),
    (0, "max_by(url, amount + 1)"),
    (0, "min_by(url, CASE WHEN amount > 2 THEN event_ts END)"),
    (0, "max_by(url, CASE WHEN event_ts > '2024-03-01' THEN amount END)"),
    (0, "min_by(url, if(code IS NULL, NULL, event_ts))"),
    (0, "max_by(url, CASE WHEN amount > 2 THEN event_ts ELSE event_ts - INTERVAL 9 DAYS END)"),
    (0, "min_by(url, struct(event_ts))"),
    (0, "max_by(url, struct(event_ts, amount))"),
    (1, "max_by(url, amount) OVER (PARTITION BY user_id)"),
    (1, "first_value(url) OVER w"),
    (1, "last_value(url) OVER w"),
    (1, "first_value(url) IGNORE NULLS OVER w"),
    (1, "last_value(url) IGNORE NULLS OVER w"),
    (1, "last_value(url, true) OVER w"),
    (1, "last(code) IGNORE NULLS OVER w"),
)
WINDOW = "(PARTITION BY user_id ORDER BY event_ts RANGE BETWEEN INTERVAL 2 HOURS PRECEDING AND CURRENT ROW)"  # noqa: E501
HEAD = "---\nmaterialization: table\n---\n"


def proposed(call: str, query: str) -> str:
    """The query as the only error of the refused one proposes it, which is accepted."""
    refused = query.format(call.replace("OVER w", f"OVER {WINDOW}"))
    _, [error] = read({**around(refused), "models/example.sql": HEAD + refused})
    assert error.slug == "order-not-total"
    assert error.todo is not None
    found = re.fullmatch(r"Say which: (.*?)( OVER the same window)?\.", error.todo, re.DOTALL)
    assert found is not None, error.todo
    window = under_caret(error).partition(" OVER ")[2]
    other = refused.replace(under_caret(error), found[1] + (f" OVER {window}" if window else ""))
    _, errors = read({**around(other), "models/example.sql": HEAD + other})
    assert not errors, (other, errors)
    return other


def test_what_a_choice_is_replaced_by(spark: SparkSession) -> None:
    """NULL in an order takes no part in a choice, and still takes none with a second column.

    Rows of a user tie in nothing but NULL, so that Spark has one answer for what was refused.
    """
    session = interpreted(spark)
    rows = [
        (
            f"e{number}",
            f"u{number % 5}" if number % 7 else None,
            datetime(2024, 3, 1, number % 24, number, tzinfo=UTC),
            f"/{number}" if number % 4 else None,
            number if number % 3 and number % 5 else None,
            f"c{number}" if number % 2 else None,
        )
        for number in range(48)
    ]
    view(
        session,
        "clicks",
        rows,
        "event_id string, user_id string, event_ts timestamp, url string, amount int, code string",
    )
    queries = [REFUSED[at].format(call.replace("OVER w", f"OVER {WINDOW}")) for at, call in CALLS]
    instead = [proposed(call, REFUSED[at]) for at, call in CALLS]
    found = rows_of(session, [*queries, *instead])
    for (_, call), before, after in zip(
        CALLS, found[: len(CALLS)], found[len(CALLS) :], strict=True
    ):
        assert before is not None, call
        assert before == after, call
