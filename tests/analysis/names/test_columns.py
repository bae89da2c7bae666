# ruff: noqa: E501 (one case is one row of a table)
"""Columns are resolved as Spark resolves them; an unknown one is an error at its place."""

from __future__ import annotations

import pytest

from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import Resolved, resolve
from infold.analysis.sql.parse import parse

KNOWN = {
    "clicks": Table("clicks", ("id", "User_Id", "ts", "payload", "tags")),
    "raw.countries": Table("raw.countries", ("code", "name")),
    "lake": Table("lake", None),
}


def look_up(sql: str) -> Resolved:
    """A query with its names looked up."""
    parsed = parse("m.sql", sql)
    return resolve(parsed.text, parsed.tree, KNOWN)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM clicks", "id User_Id ts payload tags"),
        ("SELECT c.*, 1 AS one FROM clicks AS c", "id User_Id ts payload tags one"),
        ("SELECT * EXCEPT (payload, TAGS) FROM clicks", "id User_Id ts"),
        ("SELECT USER_ID, clicks.ts FROM clicks", "USER_ID ts"),
        ("SELECT name, countries.code FROM raw.countries", "name code"),
        ("SELECT payload.url, c.payload.size.x AS x FROM clicks c", "url x"),
        ("SELECT id AS a, a + 1 AS b FROM clicks", "a b"),
        ("SELECT id AS a FROM clicks GROUP BY a HAVING a > 1 ORDER BY a", "a"),
        ("SELECT x.id FROM (SELECT id FROM clicks) AS x", "id"),
        ("SELECT a, b FROM (SELECT id, ts FROM clicks) AS x(a, b)", "a b"),
        ("WITH x(a) AS (SELECT id FROM clicks) SELECT a FROM x", "a"),
        ("SELECT * FROM clicks JOIN raw.countries ON code = id", "id User_Id ts payload tags code name"),
        ("SELECT * FROM clicks a JOIN (SELECT id, ts AS t FROM clicks) b USING (id)", "id User_Id ts payload tags t"),
        ("SELECT * FROM clicks LEFT SEMI JOIN raw.countries ON code = id", "id User_Id ts payload tags"),
        ("SELECT * FROM (SELECT id, ts FROM clicks) NATURAL JOIN (SELECT ts, id FROM clicks)", "id ts"),
        ("SELECT id, tag FROM clicks LATERAL VIEW explode(tags) t AS tag", "id tag"),
        ("SELECT id, pos, col FROM clicks LATERAL VIEW posexplode(tags) t", "id pos col"),
        ("SELECT id, explode(tags) AS tag FROM clicks", "id tag"),
        ("SELECT id FROM clicks WHERE EXISTS (SELECT 1 FROM raw.countries WHERE code = clicks.id)", "id"),
        ("SELECT transform(tags, x -> concat(x, id)) AS t FROM clicks", "t"),
        ("SELECT aggregate(tags, 0, (acc, x) -> acc + size(x)) AS t FROM clicks", "t"),
        ("SELECT timestampdiff(MINUTE, ts, ts) AS m, extract(year FROM ts) AS y FROM clicks", "m y"),
        ("SELECT a, col2 FROM (VALUES (1, 2)) AS v(a, col2)", "a col2"),
        ("SELECT col1, col2 FROM VALUES (1, 2)", "col1 col2"),
        ("SELECT id FROM range(10)", "id"),
        ("SELECT anything FROM lake JOIN clicks USING (id)", "anything"),
        ("SELECT id FROM clicks UNION ALL SELECT name FROM raw.countries", "id"),
        ("SELECT sum(id) OVER w AS s FROM clicks WINDOW w AS (PARTITION BY ts)", "s"),
        ("SELECT id FROM clicks QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1", "id"),
        ("SELECT DATE '2024-01-01' AS d, INTERVAL 1 DAY AS i, true AS t, 1L AS n", "d i t n"),
        ("SELECT named_struct('a', id) AS s, s.a FROM clicks", "s a"),
    ],
)  # fmt: skip
def test_columns_of_a_right_query(sql: str, columns: str) -> None:
    """Every column of a valid query is resolved, and the output columns are in their order; those
    of a table without declared ones are unknown, and so is a star over it.
    """
    assert look_up("SELECT * FROM lake").relation.columns is None
    found = look_up(sql)

    assert [str(error) for error in found.errors] == []
    assert list(found.relation.columns or ()) == columns.split()


@pytest.mark.parametrize(
    ("sql", "wrong", "nearest"),
    [
        ("SELECT idd FROM clicks", "idd", "id"),
        ("SELECT c.usr_id FROM clicks c", "c.usr_id", "User_Id"),
        ("SELECT x.id FROM clicks c", "x.id", "id"),
        ("SELECT clicks.id FROM clicks c", "clicks.id", "id"),
        ("SELECT id AS a FROM clicks WHERE a > 1", "a", ""),
        ("SELECT id FROM clicks JOIN raw.countries ON cod = id", "cod", "code"),
        ("SELECT id FROM clicks LEFT SEMI JOIN raw.countries ON true GROUP BY idd", "idd", "id"),
        ("SELECT count(*) AS n FROM clicks GROUP BY tz", "tz", "ts"),
        ("SELECT n FROM (SELECT count(*) AS m FROM clicks)", "n", ""),
        ("SELECT max(n) AS n FROM clicks", "n", ""),
        ("SELECT b AS a, 1 AS b FROM clicks", "b", ""),
        ("WITH x AS (SELECT id FROM clicks) SELECT ts FROM x", "ts", ""),
        ("SELECT transform(tags, x -> x + y) AS t FROM clicks", "y", ""),
        ("SELECT id FROM clicks WHERE id IN (SELECT cod FROM raw.countries)", "cod", "code"),
        ("SELECT sum(id) OVER (PARTITION BY tz) AS s FROM clicks", "tz", "ts"),
    ],
)
def test_an_unknown_column(sql: str, wrong: str, nearest: str) -> None:
    """An unknown column is one error with the caret under its name and the nearest names."""
    (error,) = look_up(sql).errors

    assert error.slug == "unknown-column"
    assert error.at is not None
    assert error.at.text[error.at.column - 1 :][: error.at.width] == wrong
    assert dict(error.facts).get("nearest", "").split(", ")[0] == nearest


def test_all_unknown_names_are_reported() -> None:
    """Unknown tables and columns are reported in every part of a query."""
    found = look_up(
        "SELECT a, b FROM clicks JOIN nowhere ON c = id UNION ALL SELECT d, e FROM elsewhere"
    )

    assert [error.slug for error in found.errors] == ["unknown-table", "unknown-table"]

    found = look_up("SELECT a, id FROM clicks UNION ALL SELECT d, e FROM raw.countries")
    assert [error.slug for error in found.errors] == ["unknown-column"] * 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (clicks JOIN raw.countries ON code = id)",
        "SELECT * FROM clicks PIVOT (count(id) FOR ts IN (1, 2))",
        "SELECT * FROM clicks VERSION AS OF 3",
        "SELECT * FROM clicks TIMESTAMP AS OF '2024-01-01'",
    ],
)
def test_sql_that_cannot_be_analysed_is_refused(sql: str) -> None:
    """SQL that cannot be analysed is refused."""
    assert {error.slug for error in look_up(sql).errors} == {"unsupported-sql"}
