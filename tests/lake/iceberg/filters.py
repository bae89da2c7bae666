"""The whole language of ``show --where``, generated: every
operator over every type, NULLs, nesting.

The rows have the values that filters get wrong: NULL, NaN, the ends of number
types, both zeros, empty texts, and texts with the signs of LIKE in them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from pyiceberg.schema import Schema

from infold.lake.filter import predicate

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("m", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("o", pa.struct([("x", pa.int32()), ("s", pa.string())])),
    ]
)


def rows() -> pa.Table:
    """Every value beside every kind of NULL."""
    nan, low, high = math.nan, -(2**31), 2**63 - 1
    day, other = date(2024, 3, 9), date(2024, 3, 10)
    at, later = datetime(2024, 3, 9, 12, tzinfo=UTC), datetime(2024, 3, 10, tzinfo=UTC)
    point = {"x": 1, "s": "g"}
    values = [
        (1, "g", True, 1, 1, 0.5, 0.5, Decimal("1.50"), day, at, point),
        (2, "f", False, 2, 2, 0.1, 0.1, Decimal("1.51"), other, later, {"x": 2, "s": None}),
        (3, None, None, None, None, None, None, None, None, None, None),
        (4, "", True, low, high, nan, nan, Decimal("-9.99"), day, None, {"x": None, "s": ""}),
        (5, "it's", None, 0, None, -0.0, 0.0, None, None, at, point),
        (6, "g_h", False, None, 0, 0.0, -0.0, Decimal("0.00"), other, None, None),
        (7, "gxh", None, -1, -high, 3.5, None, Decimal("1.50"), None, later, {"x": 1, "s": None}),
        (8, "50%", True, 2, 2, None, nan, None, day, at, {"x": 3, "s": "g"}),
        (9, None, False, 2**31 - 1, 5, math.inf, -math.inf, Decimal("7.00"), other, None, point),
        (10, "a\\b", None, 1, None, None, None, Decimal("1.50"), day, None, None),
    ]
    columns = zip(*values, strict=True)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)],
        schema=SCHEMA,
    )


_VALUES = {
    "s": ["'g'", "''", "'it''s'", "'z'"],
    "b": ["true", "false"],
    "i": ["1", "-1", "1.5", "-2147483649", "2147483647", "99999999999", "'2'"],
    "n": ["2", "0", "-0.5", "9223372036854775807", "2.0"],
    "f": ["0.5", "0.0", "0.1", "-1", "3.5"],
    "d": ["0.5", "0.0", "0.1", "100"],
    "m": ["1.5", "1.505", "1.51", "-100000000", "99999999.5", "7"],
    "day": ["'2024-03-09'", "date '2024-03-10'", "timestamp '2024-03-09 12:00:00'"],
    "ts": ["timestamp '2024-03-09 12:00:00'", "'2024-03-10'", "'2024-03-09 13:00:00+01:00'"],
    "o.x": ["1", "2", "0"],
    "o.s": ["'g'", "''"],
}
_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_PATTERNS = ("'g%'", "'%'", "'g'", r"'g\_h'", r"'50\%'", r"'50\%%'", "''")


def simple() -> Iterator[str]:
    """Each operator over each type and its values, and over NULL."""
    for name, values in _VALUES.items():
        yield from (f"{name} is null", f"{name} is not null")
        yield from (f"{name} {sign} null" for sign in ("=", "<", "<>", "<=>"))
        for value in values:
            yield from (f"{name} {sign} {value}" for sign in _OPERATORS)
            yield f"{value} < {name}"
            yield f"{name} in ({value})"
            yield f"{name} not in ({value}, {values[0]})"
            yield f"{name} not in ({value}, null)"
            yield f"{name} in (null, {value})"
            yield f"{name} between {values[0]} and {value}"
            yield f"{name} not between {value} and null"
            yield f"{name} is distinct from {value}"
    for pattern in _PATTERNS:
        yield from (f"s like {pattern}", f"s not like {pattern}")
    yield from ("b", "not b", "b is true", "b is not false", "true", "false", "null", "not null")


def nested(seed: int, count: int) -> Iterator[str]:
    """Random AND, OR and NOT over the simple ones, three deep."""
    drawn, parts = random.Random(seed), tuple(simple())

    def one(depth: int) -> str:
        if not depth or drawn.random() < 0.2:
            part = drawn.choice(parts)
        else:
            sides = [one(depth - 1) for _ in range(drawn.choice((2, 2, 3)))]
            part = "(" + drawn.choice((" and ", " or ")).join(sides) + ")"
        return f"not ({part})" if drawn.random() < 0.4 else part

    return (one(3) for _ in range(count))


def every(seed: int = 1, count: int = 300) -> Sequence[str]:
    """All simple ones, each of them negated too, and nested ones."""
    alone = list(simple())
    negated = (f"not ({part})" for part in alone)
    return list(dict.fromkeys([*alone, *negated, *nested(seed, count)]))


AS_SPARK_WRITES = (
    's = "g"',
    "`s` = 'g'",
    r"s = 'it\'s'",
    r"s = 'a\\b'",
    r"s = r'a\b'",
    r"s like 'a\\\\%'",
    "i = 1L or n = 2S",
    "d = 5e-1 or f = 3.5D or m = 1.50BD",
)
"""What DuckDB reads otherwise."""


def ids(where: str, schema: Schema) -> list[int]:
    """The ids of the rows for which infold says that a predicate is true, in memory."""
    from pyiceberg.expressions.visitors import bind
    from pyiceberg.io.pyarrow import expression_to_pyarrow

    bound = bind(schema, predicate(where, schema), case_sensitive=True)
    found = rows().filter(expression_to_pyarrow(bound, schema))
    return sorted(found["id"].to_pylist())
