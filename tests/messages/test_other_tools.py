"""Keys and terms of other tools are answered with infold's own."""

from __future__ import annotations

import pytest
from tests.analysis.rules.cases import around
from tests.declare.shop import read

TABLE = "---\nmaterialization: table\n---\n"


def findings(text: str) -> str:
    """All that is found in a model's file."""
    _, found = read({**around(f"clicks {text}"), "models/subject.sql": text})
    return "\n".join(str(error) for error in found)


USERS = "SELECT user_id FROM clicks"


@pytest.mark.parametrize(
    ("front", "query", "expected"),
    [
        ("kind: full", USERS, "materialization (and incremental"),
        ("materialization: table\nlookback: 3", USERS, "as SQLMesh has it"),
        (
            "materialization: sessions\nsessions: {user: user_id, gap: 1 h, max_session_days: 3}",
            "SELECT count(*) AS n FROM clicks",
            "sessions.quarantine_after (as Snowplow has it)",
        ),
        (
            "materialization: table\ntimeseries: {interval_unit: day}",
            USERS,
            "timeseries.granularity (as SQLMesh has it)",
        ),
        ("materialization: table\nmaterialized: view", USERS, "as dbt has it"),
        (
            "materialization: events\ndedup_order_by: [a]",
            "SELECT * FROM raw.clicks",
            "prefer, of events",
        ),
        ("", f"MODEL (name x, kind FULL);\n{USERS}", "a model of SQLMesh"),
        (
            "materialization: table",
            "SELECT user_id FROM {{ ref('clicks') }}",
            "name the model itself in FROM",
        ),
        (
            "materialization: table",
            USERS + " {% if is_incremental() %} WHERE true {% endif %}",
            "each run works out what is stale",
        ),
    ],
)
def test_keys_of_other_tools_are_answered(front: str, query: str, expected: str) -> None:
    """A key, header or template of another tool is answered with the one of infold."""
    assert expected in findings(f"---\n{front}\n---\n{query}" if front else query)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("min_file_age: 5 minutes", "settle, of a source"),
        ("on_schema_mismatch: set_aside", "on_drift (and on_new_columns"),
    ],
)
def test_usual_words_for_keys_of_a_source_are_answered(key: str, expected: str) -> None:
    """A source with the usual word for a key of infold is answered with that key."""
    files = around("SELECT user_id FROM clicks")
    path = "    path: clicks/*.json\n"
    changed = files["infold.yml"].replace(path, f"{path}    {key}\n")
    _, (error,) = read(files | {"infold.yml": changed})

    assert error.slug == "unknown-key"
    assert dict(error.facts)["here"].startswith(expected)
    assert " has it" not in str(error)


def test_a_template_inside_a_string_is_a_string() -> None:
    """A query with a template inside a string is read as it is."""
    assert not findings(TABLE + "SELECT user_id, '{{ x }}' AS t FROM clicks")


DAILY = (
    "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: day, partition_column: day}\n---\n"
)


def test_a_refusal_suggests_bounds() -> None:
    """
    A refusal suggests declared bounds, and leaves their length open. It suggests none for a window
    that counts rows, which have gaps: six rows are days or years.
    """
    pairs = "SELECT a.day FROM daily AS a JOIN clicks AS b ON a.user_id = b.user_id"
    assert "daily: {before: …}, clicks: {before: …}" in findings(DAILY + pairs)

    for window in (
        "sum(n) OVER (ORDER BY day, user_id ROWS 6 PRECEDING)",
        "avg(n) OVER w",
        "lag(n) OVER (ORDER BY day, user_id)",
        "row_number() OVER (ORDER BY day, user_id)",
    ):
        over = "WINDOW w AS (ORDER BY day, user_id ROWS 6 PRECEDING)"
        rows = f"SELECT day, {window} AS s FROM daily {over}"
        assert "bounds:" not in findings(DAILY + rows), window
        assert "safety_overrides: {allow_window_functions: true}" in findings(DAILY + rows), window


def test_one_cause_is_one_finding() -> None:
    """A join without a condition on time; models that depend on it are not judged."""
    join = "FROM daily AS a JOIN clicks AS b ON a.user_id = b.user_id"
    one = findings(f"{DAILY}SELECT a.day, count(*) AS n {join} GROUP BY a.day")
    two = findings(f"{DAILY}SELECT to_date(a.user_id) AS day, count(*) AS n {join} GROUP BY 1")

    assert "join-over-cells" in one
    assert "partition-not-proven" not in one
    assert "group-over-cells" not in one
    assert "join-over-cells" in two
    assert "partition-not-proven" in two
