# ruff: noqa: E501 (one case is one row of a table)
"""
A sessions query is split into aggregates over events and outputs over those.

So are queries with GROUP BY, if their aggregates have states.
"""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, project

from infold.core.queries import Aggregate, SessionsQuery


def query(items: str, rest: str = "FROM clicks") -> SessionsQuery:
    """The parts of `SELECT items FROM clicks`."""
    front = SHOP["models/sessions.sql"].partition("-- one")[0]
    sql = f"{front}SELECT {items} {rest}\n"
    found = project({**SHOP, "models/sessions.sql": sql, "models/daily.sql": VIEW})[
        "sessions"
    ].query
    assert found is not None
    return found


VIEW = "---\nmaterialization: view\n---\nSELECT * FROM sessions"


def shown(found: Aggregate) -> str:
    """An aggregate in a line."""
    text = f"{found.call}({'' if found.argument is None else found.argument})"
    text += " distinct" * found.distinct + " ignoring nulls" * found.ignore_nulls
    return text + (f" where {found.filter}" if found.filter else "")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count(*)", "count()"),
        ("COUNT(1)", "count()"),
        ("count(url)", "count(url)"),
        ("count(DISTINCT url)", "other(url) distinct"),
        ("count(url, amount)", "other(url)"),
        ("count_if(url LIKE '/pay%')", "count_if(url LIKE '/pay%')"),
        ("sum(amount * 2)", "sum(amount * 2)"),
        ("sum(DISTINCT amount)", "other(amount) distinct"),
        ("min(DISTINCT amount)", "min(amount) distinct"),
        ("avg(amount)", "avg(amount)"),
        ("mean(amount)", "avg(amount)"),
        ("first(url)", "first(url)"),
        ("first(url, true)", "first(url) ignoring nulls"),
        ("first(url, FALSE)", "first(url)"),
        ("first(url) IGNORE NULLS", "first(url) ignoring nulls"),
        ("first(url IGNORE NULLS)", "first(url) ignoring nulls"),
        ("first_value(url)", "first(url)"),
        ("last(url) RESPECT NULLS", "last(url)"),
        ("last_value(url, true)", "last(url) ignoring nulls"),
        ("bool_and(amount > 0)", "bool_and(amount > 0)"),
        ("every(amount > 0)", "bool_and(amount > 0)"),
        ("bool_or(amount > 0)", "bool_or(amount > 0)"),
        ("some(amount > 0)", "bool_or(amount > 0)"),
        ("any(amount > 0)", "bool_or(amount > 0)"),
        ("sum(amount) FILTER (WHERE url IN ('a', 'b'))", "sum(amount) where url IN ('a', 'b')"),
        ("last(url) FILTER (WHERE amount > 0) IGNORE NULLS", "last(url) ignoring nulls where amount > 0"),
        ("collect_list(url)", "other(url)"),
        ("percentile(amount, 0.5)", "other(amount)"),
        ("max_by(url, struct(amount, url))", "other(url)"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)", "other(0.5)"),
        ("approx_count_distinct(url)", "other(url)"),
        ("try_sum(amount)", "other(amount)"),
        ("stddev(amount)", "other(amount)"),
        ("max(transform(array(amount), x -> x + 1))", "max(transform(array(amount), x -> x + 1))"),
    ],
)  # fmt: skip
def test_calls_are_known_by_how_they_merge(call: str, expected: str) -> None:
    """Each call is classified by how its state merges; without a mergeable state it is `other`."""
    found = query(f"{call} AS x")
    aggregate, counted = found.aggregates

    assert counted.sql == "count(*)"  # of every session, for its entry in quarantine
    assert shown(aggregate) == expected
    assert aggregate.sql == call
    assert [output.sql for output in found.outputs] == ["_a0"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("sum(amount) / count(*)", "_a0 / _a1"),
        ("count(*) > 1 AND max(amount) > 5", "_a0 > 1 AND _a1 > 5"),
        ("coalesce(sum(amount), 0)", "coalesce(_a0, 0)"),
        ("CASE WHEN count(*) > 1 THEN 'many' ELSE user_id END", "CASE WHEN _a0 > 1 THEN 'many' ELSE user_id END"),
        ("cast(session_start AS date)", "cast(session_start AS date)"),
        ("clicks.user_id", "user_id"),
        ("unix_timestamp(session_end) - unix_timestamp(min(event_ts))", "unix_timestamp(session_end) - unix_timestamp(_a0)"),
        ("/* a ratio */ sum(amount) -- of\n / count(*)", "_a0 -- of\n / _a1"),
        ("sum(amount) + sum( amount ) + SUM(Amount)", "_a0 + _a0 + _a0"),
        ("first(url) || 'x' || first(url, true)", "_a0 || 'x' || _a1"),
        ("42", "42"),
    ],
)  # fmt: skip
def test_outputs_are_the_users_text_over_aggregates(item: str, expected: str) -> None:
    """Outputs keep the user's text, and calls that differ in spacing only are one aggregate."""
    (output,) = query(f"{item} AS x").outputs

    assert output.sql == expected


def test_table_names_are_removed() -> None:
    """Table names are removed before columns, not inside of strings or before fields of a
    struct.
    """
    found = query(
        "sum(c.amount) FILTER (WHERE c.url <> 'c.url') AS a, max(raw.x) AS b".replace(
            "raw.x", "c.amount"
        ),
        "FROM clicks AS c WHERE c.amount > 0 AND c . url LIKE 'c.%'",
    )

    assert [(one.argument, one.filter, one.sql) for one in found.aggregates[:-1]] == [
        ("amount", "url <> 'c.url'", "sum(amount) FILTER (WHERE url <> 'c.url')"),
        ("amount", None, "max(amount)"),
    ]
    assert found.where == "amount > 0 AND url LIKE 'c.%'"


def test_what_else_a_query_has() -> None:
    """An alias may be written without AS, and quoted. A query has the name, time, user and key of
    its input; a landed source has no key, so its events are ordered by time alone. Without
    aggregates there are start, end and user.
    """
    named = query("count(*) n, sum(amount) `the sum`, sum(amount) AS `a``b`")
    found, landed = (query("count(*) AS n", f"FROM {name}") for name in ("clicks", "raw.clicks"))

    assert [(output.name, output.sql) for output in named.outputs] == [
        ("n", "_a0"),
        ("the sum", "_a1"),
        ("a`b", "_a1"),
    ]
    assert (found.input, found.time_column, found.key) == ("clicks", "event_ts", ("event_id",))
    assert (found.user, found.where) == ("user_id", None)
    assert (landed.input, landed.time_column, landed.key) == ("raw.clicks", "event_ts", ())
    alone = query("session_start AS began").aggregates
    assert [one.sql for one in alone] == ["count(*)"]


HEAD = "---\nmaterialization: cumulative_aggregate\n---\n"


def followed(sql: str) -> list[str] | None:
    """The outputs over aggregates, then HAVING; None where rows of a key are read again."""
    query = project({**SHOP, "models/users.sql": HEAD + sql})["users"].grouped
    assert query is not None
    found = query.followed
    if found is None:
        return None
    assert sql[found.items_end :].startswith("FROM")
    return [*(f"{one.name}: {one.sql}" for one in found.outputs), found.having or ""]


def test_outputs_are_expressions_over_aggregates() -> None:
    """Equal calls are one aggregate, table names go, and keys have no SQL."""
    sql = (
        "SELECT c.user_id AS u, count(*) AS n, 2 * COUNT( * ) + max(c.event_ts) AS m, 1 AS i "
        "FROM clicks c GROUP BY c.user_id HAVING n > 1 AND count(*) < 9"
    )
    assert followed(sql) == ["u: ", "n: _a0", "m: 2 * _a0 + _a1", "i: 1", "n > 1 AND _a0 < 9"]


@pytest.mark.parametrize(
    "items",
    [
        "count(DISTINCT event_ts) AS n",
        "sum(DISTINCT 1) AS n",
        "count(*) AS n, n + 1 AS m",
        "upper(user_id) AS name",
        "count(user_id, event_ts) AS n",
        "median(1) AS n",
    ],
)
def test_others_are_read_again(items: str) -> None:
    """Aggregates without a state, columns that are neither in an aggregate nor a key, and a column
    in HAVING that is no output, which is not known of a stored row.
    """
    having = "SELECT user_id AS u, count(*) AS n FROM clicks GROUP BY user_id HAVING user_id > 'a'"
    assert followed(having) is None
    assert followed(f"SELECT user_id, {items} FROM clicks GROUP BY user_id") is None
