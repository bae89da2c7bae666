"""DuckDB over a few rows with many NULLs and duplicates evaluates the queries of the tests."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import isnan
from random import Random

import duckdb
from tests.analysis.definitions.pairs import VIEW

WORLDS = 4
"""How many contents of the tables there are."""


@cache
def engine(world: int) -> duckdb.DuckDBPyConnection:
    """The engine with tables of some content."""
    rng, made = Random(world), duckdb.connect()
    made.execute("SET threads = 1")
    made.execute("CREATE TABLE t (a int, b int, c int, s text, d double, xs int[], ts timestamp)")
    made.execute("CREATE TABLE u (a int, b int, k int, s text)")
    for at in range(9):
        a, b = _few(rng), _few(rng)
        row = [a, b, at - 2, rng.choice(["x", "X1", "a b", None]), rng.choice([0.5, 2.0, None])]
        xs = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
        made.execute(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)",
            [*row, xs, f"2024-0{rng.randint(1, 3)}-1{rng.randint(0, 9)} 10:00:00"],
        )
    for at in range(6):
        made.execute("INSERT INTO u VALUES (?, ?, ?, ?)", [_few(rng), _few(rng), at, "x"])
    made.execute(f"CREATE VIEW v AS {VIEW}")
    return made


def _few(rng: Random) -> int | None:
    return rng.choice([0, 1, 1, 2, 3, None])


Rows = Counter[tuple[object, ...]]


def rows(sql: str, world: int) -> tuple[tuple[str, ...], list[tuple[object, ...]]] | None:
    """The columns and the rows of a query; None where the engine does not take it."""
    try:
        found = engine(world).execute(sql)
        names = tuple(column[0].lower() for column in found.description or ())
        return names, found.fetchall()
    except (duckdb.Error, RuntimeError):
        return None


def seen(sql: str, columns: frozenset[str], world: int) -> Rows | None:
    """The rows of a query in some columns, counted; None where the engine does not take it."""
    found = rows(sql, world)
    if found is None:
        return None
    names, every = found
    order = [names.index(name) for name in sorted(columns)]
    return Counter(tuple(_plain(row[at]) for at in order) for row in every)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if isnan(value) else round(value, 6)
    return tuple(map(_plain, value)) if isinstance(value, list) else value
