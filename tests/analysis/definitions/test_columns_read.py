"""
The columns that a query reads: with other values in all others it has the same rows.

And those that each of its columns is made of, followed to what is stored.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.analysis.definitions.drawn import drawn, written
from tests.analysis.definitions.engine import WORLDS, seen
from tests.analysis.definitions.pairs import COLUMNS, meaning, pairs
from tests.declare.shop import SHOP, project

from infold.analysis.definitions.column_sources import ColumnSources, column_sources
from infold.analysis.definitions.columns_read import ColumnsRead, columns_read
from infold.analysis.definitions.meanings import Meanings


def read(sql: str) -> dict[str, str] | None:
    """The columns that a query reads of each table, in order; None for all."""
    found = columns_read(meaning(sql))
    return None if found is None else {t: " ".join(sorted(c)) for t, c in sorted(found.items())}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t", {"t": "a"}),
        ("SELECT A AS x FROM t WHERE c > 1", {"t": "a c"}),
        ("SELECT count(*) AS n FROM t", {}),
        ("SELECT x.a FROM (SELECT * FROM t) AS x", {"t": "a"}),
        ("WITH w AS (SELECT *, b + c AS d2 FROM t) SELECT a FROM w", {"t": "a"}),
        ("SELECT DISTINCT a FROM (SELECT DISTINCT a, b FROM t) AS x", {"t": "a b"}),
        ("SELECT a FROM (SELECT a, b FROM t UNION ALL SELECT a, k FROM u)", {"t": "a", "u": "a"}),
        ("SELECT a FROM (SELECT a, b FROM t UNION SELECT a, k FROM u)", {"t": "a b", "u": "a k"}),
        ("SELECT t.s FROM t JOIN u ON t.a = u.k", {"t": "a s", "u": "k"}),
        ("SELECT t.s FROM t JOIN u USING (a, b)", {"t": "a b s", "u": "a b"}),
        ("SELECT t.c FROM t LEFT SEMI JOIN u ON t.b = u.b", {"t": "b c", "u": "b"}),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.c)", {"t": "a c", "u": "k"}),
        ("SELECT (SELECT max(k) FROM u WHERE u.a = t.b) AS x FROM t", {"t": "b", "u": "a k"}),
        ("SELECT a AS x, x + 1 AS y FROM t", {"t": "a"}),
        ("SELECT a, sum(b) AS n FROM t GROUP BY 1 HAVING max(d) > 0", {"t": "a b d"}),
        ("SELECT a, row_number() OVER (PARTITION BY s ORDER BY c) AS n FROM t", {"t": "a c s"}),
        ("SELECT a FROM (SELECT a FROM t ORDER BY c LIMIT 3) AS x", {"t": "a c"}),
        ("SELECT a FROM t ORDER BY c", {"t": "a"}),
        ("SELECT q FROM (SELECT a, b, c FROM t) AS x(p, q, r)", {"t": "b"}),
        ("SELECT x FROM t LATERAL VIEW explode(xs) AS x", {"t": "xs"}),
        ("SELECT a FROM v", {"t": "a c"}),
        ("SELECT b FROM v WHERE a = 1", {"t": "a b c"}),
        ("SELECT * FROM u", {"u": "a b k s"}),
        ("SELECT a, rand() AS x FROM t", None),
    ],
    ids=str,
)  # fmt: skip
def test_columns_of_a_query(sql: str, expected: dict[str, str] | None) -> None:
    """Columns count if they affect rows, and only then where that is easily seen."""
    assert read(sql) == expected


def check(sql: str, worlds: int = WORLDS) -> str:
    """Evaluate a query with other values in the columns that it is said not to read."""
    relation = meaning(sql).relation
    columns = frozenset(name.lower() for name in (relation.columns if relation else None) or ())
    found = columns_read(meaning(sql))
    if found is None:
        return "in doubt"
    kept, evaluated = tuple(sorted(found.items())), False
    for world in range(worlds):
        one, other = seen(sql, columns, world), seen(sql, columns, world, kept)
        if one is not None and other is not None:
            evaluated = True
            assert one == other, f"{sql}\nreads {found}"
    if not evaluated:
        return "not evaluated"
    every = all(found.get(name, frozenset()) == set(COLUMNS[name]) for name in found)
    return "all columns" if every else "some columns"


@pytest.mark.deep
def test_pairs() -> None:
    """The queries that are compared elsewhere have the same rows."""
    counts = Counter(check(sql, 2) for pair in pairs() for sql in (pair.before, pair.after))

    assert counts["some columns"] > 200


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_drawn_queries(seed: int) -> None:
    """Queries at random have the same rows."""
    rng = Random(seed)
    event(check(written(drawn(rng), rng)))


def test_columns_of_the_models_of_a_project() -> None:
    """Models read the columns that they name, sessions also those that define them."""
    shop = project(SHOP)
    found = ColumnsRead(shop)

    assert found("sessions", "clicks") == frozenset(
        {"user_id", "event_id", "event_ts", "url", "amount"}
    )
    assert found("daily", "sessions") == frozenset({"session_start", "revenue"})


def test_a_model_that_builds_on_a_persons_word_reads_all_columns() -> None:
    """With an override the query is not relied upon."""
    newest = (
        "---\nmaterialization: table\ntimeseries: {event_time_column: day, granularity: day}\n"
        "incremental: {safety_overrides: {allow_nondeterministic: true}}\n---\n"
        "SELECT to_date(event_ts) AS day, first(url) AS url FROM clicks GROUP BY 1\n"
    )
    shop = project({**SHOP, "models/newest.sql": newest})

    assert ColumnsRead(shop)("newest", "clicks") is None


def test_sessions_of_events_without_a_key_read_all_columns() -> None:
    """All columns decide which of two events of one instant is first."""
    landed = SHOP["models/sessions.sql"].replace("FROM clicks", "FROM raw.clicks")
    found = ColumnsRead(project({**SHOP, "models/visits.sql": landed}))

    assert found("visits", "raw.clicks") is None


def test_time_counts_although_a_query_does_not_name_it() -> None:
    """By it infold chooses the rows that a model reads."""
    total = "---\nmaterialization: table\n---\nSELECT sum(revenue) AS revenue FROM sessions\n"
    found = ColumnsRead(project({**SHOP, "models/total.sql": total}))

    assert found("total", "sessions") == frozenset({"session_start", "revenue"})


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
        ("SELECT who, twice + 1 AS t FROM seen",
         {"who": "clicks.user_id identity", "t": "clicks.amount transformation"}),
        ("SELECT * FROM (SELECT user_id u, max(amount) m FROM clicks GROUP BY 1)",
         {"u": "clicks.user_id identity", "m": "clicks.amount aggregation"}),
        ("WITH a AS (SELECT url x FROM clicks) SELECT x FROM a UNION ALL SELECT who FROM seen",
         {"x": "clicks.url identity, clicks.user_id identity"}),
        ("SELECT c.url, n.country FROM clicks c JOIN `raw`.countries n ON c.user_id = n.code",
         {"url": "clicks.url identity", "country": "raw.countries.country identity"}),
        ("SELECT amount + (SELECT max(amount) FROM clicks) AS d FROM clicks",
         {"d": "clicks.amount aggregation"}),
        ("SELECT part FROM clicks LATERAL VIEW explode(split(url, '/')) p AS part",
         {"part": "clicks.url transformation"}),
        ("SELECT amount AS a, a + 1 AS b FROM clicks",
         {"a": "clicks.amount identity", "b": "clicks.amount transformation"}),
    ],
)  # fmt: skip
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
