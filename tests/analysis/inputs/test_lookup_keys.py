# ruff: noqa: E501 (one case is one row of a table)
"""The equalities by which a lookup is read, and lookups that are read in another way as well."""

from __future__ import annotations

from functools import cache

import pytest
from tests.declare import shop

from infold.analysis.inputs.ingested import tables_named
from infold.analysis.inputs.lookup_keys import lookup_matches_of
from infold.analysis.names.relation import Table
from infold.analysis.names.resolve import resolve
from infold.analysis.sql.parse import parse
from infold.core.project import Node

USERS = "---\nmaterialization: cumulative_aggregate\n---\nSELECT user_id, count(*) AS n FROM clicks GROUP BY user_id"
VIEW = "---\nmaterialization: view\n---\nSELECT user_id AS who, event_ts AS at, url FROM clicks WHERE amount > 0"
SMALL = "---\nmaterialization: view\n---\nSELECT code AS c FROM raw.countries WHERE country <> ''"
FIRST = "---\nmaterialization: table\n---\nSELECT url, count(*) AS n FROM raw.countries JOIN clicks ON url = code GROUP BY 1"


@cache
def known() -> tuple[dict[str, Table], dict[str, Node]]:
    """The tables and nodes of a small project."""
    models = {"users": USERS, "seen": VIEW, "small": SMALL, "pages": FIRST}
    project = shop.project(
        shop.SHOP | {f"models/{name}.sql": text for name, text in models.items()}
    )
    tables: dict[str, Table] = {}
    for node in project.nodes:
        text = parse("m.sql", node.model.sql)
        view = (
            resolve(text.text, text.tree, tables).relation
            if node.name in ("seen", "small")
            else None
        )
        tables[node.name] = Table(node.name, node.columns, view)
    return tables, {node.name: node for node in project.nodes}


def matched(sql: str) -> list[str]:
    """How lookups are matched, as ``lookup: input.sql = own, …``."""
    tables, nodes = known()
    parsed = parse("m.sql", sql)
    assert list(tables_named(parsed.tree))
    found = resolve(parsed.text, parsed.tree, tables)
    assert not found.errors, found.errors
    return [
        f"{match.lookup}: {match.input} "
        + ", ".join(f"{a} = {b}" for a, b in match.pairs).replace("`", "")
        for match in lookup_matches_of(found.relation, nodes)
    ]


BY_USER = "users: clicks user_id = user_id"
BY_URL = "raw.countries: clicks url = code"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT n FROM clicks c LEFT JOIN users u ON c.user_id = u.user_id AND u.n > 1", [BY_USER]),
        ("SELECT n FROM clicks LEFT JOIN users USING (user_id)", [BY_USER]),
        ("SELECT n FROM users u JOIN clicks c ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT n FROM users RIGHT JOIN clicks USING (user_id)", [BY_USER]),
        ("SELECT n FROM clicks c, users u WHERE (u.user_id = c.user_id) AND n > 1", [BY_USER]),
        ("SELECT url FROM clicks c LEFT SEMI JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT url FROM clicks c LEFT ANTI JOIN users u ON u.user_id = c.user_id", [BY_USER]),
        ("SELECT url FROM clicks WHERE url IN (SELECT code FROM raw.countries)", [BY_URL]),
        ("SELECT url FROM clicks WHERE url IN (SELECT c FROM small)", [BY_URL]),
        ("SELECT (SELECT max(country) FROM raw.countries WHERE code = url) AS m FROM clicks", [BY_URL]),
        ("SELECT url FROM clicks c WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.user_id = c.user_id)", [BY_USER]),
        ("SELECT * FROM seen s LEFT JOIN users u ON u.user_id = s.who", [BY_USER]),
        ("SELECT * FROM clicks LEFT JOIN small ON lower(url) = upper(c)", ["raw.countries: clicks LOWER(url) = UPPER(code)"]),
        ("SELECT * FROM clicks LEFT JOIN (SELECT country AS k, code FROM raw.countries) r ON k = cast(event_ts AS date)", ["raw.countries: clicks CAST(event_ts AS DATE) = country"]),
        (
            "SELECT * FROM clicks c LEFT JOIN users u ON u.user_id = c.user_id AND u.n = cast(c.url AS int)",
            ["users: clicks CAST(url AS INT) = n, user_id = user_id"],
        ),
        (
            "WITH d AS (SELECT user_id, count(*) AS k FROM clicks GROUP BY 1) SELECT * FROM d JOIN users u ON u.user_id = d.user_id AND d.k = u.n",
            [BY_USER],
        ),
        (
            "SELECT * FROM clicks c LEFT JOIN users u USING (user_id) LEFT JOIN raw.countries r ON r.code = c.url",
            [BY_USER, BY_URL],
        ),
        (
            "SELECT * FROM (SELECT url AS k, 'x' AS s FROM clicks UNION ALL SELECT coalesce(who, 'nobody'), lower(url) FROM seen) e LEFT JOIN raw.countries r ON r.code = e.k AND r.country = e.s",
            ["raw.countries: clicks 'x' = country, url = code", "raw.countries: clicks COALESCE(user_id, 'nobody') = code, LOWER(url) = country"],
        ),
        (
            "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id UNION ALL SELECT n FROM seen s JOIN users u ON u.user_id = s.who",
            [BY_USER],
        ),
    ],
)  # fmt: skip
def test_equalities_with_a_row_that_has_a_time(sql: str, found: list[str]) -> None:
    """A lookup joined by equality with a row that has a
    time affects only cells with rows of its key.
    """
    assert matched(sql) == found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n FROM clicks c CROSS JOIN users u",
        "SELECT n FROM clicks c JOIN users u ON u.user_id > c.user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id OR u.n = 1",
        "SELECT n FROM clicks c JOIN users u ON u.user_id <=> c.user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = coalesce(c.user_id, 'nobody')",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = concat(c.user_id, c.url)",
        "SELECT n FROM clicks c FULL JOIN users u ON u.user_id = c.user_id",
        "SELECT n FROM clicks c RIGHT JOIN users u ON u.user_id = c.user_id",
        "SELECT n FROM users u LEFT JOIN clicks c ON u.user_id = c.user_id",
        "SELECT n FROM clicks NATURAL JOIN users",
        "SELECT n FROM clicks c, users u RIGHT JOIN seen s ON s.who = c.user_id WHERE u.user_id = c.user_id",
        "SELECT url FROM clicks WHERE user_id NOT IN (SELECT user_id FROM users)",
        "SELECT url, user_id IN (SELECT user_id FROM users) AS known FROM clicks",
        "SELECT url FROM clicks WHERE user_id IN (SELECT user_id FROM users) OR amount > 1",
        "SELECT url FROM clicks WHERE amount > (SELECT avg(n) FROM users)",
        "SELECT url FROM clicks c WHERE amount > (SELECT avg(n) FROM users u WHERE u.user_id = c.user_id OR u.n > 1)",
        # on one side the value is not of one row
        "SELECT n FROM (SELECT user_id AS k FROM clicks UNION ALL SELECT max(who) FROM seen) e JOIN users ON user_id = k",
        # the largest of several values is none of them that one row had beside its time
        "WITH d AS (SELECT max(user_id) AS u FROM clicks) SELECT n FROM d JOIN users ON user_id = d.u",
        # one key of several rows of the lookup, seen through a sum over all of them
        "SELECT k FROM clicks JOIN (SELECT sum(n) AS k, max(user_id) AS u FROM users) ON u = user_id",
        "SELECT n FROM clicks c JOIN users u ON u.user_id = c.user_id WHERE c.url IN (SELECT user_id FROM users WHERE n > 1) IS NULL",
        # matched with a lookup alone
        "SELECT u.n FROM clicks c JOIN pages p ON p.url = c.url JOIN users u ON u.n = p.n",
    ],
)
def test_any_other_way(sql: str) -> None:
    """A lookup that is read in any other way can affect any cell."""
    assert [one for one in matched(sql) if one.startswith("users")] == []
