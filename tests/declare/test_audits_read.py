# ruff: noqa: E501 (one case is one row of a table)
"""Each mistake in an audit is one error with its place; audits that are right are as declared."""

from __future__ import annotations

import pytest
from tests.declare.shop import CLICKS, SHOP, model, project, read
from tests.declare.test_mistakes import shown

from infold.core.audits import AuditKind, Severity, Within
from infold.planning.plan_notes import tables_of_audits

AT = "models/clicks.sql"


def with_audit(*audits: str) -> dict[str, str]:
    """The project with these entries in `audits` of clicks, the first in line 4."""
    lines = "".join(f"- {one}\n" for one in audits)
    return {**SHOP, AT: CLICKS.replace("unique_key", f"audits:\n{lines}unique_key", 1)}.copy()


MISTAKES = [
    ("not_null: usr_id", "unknown-column models/clicks.sql:4 `` (user_id)"),
    ("not_nul: user_id", "unknown-key models/clicks.sql:4 `not_nul` (not_null)"),
    ("{}", "bad-audit models/clicks.sql:4 `{}`"),
    ("not_null: []", "bad-audit models/clicks.sql:4 `not_null: []`"),
    ("unique: {column: event_id}", "unknown-key models/clicks.sql:4 `column` (columns)"),
    ("unique: {columns: event_id, within: day}", "bad-value models/clicks.sql:4 `day`"),
    (
        "accepted_values: {column: url, values: []}",
        "bad-audit models/clicks.sql:4 `{column: url, values: []}`",
    ),
    ("accepted_range: {column: amount}", "bad-audit models/clicks.sql:4 `{column: amount}`"),
    ("accepted_range: {column: amount, min: [1]}", "wrong-type models/clicks.sql:4 `[1]`"),
    ("row_count: {min: many}", "wrong-type models/clicks.sql:4 `many`"),
    ("freshness: {max_age: soon}", "bad-duration models/clicks.sql:4 `soon`"),
    ("expression: amount >", "bad-sql models/clicks.sql:4 ``"),
    ("expression: nothing > 0", "unknown-column models/clicks.sql:4 ``"),
    ("expression: amount > 0) AND (1 = 1", "bad-audit models/clicks.sql:4 ``"),
    ("expression: sum(amount) > 0", "bad-audit models/clicks.sql:4 ``"),
    ("expression: event_ts < now()", "bad-audit models/clicks.sql:4 ``"),
    ("expression: rand() < amount", "bad-audit models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: users}", "unknown-table models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: sessions}", "bad-audit models/clicks.sql:4 ``"),
    ("relationship: {column: user_id, to: raw.countries}", "bad-audit models/clicks.sql:4 ``"),
]


@pytest.mark.parametrize(("audit", "wanted"), MISTAKES)
def test_a_mistake_has_its_place(audit: str, wanted: str) -> None:
    """A mistake in an audit is the only error of its project, with file and line."""
    _, errors = read(with_audit(audit))

    assert [shown(error)[: len(wanted)] for error in errors] == [wanted]


QUERIES = [
    ("model: clicks\nsevere: warn", "SELECT * FROM clicks", "unknown-key audits/a.sql:3"),
    ("severity: warn", "SELECT * FROM clicks", "missing-key audits/a.sql"),
    ("model: clics", "SELECT * FROM clicks", "unknown-table audits/a.sql:2 `clics` (clicks)"),
    ("model: clicks", "SELECT * FRO clicks", "bad-sql audits/a.sql:4"),
    ("model: clicks", "SELECT nope FROM clicks", "unknown-column audits/a.sql:4 `nope`"),
    ("model: sessions", "SELECT 1 AS one FROM clicks", "bad-audit audits/a.sql:4"),
    (
        "model: clicks",
        "SELECT url FROM clicks WHERE event_ts > now()",
        "bad-audit audits/a.sql:4 `now",
    ),
    ("model: clicks", "SELECT 1 AS a FROM clicks, daily", "bad-audit audits/a.sql:2"),
]


@pytest.mark.parametrize(("front", "sql", "wanted"), QUERIES)
def test_a_mistake_in_a_file_has_its_place(front: str, sql: str, wanted: str) -> None:
    """A mistake in a file of audits/ is the only error, with its place in that file."""
    _, [error] = read({**SHOP, "audits/a.sql": f"---\n{front}\n---\n{sql}"})

    assert shown(error).startswith(wanted)


def test_two_audits_of_one_name() -> None:
    """Two audits of one model cannot have the same name, wherever they are declared."""
    files = with_audit("{not_null: url, name: A}")
    _, errors = read({**files, "audits/a.sql": "---\nmodel: clicks\n---\nSELECT * FROM clicks"})

    assert [error.slug for error in errors] == ["duplicate-name"]


JOINED = "SELECT d.day FROM daily d %s clicks c ON cast(c.event_ts AS date) = d.day"
BY_ROW = {
    "SELECT * FROM daily WHERE revenue < 0": True,
    "SELECT day FROM daily GROUP BY day": False,
    "SELECT DISTINCT day FROM daily": False,
    "SELECT count(*) AS n FROM daily": False,
    "SELECT row_number() OVER (ORDER BY day) AS n FROM daily": False,
    "SELECT a.day FROM daily a JOIN daily b ON a.day = b.day": False,
    "SELECT * FROM daily WHERE revenue > (SELECT avg(revenue) FROM daily)": False,
    "SELECT * FROM (SELECT * FROM daily)": False,
    "WITH c AS (SELECT * FROM daily) SELECT * FROM c": False,
    "SELECT * FROM daily LIMIT 3": False,
    JOINED % "JOIN": True,
    JOINED % "LEFT JOIN": True,
    JOINED % "RIGHT JOIN": False,
    JOINED % "FULL JOIN": False,
    JOINED % "LEFT ANTI JOIN": True,
}


@pytest.mark.parametrize("sql", BY_ROW)
def test_a_query_is_judged_on_written_rows_only_if_each_row_is_alone(sql: str) -> None:
    """A SELECT whose bad rows depend on other rows of the model, or that gives rows without a row
    of it, is judged on the whole table.
    """
    found = project({**SHOP, "audits/a.sql": f"---\nmodel: daily\n---\n{sql}"})

    [audit] = found["daily"].model.audits
    assert audit.by_row is BY_ROW[sql]


def test_audits_as_declared() -> None:
    """Names, severities, defaults and literals are as they were written."""
    found = project(
        with_audit(
            "not_null: [USER_ID]",
            "{accepted_values: {column: url, values: ['it''s', 3, 2024-01-01, true]}, severity: warn}",
            "row_count: {min: 1}",
            "freshness: {max_age: 1 day}",
            "no_gaps",
        )
    )

    first, values, rows, fresh, gaps = found["clicks"].model.audits
    assert (first.name, first.columns) == ("not_null(USER_ID)", ("user_id",))
    assert values.values == (r"'it\'s'", "3", "'2024-01-01'", "true")
    assert (values.severity, rows.within) == (Severity.WARN, Within.CELL)
    assert (fresh.columns, gaps.kind) == (("event_ts",), AuditKind.NO_GAPS)


def test_the_tables_that_audits_read() -> None:
    """Of a view those that it reads: they come before the model, and are to be built before it is
    judged. They are no part of its definition.
    """
    files = {
        "models/zoo.sql": "---\nmaterialization: table\n---\nSELECT user_id FROM clicks",
        "models/named.sql": "---\nmaterialization: view\n---\nSELECT user_id FROM zoo",
        "audits/unnamed.sql": "---\nmodel: daily\n---\nSELECT d.* FROM Daily d, NAMED WHERE d.day IS NULL",
    }
    found = project({**SHOP, **files})

    assert tables_of_audits(found, found["daily"]) == {"zoo"}
    assert not tables_of_audits(found, found["zoo"])
    names = [node.name for node in found]
    assert names.index("zoo") < names.index("daily")
    assert found["daily"].fingerprint == project()["daily"].fingerprint


def test_a_model_over_a_landed_source_has_audits() -> None:
    """A source that is landed has the name of what it reads, and comes before its reader."""
    codes = model("table\naudits: [{not_null: code}]", "SELECT code FROM raw.countries")

    names = [node.name for node in project({**SHOP, "models/codes.sql": codes})]

    assert names.index("raw.countries") < names.index("codes")
