"""
Which changes of a query follow from the stored rows, and how; which models are carried out so.

What is claimed is evaluated: DuckDB evaluates the expressions over the rows of the old query, and
compares with the rows of the new one. Pairs that look alike must not be claimed. And which changes
of the granularity alone are proven to change no row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.analysis.definitions.drawn import Query, drawn, written
from tests.analysis.definitions.pairs import meaning, pairs
from tests.analysis.definitions.test_pairs import apart as rows_apart
from tests.analysis.definitions.test_pairs import otherwise
from tests.analysis.fingerprints import redefinitions
from tests.declare.shop import SHOP

from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.derive import over_stored_rows
from infold.core.definition import Category, Derivation, How, Redefinition
from infold.messages.errors import InfoldError

# ruff: noqa: E501 (one case is one row of a table)


SEEDS = st.integers(0, 2**32)


def derived(before: str, after: str, *, files: bool = False) -> Derivation | None:
    """How the rows of one query follow from those of another, if they do."""
    try:
        return over_stored_rows(meaning(before), meaning(after), files=files)
    except (Doubt, RecursionError):
        return None


def shown(found: Derivation | None) -> str:
    """A derivation as a query, without the quotes around names."""
    if found is None:
        return ""
    columns = ", ".join(
        sql if sql == f"`{name}`" else f"{sql} {name}" for name, sql in found.columns
    )
    where = f" WHERE {' AND '.join(found.where)}" if found.where else ""
    return (columns + where).replace("`", "")


ROWS = "SELECT a, b, c AS d, ts FROM t WHERE b > 0"
PAIR = "SELECT struct(a, b AS z) AS p FROM t"
LOOP = "SELECT transform(xs, x -> struct(x.k, x.l AS m)) AS e FROM t"
TWO = LOOP.replace(" FROM", ", transform(xs, x -> struct(x.j)) AS f FROM")
SUMS = "SELECT a, b % 2 AS odd, sum(c) AS total, count(*) AS n FROM t WHERE c > 0 GROUP BY a, b % 2"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # columns
        (ROWS, "SELECT a, ts FROM t WHERE b > 0", "a, ts"),
        (ROWS, "SELECT ts, c AS d, b, a FROM t WHERE b > 0", "ts, d, b, a"),
        (ROWS, "SELECT a, b, c, ts FROM t WHERE b > 0", "a, b, d c, ts"),
        (ROWS, "SELECT a, a + b AS e FROM t WHERE b > 0", "a, a + b e"),
        (ROWS, "SELECT a, x.c * 2 AS e FROM t AS x WHERE x.b > 0", "a, d * 2 e"),
        (ROWS, "SELECT a, 'x' AS e, 1L AS f, DATE '2024-01-01' AS g FROM t WHERE b > 0", "a, 'x' e, 1L f, DATE '2024-01-01' g"),
        (ROWS, "SELECT a, CASE WHEN b IN (1, 2) THEN upper('x') ELSE NULL END AS e FROM t WHERE b > 0", "a, CASE WHEN b IN (1, 2) THEN upper('x') ELSE NULL END e"),
        (ROWS, "SELECT a, cast(ts AS date) AS e, ts - INTERVAL 3 DAYS AS f FROM t WHERE b > 0", "a, cast(ts AS date) e, ts - INTERVAL 3 DAYS f"),
        ("SELECT a, b - 1 AS less FROM t", "SELECT b - 1 AS less, less * 2 AS f FROM t", "less, less * 2 f"),
        ("SELECT a, upper(s) AS big FROM t", "SELECT concat(upper(s), '!') AS e FROM t", "concat(big, '!') e"),
        (SUMS, "SELECT sum(c) / count(*) AS mean, a FROM t WHERE c > 0 GROUP BY a, b % 2", "total / n mean, a"),
        # a wider type
        ("SELECT a, cast(c AS int) AS n FROM t", "SELECT a, CAST(c AS bigint) AS n FROM t", "a, cast(n AS bigint) n"),
        ("SELECT a, cast(a + b AS smallint) AS n FROM t", "SELECT cast((a + b) AS int) AS m FROM t AS t", "cast(n AS int) m"),
        ("SELECT a, cast(c AS decimal(9, 2)) AS n FROM t", "SELECT cast(c AS decimal(12,2)) AS n FROM t", "cast(n AS decimal(12,2)) n"),
        ("SELECT a, cast(sum(b) AS int) AS n FROM t GROUP BY a", "SELECT a, cast(sum(b) AS bigint) AS n FROM t GROUP BY a", "a, cast(n AS bigint) n"),
        ("SELECT a, cast(c AS bigint) AS m, cast(c AS int) AS n FROM t", "SELECT cast(c AS bigint) AS n FROM t", "m n"),
        ("SELECT a, cast(c AS bigint) AS n FROM t", "SELECT a, cast(c AS int) AS n FROM t", ""),
        ("SELECT a, cast(c AS float) AS n FROM t", "SELECT a, cast(c AS double) AS n FROM t", ""),
        ("SELECT a, cast(c AS decimal(9, 2)) AS n FROM t", "SELECT a, cast(c AS decimal(12, 3)) AS n FROM t", ""),
        ("SELECT a, cast(c AS int) AS n FROM t", "SELECT a, cast(c AS decimal(12, 0)) AS n FROM t", ""),
        ("SELECT a, try_cast(c AS int) AS n FROM t", "SELECT a, try_cast(c AS bigint) AS n FROM t", ""),
        ("SELECT a, cast(c AS int) AS n FROM t", "SELECT a, cast(b AS bigint) AS n FROM t", ""),
        ("SELECT a, cast(c AS int) + 1 AS n FROM t", "SELECT a, cast(c AS bigint) + 1 AS n FROM t", ""),
        ("SELECT a, cast(c AS int) AS n, b FROM t", "SELECT a, cast(cast(c AS int) AS bigint) AS n FROM t", "a, cast(n AS bigint) n"),
        # conditions
        (ROWS, "SELECT a, b FROM t WHERE b > 0 AND c = 1", "a, b WHERE d = 1"),
        (ROWS, "SELECT a FROM t WHERE (b > 0) AND (a = 1 OR b IS NULL)", "a WHERE a = 1 OR b IS NULL"),
        (ROWS, "SELECT a FROM t WHERE b > 0 AND NOT (a BETWEEN 1 AND 2) AND ts >= timestamp '2024-02-01 00:00:00'", "a WHERE NOT (a BETWEEN 1 AND 2) AND ts >= timestamp '2024-02-01 00:00:00'"),
        (SUMS, "SELECT a, sum(c) AS total FROM t WHERE c > 0 AND a > 1 GROUP BY a, b % 2", "a, total WHERE a > 1"),
        (SUMS, "SELECT a FROM t WHERE c > 0 GROUP BY a, b % 2 HAVING count(*) > 1 AND max(3) = 3", ""),
        (SUMS, "SELECT a, sum(c) AS total FROM t WHERE c > 0 GROUP BY a, b % 2 HAVING count(*) > 1 AND total < 9", "a, total WHERE n > 1 AND total < 9"),
        ("SELECT x.a, y.k FROM t AS x LEFT JOIN u AS y ON x.a = y.a", "SELECT k FROM t LEFT JOIN u ON t.a = u.a WHERE k IS NULL", "k WHERE k IS NULL"),
        ("SELECT q.e FROM (SELECT a + 1 AS e FROM t) AS q", "WITH q AS (SELECT a + 1 AS e FROM t) SELECT q.e FROM q WHERE q.e > 1", "e WHERE e > 1"),
        # an alias that hides a column: the condition is about the column
        ("SELECT a + 1 AS a FROM t", "SELECT a + 1 AS a FROM t WHERE a > 1", ""),
        ("SELECT b AS a FROM t", "SELECT b AS a FROM t WHERE a > 1", ""),
        ("SELECT b AS a FROM t", "SELECT b AS a FROM t WHERE b > 1", "a WHERE a > 1"),
        ("SELECT a AS b, b AS a FROM t", "SELECT a AS b, b AS a FROM t WHERE a > b", "b, a WHERE b > a"),
        ("SELECT a, sum(c) AS c FROM t GROUP BY a", "SELECT a, sum(c) AS c FROM t GROUP BY a HAVING c > 1", ""),
        # a column that is not stored, or of another entry of FROM
        (ROWS, "SELECT a, s FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a FROM t WHERE b > 0 AND s = 'x'", ""),
        ("SELECT x.a FROM t AS x JOIN u AS y ON x.b = y.b", "SELECT x.a, y.a + 1 AS e FROM t AS x JOIN u AS y ON x.b = y.b", ""),
        ("SELECT x.a FROM t AS x LEFT JOIN u AS y ON x.a = y.a", "SELECT x.a FROM t AS x LEFT JOIN u AS y ON x.a = y.a WHERE y.a = 1", ""),
        ("SELECT x.a, y.k FROM t AS x LEFT JOIN u AS y ON x.a = y.a", "SELECT x.a, y.k FROM t AS x LEFT JOIN u AS y ON x.a = y.a AND x.a > 1", ""),
        ("SELECT x.a, y.k FROM t AS x LEFT JOIN u AS y ON x.a = y.a", "SELECT x.a, y.k FROM t AS x JOIN u AS y ON x.a = y.a", ""),
        # conditions that were there
        (ROWS, "SELECT a, b, c AS d FROM t", ""),
        (ROWS, "SELECT a, b, c AS d FROM t WHERE b > 0 OR a = 1", ""),
        (ROWS, "SELECT a, b, c AS d FROM t WHERE b > 1", ""),
        (ROWS, "SELECT a, b, c AS d FROM t WHERE NOT (b > 0) AND a = 1", ""),
        ("SELECT a, b FROM t WHERE a = 1 OR b = 1", "SELECT a, b FROM t WHERE a = 1", ""),
        ("SELECT a, b FROM t WHERE a = 1 OR b = 1", "SELECT a, b FROM t WHERE (a = 1 OR b = 1) AND a = 1", "a, b WHERE a = 1"),
        # rows are counted, or chosen among others
        ("SELECT DISTINCT a, b FROM t", "SELECT DISTINCT a FROM t", ""),
        ("SELECT DISTINCT a, b FROM t", "SELECT DISTINCT a, b FROM t WHERE a > 1", ""),
        ("SELECT a, b FROM t", "SELECT DISTINCT a, b FROM t", ""),
        ("SELECT a, b, c FROM t ORDER BY c LIMIT 3", "SELECT a, b, c FROM t WHERE a > 1 ORDER BY c LIMIT 3", ""),
        ("SELECT a, b, c FROM t ORDER BY c LIMIT 3", "SELECT a, b FROM t ORDER BY c LIMIT 3", ""),
        ("SELECT a, c, row_number() OVER (ORDER BY c) AS r FROM t", "SELECT a, c, row_number() OVER (ORDER BY c) AS r FROM t WHERE a > 1", ""),
        ("SELECT a, c, row_number() OVER (ORDER BY c) AS r FROM t", "SELECT row_number() OVER (ORDER BY c) AS r, r + 1 AS q FROM t", "r, r + 1 q"),
        ("SELECT a, c, row_number() OVER (ORDER BY c) AS r FROM t", "SELECT a, c FROM t WHERE a > 1", "a, c WHERE a > 1"),
        ("SELECT a, c, count(*) OVER (PARTITION BY a) AS r FROM t", "SELECT a, c, count(*) OVER (PARTITION BY a) AS r FROM t QUALIFY r > 1", ""),
        ("SELECT a, b FROM t UNION ALL SELECT a, b FROM u", "SELECT a, b FROM t WHERE a > 1 UNION ALL SELECT a, b FROM u WHERE a > 1", ""),
        ("SELECT explode(xs) AS x, a FROM t", "SELECT explode(xs) AS x, a FROM t WHERE a > 1", ""),
        ("SELECT count(*) AS n, max(a) AS a FROM t", "SELECT count(*) AS n FROM t WHERE a > 1", ""),
        ("SELECT count(*) AS n, max(a) AS a FROM t", "SELECT count(*) AS n, max(a) AS a FROM t HAVING a > 1", ""),
        ("SELECT a, b FROM t", "SELECT a, count(b) AS b FROM t GROUP BY a", ""),
        # groups
        (SUMS, "SELECT a, sum(c) AS total FROM t WHERE c > 0 GROUP BY a", ""),
        (SUMS, "SELECT a, sum(c) AS total FROM t WHERE c > 0 AND b > 1 GROUP BY a, b % 2", ""),
        (SUMS, "SELECT a, sum(c) AS total FROM t WHERE c > 0 AND c > 1 GROUP BY a, b % 2", ""),
        (SUMS, "SELECT a, sum(c) + 1 AS more, max(c) AS most FROM t WHERE c > 0 GROUP BY a, b % 2", ""),
        (SUMS, "SELECT a, sum(c + 1) AS total FROM t WHERE c > 0 GROUP BY a, b % 2", ""),
        ("SELECT a, b, sum(c) AS n FROM t GROUP BY ROLLUP (a, b)", "SELECT a, b, sum(c) AS n FROM t WHERE a > 1 GROUP BY ROLLUP (a, b)", ""),
        ("SELECT a, b, sum(c) AS n FROM t GROUP BY ALL", "SELECT a, b, a + b AS e, sum(c) AS n FROM t GROUP BY ALL", ""),
        ("SELECT a, b, sum(c) AS n FROM t GROUP BY ALL", "SELECT a, b, sum(c) AS n FROM t WHERE a > 1 GROUP BY ALL", ""),
        # no value of one row
        (ROWS, "SELECT a, rand() AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, current_date AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, now() AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, unix_timestamp() AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, uuid() AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a FROM t WHERE b > 0 AND rand() < 0.5", ""),
        (ROWS, "SELECT a, monotonically_increasing_id() AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, sum(b) OVER (PARTITION BY a) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, lag(b) OVER (ORDER BY ts) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, (SELECT max(k) FROM u) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a FROM t WHERE b > 0 AND a IN (SELECT a FROM u)", ""),
        (ROWS, "SELECT a FROM t WHERE b > 0 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", ""),
        (ROWS, "SELECT a, explode(array(a, b)) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, my_function(a) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, greatest(*) AS e FROM t WHERE b > 0", ""),
        (ROWS, "SELECT a, coalesce(a, *) AS e FROM t WHERE b > 0", ""),
        # structs: fields added, taken away, in another order, from columns and back into them
        (ROWS, "SELECT a, struct(a, c) AS e FROM t WHERE b > 0", "a, named_struct('a', a, 'c', d) e"),
        (PAIR, "SELECT struct(b AS z, a) AS p FROM t", "named_struct('z', p.z, 'a', p.a) p"),
        (PAIR, "SELECT struct(a) AS p FROM t", "named_struct('a', p.a) p"),
        (PAIR, "SELECT struct(a, b AS z, 1 AS one, CAST(NULL AS int) AS none, a + b AS n) AS p FROM t", "named_struct('a', p.a, 'z', p.z, 'one', 1, 'none', CAST(NULL AS int), 'n', p.a + p.z) p"),
        (PAIR, "SELECT b AS y, struct(a, struct(b) AS q) AS p, named_struct('k', a) AS r FROM t", "p.z y, named_struct('a', p.a, 'q', named_struct('b', p.z)) p, named_struct('k', p.a) r"),
        (PAIR, "SELECT struct(c, a) AS p FROM t", ""),
        (PAIR, "SELECT struct(a + 1, b) AS p FROM t", ""),
        (PAIR, "SELECT struct(a, 'x') AS p FROM t", ""),
        (PAIR, "SELECT struct(a, b AS a) AS p FROM t", ""),
        (PAIR, "SELECT struct(a AS A, b) AS p FROM t WHERE a > 1", "named_struct('A', p.a, 'b', p.z) p WHERE p.a > 1"),
        (PAIR, "SELECT p FROM (SELECT struct(a) AS p FROM t) AS q", ""),
        ("SELECT struct(s.f, s.g) AS s FROM t", "SELECT struct(s.g) AS s FROM t", "named_struct('g', s.g) s"),
        ("SELECT s FROM t", "SELECT struct(s.f.g AS h, t.s.k) AS s, a FROM t", ""),
        ("SELECT s, a FROM t", "SELECT struct(s.f.g AS h, t.s.k) AS s, a FROM t", "named_struct('h', s.f.g, 'k', s.k) s, a"),
        ("SELECT s, a FROM t", "SELECT s, a FROM t WHERE s.k > 1", "s, a WHERE s.k > 1"),
        ("SELECT struct(cast(a AS int) AS n) AS p FROM t", "SELECT struct(cast(a AS bigint) AS n) AS p FROM t", "named_struct('n', cast(p.n AS bigint)) p"),
        ("SELECT struct(cast(a AS bigint) AS n) AS p FROM t", "SELECT struct(cast(a AS int) AS n) AS p FROM t", ""),
        ("SELECT struct(sum(c) AS n, a) AS p FROM t GROUP BY a", "SELECT struct(a, sum(c) AS n, sum(c) + 1 AS m) AS p FROM t GROUP BY a", "named_struct('a', p.a, 'n', p.n, 'm', p.n + 1) p"),
        # inside arrays and maps
        ("SELECT xs, a FROM t", "SELECT transform(xs, x -> x + a) AS e FROM t", "transform(xs, x -> x + a) e"),
        ("SELECT xs, a FROM t", "SELECT transform(xs, x -> struct(x.k, x.l.m AS n)) AS xs FROM t", "transform(xs, x -> named_struct('k', x.k, 'n', x.l.m)) xs"),
        ("SELECT xs, a FROM t", "SELECT transform_values(xs, (k, v) -> struct(v.l, k AS a)) AS xs FROM t", "transform_values(xs, (k, v) -> named_struct('l', v.l, 'a', k)) xs"),
        ("SELECT xs, a FROM t", "SELECT transform(xs, x -> x + c) AS e FROM t", ""),
        ("SELECT xs, a FROM t", "SELECT transform(xs, x -> x + y) AS e FROM (SELECT *, b AS y FROM t) AS t", ""),
        ("SELECT xs, a FROM t", "SELECT filter(xs, x -> x > 1) AS e FROM t", ""),
        (LOOP, "SELECT transform(xs, x -> struct(x.l AS m, x.k)) AS e FROM t", "transform(e, x -> named_struct('m', x.m, 'k', x.k)) e"),
        (LOOP, "SELECT transform(xs, x -> struct(x.k, 0 AS zero)) AS e FROM t", "transform(e, x -> named_struct('k', x.k, 'zero', 0)) e"),
        (LOOP, "SELECT transform(xs, x -> struct(x.k, x.j)) AS e FROM t", ""),
        (TWO, "SELECT transform(xs, x -> struct(x.j AS i)) AS e FROM t", "transform(f, x -> named_struct('i', x.j)) e"),
        (TWO, "SELECT transform(xs, x -> struct(x.j, x.k)) AS e FROM t", ""),
        (f"{TWO} AS t".replace("FROM", ", xs FROM"), "SELECT transform(xs, x -> struct(x.j, x.k)) AS e FROM t", "transform(xs, x -> named_struct('j', x.j, 'k', x.k)) e"),
        (LOOP, "SELECT transform(xs, x -> struct(x.k, x.k + 1 AS more)) AS e FROM t", ""),
        (LOOP, "SELECT transform(xs, y -> struct(y.k)) AS e FROM t", ""),
        (LOOP, "SELECT transform(array(xs), x -> struct(x.k)) AS e FROM t", ""),
        ("SELECT transform_values(xs, (k, v) -> struct(v.l, v.m)) AS e FROM t", "SELECT transform_values(xs, (k, v) -> struct(v.m)) AS e FROM t", "transform_values(e, (k, v) -> named_struct('m', v.m)) e"),
        ("SELECT struct(transform(xs, x -> struct(x.k, x.l)) AS z) AS e FROM t", "SELECT struct(transform(xs, x -> struct(x.l)) AS z, 1 AS n) AS e FROM t", "named_struct('z', transform(e.z, x -> named_struct('l', x.l)), 'n', 1) e"),
        (LOOP, "SELECT e FROM t LATERAL VIEW explode(xs) AS e", ""),
        # what rows are grouped by is asked of the stored columns, not of a struct of them
        ("SELECT a, sum(c) AS n FROM t GROUP BY a", "SELECT a, sum(c) AS n FROM t GROUP BY a HAVING struct(a) IS NOT NULL", ""),
        # operators are no calls: the minus of b - (a) is not that of - (a)
        ("SELECT -a AS e, b FROM t", "SELECT b -(a) AS f FROM t", ""),
        ("SELECT -(a) AS e, b, a FROM t", "SELECT b -(a) AS f FROM t", "b -(a) f"),
        ("SELECT a + b AS e, c FROM t", "SELECT a + b * c AS f FROM t", ""),
        ("SELECT sum(a) AS n, b FROM t GROUP BY b", "SELECT sum(a) FILTER (WHERE b > 1) AS m, b FROM t GROUP BY b", ""),
        ("SELECT sum(a) AS n, b FROM t GROUP BY b", "SELECT sum(sum(a)) OVER (ORDER BY b) AS m, b FROM t GROUP BY b", ""),
    ],
)  # fmt: skip
def test_what_follows_from_stored_rows(before: str, after: str, expected: str) -> None:
    """Columns and conditions over stored columns; nothing where there is no proof."""
    found = derived(before, after)

    assert shown(found) == expected
    if found is not None:
        assert check(before, after, found) != "apart"


@pytest.mark.parametrize(
    ("before", "after", "columns", "files"),
    [
        ("SELECT a, b FROM t", "SELECT b, c, a + c AS e, a * 2 AS f FROM t", "b, c, e, a * 2 f", ("c", "e")),
        ("SELECT a FROM t WHERE c > 0", "SELECT a, b FROM t WHERE c > 0 AND a > 1", "a, b WHERE a > 1", ("b",)),
        ("SELECT a FROM t", "SELECT my_function(a) AS e, a FROM t", "e, a", ("e",)),
        ("SELECT a FROM t WHERE c > 0", "SELECT a, b FROM t WHERE c > 0 AND b > 1", "", ()),
        ("SELECT a FROM t WHERE c > 0", "SELECT a, b FROM t", "", ()),
        ("SELECT a FROM t", "SELECT a, x.b FROM t AS x", "a, b", ("b",)),
        ("SELECT a FROM t", "SELECT a, explode(array(b, c)) AS e FROM t", "", ()),
        ("SELECT a FROM t", "SELECT DISTINCT a, b FROM t", "", ()),
    ],
)  # fmt: skip
def test_what_is_read_from_files(
    before: str, after: str, columns: str, files: tuple[str, ...]
) -> None:
    """Columns that stored ones do not tell; conditions on such are no part of it."""
    found = derived(before, after, files=True)

    if found is None:
        assert not columns
        return
    named = replace(found, columns=tuple((name, sql or f"`{name}`") for name, sql in found.columns))
    assert (shown(named), found.from_files) == (columns, files)
    assert attempt(before, after).startswith("of files: ")


def test_what_the_types_of_stored_columns_have_to_be() -> None:
    """A condition before GROUP BY is safe unless its key is a floating-point number; a value that
    is no column of a table is safe if it is stored with its own type.
    """
    one = derived(SUMS, "SELECT a FROM t WHERE c > 0 AND a > 1 GROUP BY a, b % 2")
    two = derived(
        SUMS, "SELECT a FROM t WHERE c > 0 GROUP BY a, b % 2 HAVING count(*) > 1 AND a > 1"
    )

    assert one is not None
    assert two is not None
    assert (one.grouped, one.read_by_value) == (frozenset({"a"}), frozenset())
    assert (two.grouped, two.read_by_value) == (frozenset(), frozenset({("n",)}))


def apart(before: str, after: str, found: Derivation) -> bool | None:
    """Whether the derived rows differ; None where the engine takes one of the queries not."""
    columns = ", ".join(f"{sql} AS {name}" for name, sql in found.columns)
    where = " AND ".join(f"({sql})" for sql in found.where) or "TRUE"
    over = f"SELECT {columns} FROM ({before}) AS stored WHERE {where}".replace("`", '"')
    return rows_apart(over, after, frozenset(name.lower() for name, _ in found.columns))


def check(before: str, after: str, found: Derivation | None) -> str:
    """Compare the rows that are claimed to follow with those of the query."""
    if found is None:
        return "no claim"
    differ = apart(before, after, found)
    assert not differ, f"{shown(found)}\n{before}\n{after}"
    kind = "filtered" if found.where else "columns"
    return "not evaluated" if differ is None else kind


def attempt(before: str, after: str) -> str:
    """Derive and compare; queries that are refused are none."""
    try:
        meaning(before), meaning(after)
    except (InfoldError, AssertionError):
        return "refused"
    found = derived(before, after, files=True)
    if found is not None and not all(name for name, _ in found.columns):
        return "refused"  # by the rule that each output has a name
    if found is not None and found.from_files:
        told = tuple(pair for pair in found.columns if pair[0] not in found.from_files)
        kind = check(before, after, replace(found, columns=told)) if told else "nothing told"
        return f"of files: {kind}"
    return check(before, after, derived(before, after))


def altered(query: Query, rng: Random) -> Query:
    """A query with columns dropped, computed and reordered, and conditions added."""
    items = [*query.items]
    values = [text for _, text in items]
    if isinstance(query.entries[0][1], str):
        values += ["{0}.a", "{0}.b"]
    if query.group is None and not query.distinct:
        rng.shuffle(items)
        items = items[: rng.randint(1, len(items))]
    for at in range(rng.choice([0, 1, 2])):
        one, two = rng.choice(values), rng.choice([*values, "1", "2"])
        form = rng.choice(["{0} + {1}", "coalesce({0}, {1})", "{0} - ({1})", "greatest({0}, {1})"])
        items.append(
            (f"z{at}", form.replace("{0}", one, 1).replace("{1}", two) if one != "{1}" else one)
        )
    where, having = [*query.where], [*query.having]
    for _ in range(rng.choice([0, 0, 1, 2])):
        term = f"{rng.choice(values)} {rng.choice(['=', '>', '<>', '<='])} {rng.randint(0, 2)}"
        (having if query.group is not None and rng.random() < 0.5 else where).append(term)
    return Query(query.entries, items, where, query.group, having, query.distinct, query.limit)


@pytest.mark.deep
def test_pairs() -> None:
    """What follows from the old query of any pair, in both directions, is what the new one gives."""
    counts = Counter(
        attempt(*of)
        for pair in pairs()
        for of in ((pair.before, pair.after), (pair.after, pair.before))
    )

    assert counts["columns"] > 80
    assert counts["of files: columns"] > 15


@pytest.mark.deep
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_altered_queries(seed: int) -> None:
    """Rows derived for drawn queries with other columns and conditions are those of the query."""
    rng = Random(seed)
    query = drawn(rng)
    event(attempt(written(query), written(altered(query, rng), rng)))


@pytest.mark.deep
@settings(max_examples=120, deadline=None)
@given(seed=SEEDS, changes=st.integers(0, 2))
def test_altered_queries_with_changed_words(seed: int, changes: int) -> None:
    """So they are if some more words are changed at random."""
    rng = Random(seed)
    query = drawn(rng)
    before, after = written(query), written(altered(query, rng), rng)
    event(attempt(before, otherwise(after, rng, changes)))


HEAD = """\
---
materialization: table
timeseries: {event_time_column: session_start, partition_column: day, granularity: day}
incremental: {}
---
"""
DAILY_ROWS = "SELECT cast(session_start AS date) AS day, user_id, revenue FROM sessions"
UNION = f"SELECT {{}} FROM ({DAILY_ROWS} UNION ALL {DAILY_ROWS}) AS q"


def redefined(before: str, after: str, yaml: str = SHOP["infold.yml"]) -> Redefinition:
    """The change of the daily table, and of the project's file."""
    old = {**SHOP, "models/daily.sql": before}
    return redefinitions(old, {**SHOP, "models/daily.sql": after, "infold.yml": yaml})["daily"]


def queries(before: str, after: str) -> Redefinition:
    """The change of the daily table's query."""
    return redefined(HEAD + before, HEAD + after)


@pytest.mark.parametrize(
    ("before", "after", "category", "losses"),
    [
        (DAILY_ROWS, DAILY_ROWS.replace(", revenue", ""), Category.BREAKING, ("revenue",)),
        (DAILY_ROWS, DAILY_ROWS.replace("revenue", "revenue, revenue * 2 AS twice"),
         Category.ADDITIVE, ()),
        (DAILY_ROWS, DAILY_ROWS.replace("user_id, revenue", "revenue, user_id"), Category.NONE,
         ()),
        (UNION.format("day, user_id, revenue"), UNION.format("day, revenue"), Category.BREAKING,
         ("user_id",)),
    ],
    ids=["dropped", "added", "another order", "of a union"],
)  # fmt: skip
def test_other_columns(
    before: str, after: str, category: Category, losses: tuple[str, ...]
) -> None:
    """A column that follows is additive, one that is dropped is the loss; others are derived too,
    whatever is called the change.
    """
    found = queries(before, after)

    assert (found.category, found.how, found.losses) == (category, How.DERIVE, losses)
    assert found.derivation is not None
    assert not found.derivation.changes_nothing
    if after == DAILY_ROWS.replace(", revenue", ""):
        assert found.derivation.columns == (("day", "`day`"), ("user_id", "`user_id`"))


def test_a_moved_start() -> None:
    """No row is proven to stay; all values are known nevertheless."""
    found = redefined(
        HEAD + DAILY_ROWS,
        HEAD.replace("incremental: {}", "incremental: {start: 2024-01-05}") + DAILY_ROWS,
    )

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.columns_kept == frozenset()
    assert found.derivation is not None
    assert found.derivation.changes_nothing


WHOLE = HEAD.replace("incremental: {}", "tags: [whole]")
LIMITED = HEAD.replace("{}", "{safety_overrides: {allow_limit: true}}")
VOUCHED = HEAD.replace(
    "{}", "{safety_overrides: {allow_nondeterministic: true}}"
) + DAILY_ROWS.replace("revenue", "max(revenue) AS m, any_value(entry_url) AS u")
SHIFTED = "date_add(cast(session_start AS date), 1) AS day"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + DAILY_ROWS, HEAD + DAILY_ROWS.replace("cast(session_start AS date) AS day", SHIFTED)),
        (HEAD + DAILY_ROWS.replace("revenue", "revenue, cast(session_start AS date) AS other"),
         HEAD + DAILY_ROWS.replace("cast(session_start AS date) AS day", SHIFTED)),
        (WHOLE + DAILY_ROWS, WHOLE + DAILY_ROWS.replace(", revenue", "")),
        (LIMITED + DAILY_ROWS + " LIMIT 3", LIMITED + DAILY_ROWS.replace(", revenue", "") + " LIMIT 3"),
        (VOUCHED + " GROUP BY ALL", VOUCHED + " GROUP BY ALL HAVING max(revenue) > 1"),
        (HEAD + DAILY_ROWS, HEAD + DAILY_ROWS.replace("FROM sessions", "FROM sessions WHERE events > 1")),
        (
            HEAD + DAILY_ROWS.replace("revenue", "collate(entry_url, 'UTF8_LCASE') = 'A' AS is_a"),
            HEAD + DAILY_ROWS.replace("revenue", "collate(entry_url, 'UTF8_LCASE') = 'A' AS is_a, 1 AS one"),
        ),
    ],
    ids=["moved", "other cells", "whole", "limit", "vouched", "unknown", "letters"],
)  # fmt: skip
def test_built_again(before: str, after: str) -> None:
    """Rows in other cells, tables without cells, and what nobody proves are built."""
    found = redefined(before, after)

    assert found.how is How.REBUILD
    assert found.derivation is None


EVENTS = SHOP["models/clicks.sql"]
SOURCE = SHOP["infold.yml"]
OPTIONAL = SOURCE.replace("url: string", "url: {type: string, optional: true}")
WIDER = SOURCE.replace("decimal(18,2)", "decimal(20,2)")
PLAIN = EVENTS.replace(", url", "")
LATER = "event_ts + INTERVAL 1 DAY AS event_ts"


def events(before: str, after: str, old: str = SOURCE, new: str = SOURCE) -> Redefinition:
    """The change of the events, and of the project's file."""
    one = {"infold.yml": old, "models/clicks.sql": before}
    return redefinitions(one, {"infold.yml": new, "models/clicks.sql": after})["clicks"]


@pytest.mark.parametrize(
    ("before", "after", "files", "yaml"),
    [
        (EVENTS, PLAIN, (), SOURCE),
        (EVENTS, EVENTS.replace("url, amount", "amount, upper(url) AS u"), (), SOURCE),
        (EVENTS, EVENTS + " AND amount > 1", (), SOURCE),
        (PLAIN, EVENTS, ("url",), SOURCE),
        (PLAIN, PLAIN.replace("amount", "concat(url, user_id) AS u"), ("u",), SOURCE),
        (PLAIN, EVENTS, ("url",), OPTIONAL),
        (EVENTS, PLAIN, (), OPTIONAL),
    ],
    ids=["dropped", "computed", "narrowed", "added", "expression", "optional", "no longer"],
)
def test_events(before: str, after: str, files: tuple[str, ...], yaml: str) -> None:
    """Events follow from stored rows too, and from what the files have in other columns. An
    optional column that is read for the first time, or no longer, decides which rows can be used.
    """
    found = events(before, after, yaml, yaml)

    assert (found.category, found.how) == (Category.BREAKING, How.DERIVE)
    assert found.derivation is not None
    assert found.derivation.from_files == files
    assert found.derivation.other_source_columns is (yaml is OPTIONAL)


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        (EVENTS, EVENTS.replace(" WHERE user_id IS NOT NULL", ""), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("event_id,", "upper(event_id) AS event_id,"), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("event_ts, url", f"{LATER}, url"), SOURCE, SOURCE),
        (EVENTS, EVENTS.replace("[event_id]", "[user_id]"), SOURCE, SOURCE),
        (EVENTS, EVENTS + " AND seen_at > event_ts", SOURCE, SOURCE),
        (EVENTS, PLAIN, SOURCE, WIDER),
        (EVENTS, EVENTS, SOURCE, SOURCE.replace("2024-01-01", "2024-01-02")),
        (EVENTS, EVENTS, SOURCE, SOURCE.replace("url: string", "url: string\n      more: int")),
    ],
    ids=["widened", "key", "time", "other key", "not stored", "type", "start", "unread"],
)  # fmt: skip
def test_events_that_are_ingested_again(before: str, after: str, old: str, new: str) -> None:
    """What other rows may be stored by is read from all files."""
    assert events(before, after, old, new).how is How.REBUILD


MONTHLY = HEAD.replace("granularity: day", "granularity: month")
WEEKLY = HEAD.replace("granularity: day", "granularity: week")
EVERY = frozenset({"day", "user_id", "revenue"})


@pytest.mark.parametrize(("before", "after"), [(HEAD, MONTHLY), (MONTHLY, HEAD), (WEEKLY, MONTHLY)])
def test_another_granularity(before: str, after: str) -> None:
    """Longer, shorter or other cells of the same rows: no column changes, and none is lost."""
    found = redefined(before + DAILY_ROWS, after + DAILY_ROWS.replace(" AS day", "  AS  day"))

    assert (found.category, found.how) == (Category.METADATA, How.REBUCKET)
    assert (found.columns_kept, found.losses) == (EVERY, ())
    assert [one.part for one in found.differences] == ["granularity", "layout"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (HEAD + DAILY_ROWS, MONTHLY + DAILY_ROWS.replace(", revenue", "")),
        (HEAD + DAILY_ROWS, MONTHLY + DAILY_ROWS.replace("user_id, revenue", "revenue, user_id")),
        (HEAD + DAILY_ROWS, MONTHLY + DAILY_ROWS + " WHERE revenue > 0"),
        (HEAD + DAILY_ROWS, MONTHLY.replace("{}", "{start: 2024-02-05}") + DAILY_ROWS),
        (LIMITED + DAILY_ROWS + " LIMIT 3",
         LIMITED.replace("granularity: day", "granularity: month") + DAILY_ROWS + " LIMIT 3"),
    ],
    ids=["column", "order", "where", "start", "vouched"],
)  # fmt: skip
def test_anything_else_beside_it(before: str, after: str) -> None:
    """Only the granularity may differ; a query that may give other rows by other cells is built."""
    assert redefined(before, after).how is How.REBUILD


def test_events_and_sessions() -> None:
    """Their rows do not depend on their cells either."""
    series = "timeseries: {event_time_column: session_start, granularity: day}"
    files = {**SHOP, "models/sessions.sql": f"---\n{series}" + SHOP["models/sessions.sql"][3:]}
    longer = {
        name: text.replace("granularity: day", "granularity: month")
        for name, text in files.items()
        if name in ("models/clicks.sql", "models/sessions.sql")
    }
    found = redefinitions(files, {**files, **longer})

    assert {name: one.how for name, one in found.items()} == {
        "clicks": How.REBUCKET,
        "sessions": How.REBUCKET,
    }
