"""
Aggregates in plain Python, each beside the Spark SQL that means the same.

Every function is over *ordered* rows: those of a session, in order of event time and then key, or
those of a group, in any order. NULLs are left out wherever SQL leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.reference.world import Row


@dataclass(frozen=True)
class Aggregate:
    """One aggregate call: its text, and its value over ordered rows."""

    sql: str
    value: Callable[[Sequence[Row]], Any]

    def where(self, sql: str, test: Callable[[Row], bool | None]) -> Aggregate:
        """The same call with ``FILTER (WHERE …)``; an unknown test keeps the row out."""
        return Aggregate(
            f"{self.sql} FILTER (WHERE {sql})",
            lambda rows: self.value([row for row in rows if test(row)]),
        )


def known(rows: Sequence[Row], column: str) -> list[Any]:
    """The values of a column that are not NULL, in order."""
    return [row[column] for row in rows if row[column] is not None]


def count() -> Aggregate:
    """The number of rows."""
    return Aggregate("count(*)", len)


def count_of(column: str) -> Aggregate:
    """The number of rows in which the column is known."""
    return Aggregate(f"count({column})", lambda rows: len(known(rows, column)))


def count_distinct(column: str) -> Aggregate:
    """The number of different known values."""
    return Aggregate(f"count(DISTINCT {column})", lambda rows: len(set(known(rows, column))))


def count_if(sql: str, test: Callable[[Row], bool | None]) -> Aggregate:
    """The number of rows that pass a test."""
    return Aggregate(f"count_if({sql})", lambda rows: sum(1 for row in rows if test(row)))


def total(column: str) -> Aggregate:
    """The sum, exact for integers and decimals, correctly rounded for doubles."""
    return Aggregate(f"sum({column})", lambda rows: _sum(known(rows, column)))


def mean(column: str, scale: int | None = None) -> Aggregate:
    """The mean; ``scale`` is the column's when it is a decimal (Spark adds four digits)."""

    def value(rows: Sequence[Row]) -> Any:
        values = known(rows, column)
        if not values:
            return None
        if scale is None:
            return _sum(values) / len(values)
        digits = Decimal(1).scaleb(-(scale + 4))
        return (Decimal(_sum(values)) / len(values)).quantize(digits, ROUND_HALF_UP)

    return Aggregate(f"avg({column})", value)


def least(column: str) -> Aggregate:
    """The smallest known value."""
    return Aggregate(f"min({column})", lambda rows: min(known(rows, column), default=None))


def greatest(column: str) -> Aggregate:
    """The largest known value."""
    return Aggregate(f"max({column})", lambda rows: max(known(rows, column), default=None))


def least_by(column: str, *order: str) -> Aggregate:
    """The value of the row that is first by some columns, NULLs first; its own breaks ties."""
    return _picked("min_by", column, order, min)


def greatest_by(column: str, *order: str) -> Aggregate:
    """The value of the row that is last by some columns, NULLs first; its own breaks ties."""
    return _picked("max_by", column, order, max)


def _picked(call: str, column: str, order: Sequence[str], pick: Callable[..., Row]) -> Aggregate:
    by = (*order, column)

    def value(rows: Sequence[Row]) -> Any:
        return pick(rows, key=lambda row: [(row[name] is not None, row[name] or 0) for name in by])[
            column
        ]

    return Aggregate(f"{call}({column}, struct({', '.join(by)}))", value)


def first(column: str) -> Aggregate:
    """The value of the first row, NULL or not."""
    return Aggregate(f"first({column})", lambda rows: rows[0][column] if rows else None)


def last(column: str) -> Aggregate:
    """The value of the last row, NULL or not."""
    return Aggregate(f"last({column})", lambda rows: rows[-1][column] if rows else None)


def first_known(column: str) -> Aggregate:
    """The first value that is not NULL."""
    return Aggregate(f"first({column}, true)", lambda rows: next(iter(known(rows, column)), None))


def last_known(column: str) -> Aggregate:
    """The last value that is not NULL."""
    return Aggregate(
        f"last({column}) IGNORE NULLS", lambda rows: next(reversed(known(rows, column)), None)
    )


def every(sql: str, test: Callable[[Row], bool | None]) -> Aggregate:
    """Whether all known answers are yes."""
    return Aggregate(f"bool_and({sql})", lambda rows: _answers(rows, test, all))


def some(sql: str, test: Callable[[Row], bool | None]) -> Aggregate:
    """Whether any known answer is yes."""
    return Aggregate(f"bool_or({sql})", lambda rows: _answers(rows, test, any))


def listed(column: str) -> Aggregate:
    """The known values in order."""
    return Aggregate(f"collect_list({column})", lambda rows: known(rows, column))


def percentile(column: str, share: float) -> Aggregate:
    """The exact percentile, between two neighbours in proportion."""

    def value(rows: Sequence[Row]) -> float | None:
        values = sorted(float(value) for value in known(rows, column))
        if not values:
            return None
        at = (len(values) - 1) * share
        low, high = math.floor(at), math.ceil(at)
        if low == high:
            return values[low]
        return values[low] * (high - at) + values[high] * (at - low)

    return Aggregate(f"percentile({column}, {share})", value)


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return None
    return math.fsum(values) if isinstance(values[0], float) else sum(values)


def _answers(
    rows: Sequence[Row],
    test: Callable[[Row], bool | None],
    combine: Callable[[Sequence[bool]], bool],
) -> bool | None:
    answers = [answer for answer in map(test, rows) if answer is not None]
    return combine(answers) if answers else None
