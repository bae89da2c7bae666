"""
The aggregates of a sessions model: what is kept of each so that islands can be merged.

An aggregate is *mergeable* when a small state says enough of an island's events: counts, exact
sums, extremes, and the first or last value with its time. The state is a tuple of
:class:`StateColumn`, columns that travel with an island. A part that the stored row shows anyway
(``count(*) AS events``) is restored from there; the others go into the row's ``_state``.

Every other aggregate is evaluated over an island's events whenever one of them changes, in such a
way that the result is a function of what the events say and not of how Spark happened to read
them. ``ORDERED`` functions see the events in the total order (event time, key), one after the
other; ``COLLECTED`` ones either do not depend on order or sort what they collected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.project import Aggregate, Output
from infold.spark.content import quoted

TIME = "__t"
"""The event's time in microseconds, in prepared events."""
ORDER = "__order"
"""
Stands in SQL for the total order of events, a struct; :meth:`CompiledAggregates.over` fills it in.
"""


class EvaluationMode(Enum):
    """How an aggregate over events has to be evaluated."""

    ANY = "any"
    """The result does not depend on the order of events."""
    ORDERED = "ordered"
    """One event after the other, in the total order, with no partial results merged."""
    COLLECTED = "collected"
    """Through a buffer object of Spark's own; kept apart, for it would unorder the others."""


@dataclass(frozen=True, slots=True)
class StateColumn:
    """
    A column that travels with an island.

    ``events`` is SQL that aggregates prepared events, ``merge`` SQL that aggregates islands (None:
    cannot be merged), ``restore`` SQL that finds it in a stored row (None: it is in ``_state``).
    """

    name: str
    events: str
    merge: str | None = None
    restore: str | None = None
    way: EvaluationMode = EvaluationMode.ANY


@dataclass(frozen=True, slots=True)
class FirstOrLast:
    """
    A first or last value: which parts hold its time and itself. Equal times are ambiguous.

    ``argument`` is the column of prepared events it is picked from, ``where`` the FILTER clause
    that says which events take part; at the ``edge`` all do, and the time is the island's own.
    """

    at: str
    value: str
    last: bool
    argument: str
    where: str
    edge: bool


@dataclass(frozen=True, slots=True)
class CompiledAggregates:
    """
    All aggregates of a sessions model, compiled.

    ``arguments`` are columns that prepared events need besides user, time and key (name, SQL);
    ``raw`` says that whole aggregate calls are evaluated, which need the input's own columns.
    ``values`` give each aggregate's value from its parts (name, SQL).
    """

    arguments: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    parts: tuple[StateColumn, ...]
    values: tuple[tuple[str, str], ...]
    picks: tuple[FirstOrLast, ...]
    raw: bool

    @property
    def mergeable(self) -> bool:
        """Whether islands can be merged without their events."""
        return all(part.merge is not None for part in self.parts)

    @property
    def stored(self) -> tuple[StateColumn, ...]:
        """The parts that a row's ``_state`` has to hold."""
        return tuple(part for part in self.parts if part.merge and part.restore is None)

    def over(self, part: StateColumn) -> str:
        """The SQL that computes a part from prepared events."""
        return part.events.replace(ORDER, f"struct({', '.join(self.order)})")


def measures(
    aggregates: Sequence[Aggregate],
    outputs: Sequence[Output],
    events: DataFrame,
    keys: Sequence[str],
) -> CompiledAggregates:
    """
    Compile a model's aggregates against the columns of its input.

    ``keys`` are the columns of prepared events that decide among events of equal time.
    """
    shown = _shown(aggregates, outputs)
    arguments: dict[str, str] = {}
    found: list[_Compiled] = []
    for at, aggregate in enumerate(aggregates):
        given = _prepare(aggregate, at, arguments)
        type_ = _type(events, aggregate)
        found.append(_compile(aggregate, given, type_, shown.get(aggregate.name)))
    return CompiledAggregates(
        arguments=tuple(arguments.items()),
        order=(TIME, *keys),
        parts=tuple(part for entry in found for part in entry.parts),
        values=tuple((a.name, entry.value) for a, entry in zip(aggregates, found, strict=True)),
        picks=tuple(entry.pick for entry in found if entry.pick is not None),
        raw=any(entry.raw for entry in found),
    )


def _shown(aggregates: Sequence[Aggregate], outputs: Sequence[Output]) -> dict[str, str]:
    """The column that is just the value of an aggregate, or of another one like it."""
    own = {output.sql.strip().strip("`"): output.name for output in outputs}
    like = {_meaning(one): own[one.name] for one in aggregates if one.name in own}
    found = {one.name: like.get(_meaning(one)) for one in aggregates}
    return {name: own.get(name, column) for name, column in found.items() if column}


def _meaning(one: Aggregate) -> tuple[object, ...]:
    return one.call, one.argument, one.filter, one.ignore_nulls, one.distinct, one.sql.lower()


@dataclass(frozen=True, slots=True)
class _Given:
    """One aggregate's columns in prepared events: argument, and condition to take part."""

    argument: str
    condition: str | None

    def where(self, *more: str) -> str:
        tests = [*([self.condition] if self.condition else []), *more]
        return f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""


@dataclass(frozen=True, slots=True)
class _Compiled:
    parts: tuple[StateColumn, ...]
    value: str
    pick: FirstOrLast | None = None
    raw: bool = False


def _prepare(aggregate: Aggregate, at: int, arguments: dict[str, str]) -> _Given:
    """Add the columns that an aggregate needs; equal expressions share one."""
    if _rereads(aggregate):
        return _Given("", None)
    condition = None
    if aggregate.filter is not None:
        condition = _column(f"coalesce(({aggregate.filter}), false)", f"__f{at}", arguments)
    if aggregate.argument is None:
        return _Given("1", condition)
    sql = f"({aggregate.argument})"
    if aggregate.filter is not None:
        # The argument of an event that is filtered out must not be evaluated: it may raise.
        sql = f"CASE WHEN ({aggregate.filter}) THEN {sql} END"
    return _Given(_column(sql, f"__x{at}", arguments), condition)


def _column(sql: str, name: str, arguments: dict[str, str]) -> str:
    for known, same in arguments.items():
        if same == sql:
            return known
    arguments[name] = sql
    return name


def _rereads(aggregate: Aggregate) -> bool:
    return aggregate.call == "other"


def _type(events: DataFrame, aggregate: Aggregate) -> T.DataType | None:
    if aggregate.argument is None or (_rereads(aggregate) and not aggregate.distinct):
        return None
    return events.select(F.expr(aggregate.argument)).schema.fields[0].dataType


def _compile(
    aggregate: Aggregate, given: _Given, type_: T.DataType | None, shown: str | None
) -> _Compiled:
    """The parts and the value of one aggregate; ``shown`` is the column that is just its value."""
    value = quoted(shown) if shown else None
    if _rereads(aggregate):
        return _reread(aggregate, type_)
    if aggregate.call in ("first", "last"):
        if type_ is not None and not orderable(type_):  # two that tie could not be told apart
            return _in_order(aggregate, given)
        return _first_or_last(aggregate, given, value)
    compiled = _SIMPLE[aggregate.call](aggregate.name, given, type_, value)
    return compiled or _in_order(aggregate, given)


def _count(
    name: str,
    given: _Given,
    _: T.DataType | None,
    value: str | None,
) -> _Compiled:
    part = StateColumn(
        f"{name}_n", f"count({given.argument}){given.where()}", f"sum({name}_n)", value
    )
    return _Compiled((part,), f"coalesce({name}_n, 0L)")


def _count_if(
    name: str,
    given: _Given,
    _: T.DataType | None,
    value: str | None,
) -> _Compiled:
    part = StateColumn(
        f"{name}_n", f"count_if({given.argument}){given.where()}", f"sum({name}_n)", value
    )
    return _Compiled((part,), f"coalesce({name}_n, 0L)")


def _sum(name: str, given: _Given, type_: T.DataType | None, value: str | None) -> _Compiled | None:
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
    return _Compiled((part,), f"cast({total} AS {result})")


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
    given: _Given,
    type_: T.DataType | None,
    value: str | None,  # noqa: ARG001
) -> _Compiled | None:
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
    return _Compiled((*summed.parts, count), f"CASE WHEN {n} > 0 THEN {quotient} END")


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


def _least(
    name: str, given: _Given, type_: T.DataType | None, value: str | None
) -> _Compiled | None:
    return _extreme("min", name, given, type_, value)


def _greatest(
    name: str, given: _Given, type_: T.DataType | None, value: str | None
) -> _Compiled | None:
    return _extreme("max", name, given, type_, value)


def _extreme(
    function: str, name: str, given: _Given, type_: T.DataType | None, value: str | None
) -> _Compiled | None:
    if type_ is None or not orderable(type_):
        return None
    argument = given.argument
    if isinstance(type_, T.DoubleType | T.FloatType):
        # 0.0 and -0.0 are equal, so which of them wins would depend on order. Adding 0 makes
        # them one.
        argument = f"({argument} + cast(0 AS {type_.simpleString()}))"
    held = f"{name}_v"
    part = StateColumn(held, f"{function}({argument}){given.where()}", f"{function}({held})", value)
    return _Compiled((part,), held)


_SIMPLE = {
    "count": _count,
    "count_if": _count_if,
    "sum": _sum,
    "avg": _avg,
    "min": _least,
    "max": _greatest,
    "bool_and": _least,
    "bool_or": _greatest,
}


def _first_or_last(aggregate: Aggregate, given: _Given, value: str | None) -> _Compiled:
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
    return _Compiled(parts, held, FirstOrLast(at, held, last, given.argument, where, edge=always))


def _in_order(aggregate: Aggregate, given: _Given) -> _Compiled:
    """An aggregate over values whose order shows (sums of doubles): Spark's own, in order."""
    nulls = ", true" if aggregate.ignore_nulls else ""
    sql = f"{aggregate.call}({given.argument}{nulls}){given.where()}"
    part = StateColumn(aggregate.name, sql, way=EvaluationMode.ORDERED)
    return _Compiled((part,), aggregate.name)


def _reread(aggregate: Aggregate, type_: T.DataType | None) -> _Compiled:
    """A whole call as written, evaluated over events; collections come in the total order."""
    function = re.match(r"\s*`?(\w+)`?\s*\(", aggregate.sql)
    name = function[1].lower() if function else ""
    where = f" FILTER (WHERE {aggregate.filter})" if aggregate.filter is not None else ""
    sql, way = aggregate.sql, EvaluationMode.ORDERED
    if name in _LISTS and aggregate.argument is not None and not aggregate.distinct:
        # Wrapped in a struct of its own, so that the order never looks into the value.
        pairs = f"collect_list(struct({ORDER} AS o, ({aggregate.argument}) AS v))"
        given = f" FILTER (WHERE ({aggregate.argument}) IS NOT NULL"
        given += f" AND ({aggregate.filter}))" if aggregate.filter is not None else ")"
        sql = f"transform(array_sort({pairs}{given}, (a, b) -> {_COMPARE}), x -> x.v)"
        way = EvaluationMode.COLLECTED
    elif name == "collect_set" or (name in _LISTS and aggregate.argument is not None):
        sql, way = f"sort_array(collect_set({aggregate.argument}){where})", EvaluationMode.COLLECTED
    elif aggregate.distinct and name in _ADDING and isinstance(type_, _FRACTIONAL):
        sql, way = _distinct_doubles(name, str(aggregate.argument), where), EvaluationMode.COLLECTED
    elif aggregate.distinct or name in _COLLECTED:
        way = EvaluationMode.COLLECTED
    return _Compiled((StateColumn(aggregate.name, sql, way=way),), aggregate.name, raw=True)


_COMPARE = "CASE WHEN a.o < b.o THEN -1 WHEN a.o > b.o THEN 1 ELSE 0 END"


def _distinct_doubles(name: str, argument: str, where: str) -> str:
    """Distinct values are added in their own order: for doubles the order shows."""
    values = f"sort_array(collect_set(cast({argument} AS double)){where})"
    total = f"aggregate({values}, 0D, (a, v) -> a + v)"
    result = total if name == "sum" else f"{total} / size({values})"
    return f"CASE WHEN size({values}) > 0 THEN {result} END"


_ADDING = frozenset({"sum", "avg", "mean"})
_FRACTIONAL = (T.DoubleType, T.FloatType)
_LISTS = frozenset({"collect_list", "array_agg"})

# Functions that keep an object per group. Spark evaluates all aggregates beside one of these by
# hashing, where a group's events may come in several pieces.
_COLLECTED = frozenset(
    {
        "approx_percentile",
        "approx_top_k",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "collect_set",
        "count_min_sketch",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "listagg",
        "median",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "string_agg",
    }
)


def orderable(type_: T.DataType) -> bool:
    """Whether Spark can compare values of the type."""
    if isinstance(type_, T.ArrayType):
        return orderable(type_.elementType)
    if isinstance(type_, T.StructType):
        return all(orderable(field.dataType) for field in type_.fields)
    return not isinstance(type_, T.MapType | T.VariantType)
