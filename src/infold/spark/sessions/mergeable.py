"""
Aggregates whose state can be merged: counts, exact sums, extremes, first and last values.

Each function here is the ``merge`` of that name in ``core/aggregates.py``. It gives None where the
state would not be exact for the argument's type (a sum of doubles); then the aggregate is
evaluated over all events again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from pyspark.sql import types as T

from infold.core.queries import Aggregate
from infold.spark.sessions.aggregate_state import (
    ORDER,
    Compiled,
    FirstOrLast,
    PreparedArguments,
    StateColumn,
    orderable,
)
from infold.spark.sessions.frames import TIME


def _count(
    function: str, name: str, prepared: PreparedArguments, _: T.DataType | None, value: str | None
) -> Compiled:
    part = StateColumn(
        f"{name}_n", f"{function}({prepared.argument}){prepared.where()}", f"sum({name}_n)", value
    )
    return Compiled((part,), f"coalesce({name}_n, 0L)")


def _sum(
    name: str, prepared: PreparedArguments, type_: T.DataType | None, value: str | None
) -> Compiled | None:
    wide = _exact_sum_types(type_)
    if wide is None:
        return None
    summand, result = wide
    total, type_of_sum = f"{name}_sum", _sum_type(summand)
    part = StateColumn(
        total,
        f"cast(sum(cast({prepared.argument} AS {summand})){prepared.where()} AS {type_of_sum})",
        f"cast(sum({total}) AS {type_of_sum})",
        value and f"cast({value} AS {type_of_sum})",
    )
    return Compiled((part,), f"cast({total} AS {result})")


def _exact_sum_types(type_: T.DataType | None) -> tuple[str, str] | None:
    """
    For a type with exact sums: the type to sum in, and the type of Spark's own sum.

    BIGINT is summed as a decimal: a sum that fits must not fail because a partial sum does not.
    """
    if isinstance(type_, T.ByteType | T.ShortType | T.IntegerType):
        return "bigint", "bigint"
    if isinstance(type_, T.LongType):
        return "decimal(19,0)", "bigint"
    if isinstance(type_, T.DecimalType):
        result = f"decimal({min(38, type_.precision + 10)},{type_.scale})"
        return f"decimal({type_.precision},{type_.scale})", result
    return None


def _sum_type(summand: str) -> str:
    """The type of a sum of values of a type."""
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", summand)
    if decimal is None:
        return summand
    return f"decimal({min(38, int(decimal[1]) + 10)},{decimal[2]})"


def _avg(
    name: str,
    prepared: PreparedArguments,
    type_: T.DataType | None,
    value: str | None,  # noqa: ARG001
) -> Compiled | None:
    summed = _sum(name, prepared, type_, None)
    # Spark adds averages of whole numbers as doubles. The sum of a session's INTs is one; that of
    # its BIGINTs may have more digits, and then what comes out depends on the order of events.
    if summed is None or isinstance(type_, T.LongType):
        return None
    n, total = f"{name}_n", f"{name}_sum"
    if isinstance(type_, T.DecimalType):
        quotient = decimal_average(total, n, type_)
        if quotient is None:
            return None
    else:
        quotient = f"cast({total} AS double) / cast({n} AS double)"
    count = StateColumn(n, f"count({prepared.argument}){prepared.where()}", f"sum({n})")
    return Compiled((*summed.parts, count), f"CASE WHEN {n} > 0 THEN {quotient} END")


def decimal_average(total: str, n: str, type_: T.DecimalType) -> str | None:
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
    # Not by `sign`, which is a double and makes one of the product.
    return (
        f"cast(cast(({quotient}) AS decimal({p + 4},0)) * CASE WHEN {total} < 0 THEN -{unit}"
        f" ELSE {unit} END AS decimal({p + 4},{s + 4}))"
    )


def _extreme(
    function: str,
    name: str,
    prepared: PreparedArguments,
    type_: T.DataType | None,
    value: str | None,
) -> Compiled | None:
    if type_ is None or not orderable(type_):
        return None
    argument = prepared.argument
    if isinstance(type_, T.DoubleType | T.FloatType):
        # 0.0 and -0.0 are equal, so which of them wins would depend on order. Adding 0 makes
        # them one.
        argument = f"({argument} + cast(0 AS {type_.simpleString()}))"
    state = f"{name}_v"
    part = StateColumn(
        state, f"{function}({argument}){prepared.where()}", f"{function}({state})", value
    )
    return Compiled((part,), state)


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


def first_or_last(aggregate: Aggregate, prepared: PreparedArguments, value: str | None) -> Compiled:
    """The value of the first or last event, and its time; ties go by the total order."""
    last = aggregate.call == "last"
    end, by = ("max", "max_by") if last else ("min", "min_by")
    known = [f"{prepared.argument} IS NOT NULL"] if aggregate.ignore_nulls else []
    at, state = f"{aggregate.name}_at", f"{aggregate.name}_v"
    always = (
        not known and prepared.condition is None
    )  # then it is the session's first or last event
    edge = "session_end" if last else "session_start"
    where = prepared.where(*known)
    parts = (
        StateColumn(
            at,
            f"{end}({TIME}){where}",
            f"{end}({at})",
            f"unix_micros({edge})" if always else None,
        ),
        StateColumn(
            state, f"{by}({prepared.argument}, {ORDER}){where}", f"{by}({state}, {at})", value
        ),
    )
    return Compiled(
        parts, state, FirstOrLast(at, state, last, prepared.argument, where, edge=always)
    )
