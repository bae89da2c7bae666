"""Columns are followed to the stored columns that they are made of."""

from __future__ import annotations

import pytest
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.column_sources import ColumnSources, column_sources
from infold.analysis.definitions.meanings import Meanings

VIEW = "---\nmaterialization: view\n---\n"
TABLE = "---\nmaterialization: table\n---\n"


def sources(
    query: str, view: str = "SELECT user_id AS who, amount * 2 AS twice FROM clicks"
) -> ColumnSources:
    """Those of a table over the shop, with a view before it."""
    shop = project(
        {**SHOP, "models/seen.sql": VIEW + view + "\n", "models/made.sql": TABLE + query + "\n"}
    )
    relation = Meanings.of(shop, shop.sources)["made"].relation
    assert relation is not None
    return column_sources(relation)


def fields(query: str) -> dict[str, str]:
    """Each column with what it is made of, in a line."""
    return {
        name: ", ".join(f"{table}.{column} {how.name.lower()}" for (table, column), how in
                        sorted(places.items()))
        for name, places in sources(query).fields.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT url FROM clicks", {"url": "clicks.url identity"}),
        ("SELECT URL AS page FROM clicks", {"page": "clicks.url identity"}),
        ("SELECT upper(url) u FROM clicks", {"u": "clicks.url transformation"}),
        ("SELECT sum(amount) AS a FROM clicks", {"a": "clicks.amount aggregation"}),
        ("SELECT count(*) AS n FROM clicks", {"n": ""}),
        (
            "SELECT who, twice + 1 AS t FROM seen",
            {"who": "clicks.user_id identity", "t": "clicks.amount transformation"},
        ),
        (
            "SELECT * FROM (SELECT user_id u, max(amount) m FROM clicks GROUP BY 1)",
            {"u": "clicks.user_id identity", "m": "clicks.amount aggregation"},
        ),
        (
            "WITH a AS (SELECT url x FROM clicks) SELECT x FROM a UNION ALL SELECT who FROM seen",
            {"x": "clicks.url identity, clicks.user_id identity"},
        ),
        (
            "SELECT c.url, n.country FROM clicks c JOIN `raw`.countries n ON c.user_id = n.code",
            {"url": "clicks.url identity", "country": "raw.countries.country identity"},
        ),
        (
            "SELECT amount + (SELECT max(amount) FROM clicks) AS d FROM clicks",
            {"d": "clicks.amount aggregation"},
        ),
        (
            "SELECT part FROM clicks LATERAL VIEW explode(split(url, '/')) p AS part",
            {"part": "clicks.url transformation"},
        ),
        (
            "SELECT amount AS a, a + 1 AS b FROM clicks",
            {"a": "clicks.amount identity", "b": "clicks.amount transformation"},
        ),
    ],
)
def test_columns(query: str, expected: dict[str, str]) -> None:
    """Through views, subqueries, CTEs, unions, joins and exploded arrays."""
    assert fields(query) == expected


def test_what_decides_about_rows() -> None:
    """WHERE, joins, GROUP BY and the like are about all columns, those of a view too."""
    seen = sources("SELECT who FROM seen", "SELECT user_id AS who FROM clicks WHERE amount > 1")
    assert seen.rows == {(("clicks", "amount"), "FILTER")}
    found = sources(
        "SELECT c.url, count(*) AS n FROM clicks c JOIN `raw`.countries USING (code) "
        "WHERE amount > 3 GROUP BY c.url HAVING max(event_ts) > TIMESTAMP '2024-01-01'"
        .replace("USING (code)", "n ON c.user_id = n.code")
    )  # fmt: skip

    assert {(table, column, use.value) for (table, column), use in found.rows} == {
        ("clicks", "amount", "FILTER"),
        ("clicks", "event_ts", "FILTER"),
        ("clicks", "url", "GROUP_BY"),
        ("clicks", "user_id", "JOIN"),
        ("raw.countries", "code", "JOIN"),
    }
