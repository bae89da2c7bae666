"""What a refusal proposes in place of a query gives the same rows, where these are defined."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.analysis.rules.cases import around, under_caret
from tests.declare.shop import read
from tests.spark.analysis.at_once import interpreted, rows_of, view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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
