"""
Aggregates whose state can be merged: counts, exact sums, extremes, first and last values.

Each function here is the merge of that name in ``core/aggregates.py``. It gives None where the
state would not be exact for the argument's type (a sum of doubles); then the aggregate is
evaluated over all events again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from pyspark.sql import types as T

from infold.core.project import Aggregate
from infold.spark.sessions.aggregate_state import (
    ORDER,
    TIME,
    Compiled,
    FirstOrLast,
    PreparedArguments,
    StateColumn,
    orderable,
)


def _count(
    function: str, name: str, given: PreparedArguments, _: T.DataType | None, value: str | None
) -> Compiled:
    part = StateColumn(
        f"{name}_n", f"{function}({given.argument}){given.where()}", f"sum({name}_n)", value
    )
    return Compiled((part,), f"coalesce({name}_n, 0L)")


def _sum(
    name: str, given: PreparedArguments, type_: T.DataType | None, value: str | None
) -> Compiled | None:
    wide = _exact(type_)
    if wide is None:
        return None
    held, result = wide
    total = f"{name}_sum"
    part = StateColumn(
        total,
        f"cast(sum(cast({given.argument} AS {held})){given.where()} AS {_sum_type(held)})",
        f"cast(sum({total}) AS {_sum_type(held)})",
        value and f"cast({value} AS {_sum_type(held)})",
    )
    return Compiled((part,), f"cast({total} AS {result})")


def _exact(type_: T.DataType | None) -> tuple[str, str] | None:
    """
    For a type whose sums are exact: the type to sum in, and the type of Spark's own sum.

    BIGINT is summed as a decimal: a sum that fits must not fail because of the order in which
    it came about.
    """
    if isinstance(type_, T.ByteType | T.ShortType | T.IntegerType):
        return "bigint", "bigint"
    if isinstance(type_, T.LongType):
        return "decimal(19,0)", "bigint"
    if isinstance(type_, T.DecimalType):
        result = f"decimal({min(38, type_.precision + 10)},{type_.scale})"
        return f"decimal({type_.precision},{type_.scale})", result
    return None


def _sum_type(held: str) -> str:
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", held)
    if decimal is None:
        return held
    return f"decimal({min(38, int(decimal[1]) + 10)},{decimal[2]})"


def _avg(
    name: str,
    given: PreparedArguments,
    type_: T.DataType | None,
    value: str | None,  # noqa: ARG001
) -> Compiled | None:
    summed = _sum(name, given, type_, None)
    if summed is None:
        return None
    n, total = f"{name}_n", f"{name}_sum"
    if isinstance(type_, T.DecimalType):
        quotient = _decimal_average(total, n, type_)
        if quotient is None:
            return None
    else:
        quotient = f"cast({total} AS double) / cast({n} AS double)"
    count = StateColumn(n, f"count({given.argument}){given.where()}", f"sum({n})")
    return Compiled((*summed.parts, count), f"CASE WHEN {n} > 0 THEN {quotient} END")


def _decimal_average(total: str, n: str, type_: T.DecimalType) -> str | None:
    """
    Sum by count, rounded half up to Spark's type for the average of decimals.

    Spark divides with all the digits there are and rounds once. SQL's division cannot: it would
    round twice. So this divides whole numbers, with the remainder, and is exact. None where the
    digits do not suffice.
    """
    p, s = type_.precision, type_.scale
    if p > 18 or (p + 4) + (s + 4) + 1 > 38:
        return None
    unit = f"cast('{10 ** -(s + 4):.{s + 4}f}' AS decimal({s + 4},{s + 4}))"
    whole = f"cast(abs({total}) * 1{'0' * (s + 4)}BD AS decimal(38,0))"
    count = f"cast({n} AS decimal(19,0))"
    rest = f"({whole} % {count})"
    quotient = (
        f"cast((({whole} - {rest}) / {count}) AS decimal({p + 4},0))"
        f" + CASE WHEN {rest} * 2 >= {count} THEN 1 ELSE 0 END"
    )
    return (
        f"cast(cast(({quotient}) AS decimal({p + 4},0)) * {unit} * sign({total})"
        f" AS decimal({p + 4},{s + 4}))"
    )


def _extreme(
    function: str, name: str, given: PreparedArguments, type_: T.DataType | None, value: str | None
) -> Compiled | None:
    if type_ is None or not orderable(type_):
        return None
    argument = given.argument
    if isinstance(type_, T.DoubleType | T.FloatType):
        # 0.0 and -0.0 are equal, so which of them wins would depend on order. Adding 0 makes
        # them one.
        argument = f"({argument} + cast(0 AS {type_.simpleString()}))"
    held = f"{name}_v"
    part = StateColumn(held, f"{function}({argument}){given.where()}", f"{function}({held})", value)
    return Compiled((part,), held)


Merge = Callable[[str, PreparedArguments, T.DataType | None, str | None], Compiled | None]
"""From name, arguments, the argument's type and the column that shows the value, if any."""

MERGES: dict[str, Merge] = {
    "count": partial(_count, "count"),
    "count_if": partial(_count, "count_if"),
    "sum": _sum,
    "avg": _avg,
    "min": partial(_extreme, "min"),
    "max": partial(_extreme, "max"),
    "bool_and": partial(_extreme, "min"),
    "bool_or": partial(_extreme, "max"),
}


def first_or_last(aggregate: Aggregate, given: PreparedArguments, value: str | None) -> Compiled:
    """The value of the first or last event, and its time; ties go by the total order."""
    last = aggregate.call == "last"
    end, by = ("max", "max_by") if last else ("min", "min_by")
    known = [f"{given.argument} IS NOT NULL"] if aggregate.ignore_nulls else []
    at, held = f"{aggregate.name}_at", f"{aggregate.name}_v"
    always = not known and given.condition is None  # then it is the session's first or last event
    edge = "session_end" if last else "session_start"
    where = given.where(*known)
    parts = (
        StateColumn(
            at,
            f"{end}({TIME}){where}",
            f"{end}({at})",
            f"unix_micros({edge})" if always else None,
        ),
        StateColumn(held, f"{by}({given.argument}, {ORDER}){where}", f"{by}({held}, {at})", value),
    )
    return Compiled(parts, held, FirstOrLast(at, held, last, given.argument, where, edge=always))
