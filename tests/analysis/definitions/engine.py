"""DuckDB over a few rows with many NULLs and duplicates evaluates the queries of the tests."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count
from math import isnan
from random import Random

import duckdb
from tests.analysis.definitions.pairs import COLUMNS, VIEW

WORLDS = 4
"""How many contents of the tables there are."""


@cache
def engine(
    world: int, kept: tuple[tuple[str, frozenset[str]], ...] | None = None
) -> duckdb.DuckDBPyConnection:
    """
    The engine with tables of some content.

    With ``kept``, columns of tables, all others have other values in the same rows.
    """
    made = _connection().cursor()
    made.execute(f"USE {_schema(world, kept)}")
    return made


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("SET threads = 1")
    return made


def _schema(world: int, kept: tuple[tuple[str, frozenset[str]], ...] | None) -> str:
    """A schema with these tables."""
    name = f"world_{next(_NUMBERS)}"
    made = _connection()
    made.execute(
        f"CREATE SCHEMA {name}; USE {name};"
        "CREATE TABLE t (a int, b int, c int, s text, d double, xs int[], ts timestamp);"
        "CREATE TABLE u (a int, b int, k int, s text);"
        f"CREATE VIEW v AS {VIEW}"
    )
    one, other = _content(Random(world), 0), _content(Random(world + 1000), 100)
    for table, every in one.items():
        columns = COLUMNS[table]
        wanted = columns if kept is None else dict(kept).get(table, frozenset())
        values = [
            value if name in wanted else changed
            for row, twin in zip(every, other[table], strict=True)
            for name, value, changed in zip(columns, row, twin, strict=True)
        ]
        row = f"({', '.join('?' * len(columns))})"
        made.execute(f"INSERT INTO {table} VALUES {', '.join([row] * len(every))}", values)
    return name


_NUMBERS = count()


def _content(rng: Random, number: int) -> dict[str, list[list[object]]]:
    """The rows of both tables; their unique columns count from a number."""
    found: dict[str, list[list[object]]] = {"t": [], "u": []}
    for at in range(9):
        a, b = _few(rng), _few(rng)
        s, d = rng.choice(["x", "X1", "a b", None]), rng.choice([0.5, 2.0, None])
        xs = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
        ts = f"2024-0{rng.randint(1, 3)}-1{rng.randint(0, 9)} 10:00:00"
        found["t"].append([a, b, number + at - 2, s, d, xs, ts])
    for at in range(6):
        found["u"].append([_few(rng), _few(rng), number + at, "x"])
    return found


def _few(rng: Random) -> int | None:
    return rng.choice([0, 1, 1, 2, 3, None])


Rows = Counter[tuple[object, ...]]


@cache
def rows(
    sql: str, world: int, kept: tuple[tuple[str, frozenset[str]], ...] | None = None
) -> tuple[tuple[str, ...], list[tuple[object, ...]]] | None:
    """The columns and the rows of a query; None where the engine does not take it."""
    try:
        found = engine(world, kept).execute(sql)
        names = tuple(column[0].lower() for column in found.description or ())
        return names, found.fetchall()
    except (duckdb.Error, RuntimeError):
        return None


def seen(
    sql: str,
    columns: frozenset[str],
    world: int,
    kept: tuple[tuple[str, frozenset[str]], ...] | None = None,
) -> Rows | None:
    """The rows of a query in some columns, counted; None where the engine does not take it."""
    found = rows(sql, world, kept)
    if found is None:
        return None
    names, every = found
    order = [names.index(name) for name in sorted(columns)]
    return Counter(tuple(_plain(row[at]) for at in order) for row in every)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if isnan(value) else round(value, 6)
    return tuple(map(_plain, value)) if isinstance(value, list) else value
