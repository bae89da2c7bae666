"""What a refusal proposes in place of a query gives the same rows, where these are defined."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

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


def clicks(session: SparkSession) -> None:
    """Rows with NULLs, in which those of a user tie in nothing but NULL."""
    rows = [
        (
            f"e{number}",
            f"u{number % 5}" if number % 7 else None,
            datetime(2024, 3, 1, number % 24, number, tzinfo=UTC),
            f"/{number}" if number % 4 else None,
            number if number % 3 and number % 5 else None,
            f"{'cC'[number % 4 // 2]}{number % 3}" if number % 2 else None,
        )
        for number in range(48)
    ]
    view(
        session,
        "clicks",
        rows,
        "event_id string, user_id string, event_ts timestamp, url string, amount int, code string",
    )


def test_what_a_choice_is_replaced_by(spark: SparkSession) -> None:
    """NULL in an order takes no part in a choice, and still takes none with a second column.

    Rows of a user tie in nothing but NULL, so that Spark has one answer for what was refused.
    """
    session = interpreted(spark)
    clicks(session)
    queries = [REFUSED[at].format(call.replace("OVER w", f"OVER {WINDOW}")) for at, call in CALLS]
    instead = [proposed(call, REFUSED[at]) for at, call in CALLS]
    found = rows_of(session, [*queries, *instead])
    for (_, call), before, after in zip(
        CALLS, found[: len(CALLS)], found[len(CALLS) :], strict=True
    ):
        assert before is not None, call
        assert before == after, call


HOUR = HEAD.replace(
    "table\n",
    "table\nincremental: {}\n"
    "timeseries: {event_time_column: event_ts, partition_column: x, granularity: hour}\n",
)
EACH = "SELECT xxhash64(event_id) AS id, {} AS x FROM clicks GROUP BY xxhash64(event_id)"
QUARTER = "from_unixtime(unix_timestamp(event_ts) - unix_timestamp(event_ts) % 900)"


class Pair(NamedTuple):
    """
    A refused query, words of its message, and what these say: ``old`` is replaced by ``new``.

    ``shown`` is what has to be equal of both, over ``x``: what was refused may have no order, or
    another type (``shown_instead``).
    """

    refused: str
    message: str
    old: str
    new: str
    shown: str = "x"
    head: str = HEAD
    shown_instead: str = ""


PAIRS = (
    Pair(
        REFUSED[0].format("collect_list(url)"),
        "sort_array(collect_list(…))",
        "collect_list(url)",
        "sort_array(collect_list(url))",
        "sort_array(x)",
    ),
    Pair(
        REFUSED[0].format("collect_set(code)"),
        "sort_array(collect_set(…))",
        "collect_set(code)",
        "sort_array(collect_set(code))",
        "sort_array(x)",
    ),
    Pair(
        REFUSED[0].format("listagg(url)"),
        "listagg(x) WITHIN GROUP (ORDER BY x)",
        "listagg(url)",
        "listagg(url) WITHIN GROUP (ORDER BY url)",
        "sort_array(split(x, '/'))",
    ),
    Pair(EACH.format("first(url)"), "min_by or max_by", "first(url)", "min_by(url, struct(url))"),
    Pair(EACH.format("any_value(url)"), "min, max, min_by", "any_value(url)", "min(url)"),
    Pair(EACH.format("any_value(url)"), "min, max, min_by", "any_value(url)", "max(url)"),
    Pair(
        "SELECT mode(url IS NULL) AS x FROM clicks", "mode(x, true)", "IS NULL)", "IS NULL, true)"
    ),
    Pair(
        REFUSED[1].format("row_number() OVER (PARTITION BY user_id ORDER BY event_ts)"),
        "Add event_id to ORDER BY.",
        "BY event_ts",
        "BY event_ts, event_id",
    ),
    Pair(
        REFUSED[1].format("lag(url) OVER (PARTITION BY user_id ORDER BY event_ts DESC)"),
        "Add event_id to ORDER BY.",
        "BY event_ts DESC",
        "BY event_ts DESC, event_id",
    ),
    Pair(
        REFUSED[1].format("event_ts - TIMESTAMP '2024-03-01 12:00'"),
        "unix_micros(b) - unix_micros(a)",
        "event_ts - TIMESTAMP '2024-03-01 12:00'",
        "unix_micros(event_ts) - unix_micros(TIMESTAMP '2024-03-01 12:00')",
        "timestampdiff(MICROSECOND, TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01' + x)",
        shown_instead="x",
    ),
    Pair(
        "SELECT code COLLATE UTF8_LCASE AS x, count(*) AS n FROM clicks GROUP BY 1",
        "lower(x) in place of x COLLATE UTF8_LCASE",
        "code COLLATE UTF8_LCASE",
        "lower(code)",
        "lower(x COLLATE UTF8_BINARY)",
    ),
    Pair(
        f"SELECT {QUARTER} AS x, count(*) AS n FROM clicks GROUP BY 1",
        "to_timestamp(from_unixtime(…))",
        QUARTER,
        f"to_timestamp({QUARTER})",
        "cast(x AS timestamp)",
        HOUR,
    ),
)


def test_what_other_messages_propose(spark: SparkSession) -> None:
    """A query with what its refusal proposes is accepted, and has the rows of the refused one."""
    session, every = interpreted(spark), []
    clicks(session)
    for pair in PAIRS:
        _, errors = read({**around(pair.refused), "models/example.sql": pair.head + pair.refused})
        assert any(pair.message in str(error) for error in errors), (pair.refused, errors)
        other = pair.refused.replace(pair.old, pair.new)
        _, errors = read({**around(other), "models/example.sql": pair.head + other})
        assert not errors, (other, errors)
        every += [
            f"SELECT * EXCEPT (x), {shown} AS x FROM ({query})"
            for query, shown in (
                (pair.refused, pair.shown),
                (other, pair.shown_instead or pair.shown),
            )
        ]

    found = rows_of(session, every)
    for pair, before, after in zip(PAIRS, found[::2], found[1::2], strict=True):
        assert before is not None, pair
        assert before == after, pair


def test_a_condition_that_is_put_into_the_value(spark: SparkSession) -> None:
    """``sum(CASE WHEN … THEN x END)`` is the sum with FILTER, which Spark has in no window."""
    session = interpreted(spark)
    clicks(session)
    forms = (
        ("sum(amount) FILTER (WHERE code IS NULL)", "sum(CASE WHEN code IS NULL THEN amount END)"),
        ("count(*) FILTER (WHERE amount > 9)", "count(CASE WHEN amount > 9 THEN 1 END)"),
    )
    for filtered, other in forms:
        refused = REFUSED[1].format(f"{filtered} OVER (PARTITION BY user_id)")
        _, [error] = read({**around(refused), "models/example.sql": HEAD + refused})
        assert f"{other.partition('(')[0]}(CASE WHEN … THEN" in str(error)
        window = REFUSED[1].format(f"{other} OVER (PARTITION BY user_id)")
        groups = f"SELECT user_id, {filtered} AS x FROM clicks GROUP BY user_id"
        by_group = f"SELECT event_id, x FROM clicks c JOIN ({groups}) g ON g.user_id <=> c.user_id"
        found = rows_of(session, [window, by_group])
        assert found[0] == found[1] is not None, filtered
