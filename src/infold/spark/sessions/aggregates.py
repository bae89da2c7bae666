"""The aggregates of a sessions model, compiled against the columns of its input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.aggregates import AGGREGATES
from infold.core.queries import Aggregate, Output, quoted
from infold.spark.content import expression_types, has_alike_values
from infold.spark.sessions.frames import TIME

# An aggregate is *mergeable* if its value for two islands together follows from a small state of
# each. The state is a tuple of :class:`StateColumn`. One that the stored row shows anyway
# (`count(*) AS events`) is restored from there; the others are stored in the row's `_state`.

ORDER = "__order"
"""
A placeholder in SQL for the total order of events, a struct.

:meth:`CompiledAggregates.events_sql` replaces it.
"""


class EvaluationMode(Enum):
    """How an aggregate over events has to be evaluated."""

    ANY = "any"
    """The result does not depend on the order of events."""
    ORDERED = "ordered"
    """One event after the other, in the total order, with no partial results merged."""
    COLLECTED = "collected"
    """Through a buffer object of Spark's own; in a query of its own, or it unorders the others."""


@dataclass(frozen=True, slots=True)
class StateColumn:
    """
    A column of an island, beside its ends and its number of events.

    ``events`` is SQL that aggregates prepared events, ``merge`` SQL that aggregates islands (None:
    cannot be merged), ``restore`` SQL that finds it in a stored row (None: it is in ``_state``).
    """

    name: str
    events: str
    merge: str | None = None
    restore: str | None = None
    mode: EvaluationMode = EvaluationMode.ANY

    @classmethod
    def of_new_events(cls, name: str, function: str, column: str) -> StateColumn:
        """A state column of new events alone: nothing stored has it."""
        return cls(name, f"{function}({column})", f"{function}({name})", restore="NULL")


@dataclass(frozen=True, slots=True)
class FirstOrLast:
    """
    A first or last value: the state columns of its time (``at``) and of itself (``value``).

    ``argument`` is the column of prepared events that it is taken from, ``where`` the FILTER clause
    for the events that take part. At the ``edge`` all do, and the time is the island's own end.
    Values may be ``alike``: equal to Spark, and not the same.
    """

    at: str
    value: str
    last: bool
    argument: str
    where: str
    edge: bool
    alike: bool


@dataclass(frozen=True, slots=True)
class PreparedArguments:
    """One aggregate's columns in prepared events: argument, and condition to take part."""

    argument: str
    condition: str | None

    def where(self, *more: str) -> str:
        """The FILTER clause: the condition and ``more``."""
        tests = [*([self.condition] if self.condition else []), *more]
        return f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One aggregate: its state, SQL for its value, and its first or last value if it is one."""

    parts: tuple[StateColumn, ...]
    value: str
    pick: FirstOrLast | None = None
    raw: bool = False


def orderable(type_: T.DataType) -> bool:
    """Whether Spark can compare values of the type."""
    if isinstance(type_, T.ArrayType):
        return orderable(type_.elementType)
    if isinstance(type_, T.StructType):
        return all(orderable(field.dataType) for field in type_.fields)
    return not isinstance(type_, T.MapType | T.VariantType)


def differ_in_a_tie(pick: FirstOrLast, known: str) -> Column:
    """
    Whether a stored and a new event tie for first or last, with different values.

    The state knows the time of the event and not its key, so such a component is read again.
    """
    end, by = ("max", "max_by") if pick.last else ("min", "min_by")
    old, new = f"FILTER (WHERE {known})", f"FILTER (WHERE NOT {known})"
    at, value = pick.at, pick.value
    stored, arrived = (f"{by}({value}, {at}) {side}" for side in (old, new))
    same = f"{stored} <=> {arrived}"
    if pick.alike:
        same += f" AND to_json(struct({stored})) = to_json(struct({arrived}))"
    return F.expr(f"coalesce({end}({at}) {old} = {end}({at}) {new}, false) AND NOT ({same})")


@dataclass(frozen=True, slots=True)
class CompiledAggregates:
    """
    All aggregates of a sessions model, compiled.

    ``arguments`` are columns that prepared events need besides user, time and key (name, SQL);
    With ``raw``, whole aggregate calls are evaluated, which need the input's own columns.
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
        """The parts that are stored in a row's ``_state``."""
        return tuple(part for part in self.parts if part.merge and part.restore is None)

    def events_sql(self, part: StateColumn) -> str:
        """The SQL that computes a part from prepared events."""
        return part.events.replace(ORDER, f"struct({', '.join(self.order)})")


def compile_aggregates(
    aggregates: Sequence[Aggregate],
    outputs: Sequence[Output],
    events: DataFrame,
    keys: Sequence[str],
) -> CompiledAggregates:
    """
    Compile a model's aggregates against the columns of its input.

    ``keys`` are the columns of prepared events that decide among events of equal time.
    """
    shown = shown_columns(aggregates, outputs)
    arguments: dict[str, str] = {}
    types = expression_types(events, filter(None, map(_typed_argument, aggregates)))
    states: list[Compiled] = []
    for at, aggregate in enumerate(aggregates):
        prepared = _prepare(aggregate, at, arguments)
        type_ = types.get(_typed_argument(aggregate) or "")
        states.append(_compile(aggregate, prepared, type_, shown.get(aggregate.name)))
    return CompiledAggregates(
        arguments=tuple((name, sql) for sql, name in arguments.items()),
        order=(TIME, *keys),
        parts=tuple(part for state in states for part in state.parts),
        values=tuple((a.name, state.value) for a, state in zip(aggregates, states, strict=True)),
        picks=tuple(state.pick for state in states if state.pick is not None),
        raw=any(state.raw for state in states),
    )


def shown_columns(aggregates: Sequence[Aggregate], outputs: Sequence[Output]) -> dict[str, str]:
    """The column that is just the value of an aggregate, or of another one like it."""
    output_of = {output.sql.strip().strip("`"): output.name for output in outputs}
    like = {_call_key(call): output_of[call.name] for call in aggregates if call.name in output_of}
    columns = {call.name: like.get(_call_key(call)) for call in aggregates}
    return {name: output_of.get(name, column) for name, column in columns.items() if column}


def _call_key(aggregate: Aggregate) -> tuple[object, ...]:
    """What two aggregates have in common that have the same value."""
    options = aggregate.filter, aggregate.ignore_nulls, aggregate.distinct
    return aggregate.call, aggregate.argument, *options, aggregate.sql.lower()


def _prepare(aggregate: Aggregate, at: int, arguments: dict[str, str]) -> PreparedArguments:
    """Add the columns that an aggregate needs, name by SQL; equal expressions share one."""
    if _rereads(aggregate):
        return PreparedArguments("", None)
    condition = None
    if aggregate.filter is not None:
        condition = arguments.setdefault(f"coalesce(({aggregate.filter}), false)", f"__f{at}")
    if aggregate.argument is None:
        return PreparedArguments("1", condition)
    sql = f"({aggregate.argument})"
    if aggregate.filter is not None:
        # The argument of an event that is filtered out must not be evaluated: it may raise.
        sql = f"CASE WHEN ({aggregate.filter}) THEN {sql} END"
    return PreparedArguments(arguments.setdefault(sql, f"__x{at}"), condition)


def _rereads(aggregate: Aggregate) -> bool:
    """Whether the call is evaluated as it is written, over all events."""
    return aggregate.call == "other"


def _typed_argument(aggregate: Aggregate) -> str | None:
    """The argument, if its type decides how the aggregate is computed."""
    return None if _rereads(aggregate) and not aggregate.distinct else aggregate.argument


def _compile(
    aggregate: Aggregate, prepared: PreparedArguments, type_: T.DataType | None, shown: str | None
) -> Compiled:
    """The parts and the value of one aggregate; ``shown`` is the column that is just its value."""
    value = quoted(shown) if shown else None
    if _rereads(aggregate):
        return evaluated_again(aggregate, type_)
    if aggregate.call in ("first", "last"):
        if type_ is not None and not orderable(
            type_
        ):  # whether two at one instant differ could not be seen
            return in_order(aggregate, prepared)
        return first_or_last(aggregate, prepared, type_, value)
    compiled = MERGES[aggregate.call](aggregate.name, prepared, type_, value)
    return compiled or in_order(aggregate, prepared)


# The result follows from the content of the events, not from the order in which Spark reads them.
# `ORDERED` functions see the events in the total order (event time, key), one after the other;
# `COLLECTED` ones either do not depend on order or sort what they collected.


def in_order(aggregate: Aggregate, prepared: PreparedArguments) -> Compiled:
    """An aggregate that depends on the order of values (sums of doubles): Spark's own, in order."""
    nulls = ", true" if aggregate.ignore_nulls else ""
    sql = f"{aggregate.call}({prepared.argument}{nulls}){prepared.where()}"
    part = StateColumn(aggregate.name, sql, mode=EvaluationMode.ORDERED)
    return Compiled((part,), aggregate.name)


def evaluated_again(aggregate: Aggregate, type_: T.DataType | None) -> Compiled:
    """A whole call as written, evaluated over events; collections come in the total order."""
    function = re.match(r"\s*`?(\w+)`?\s*\(", aggregate.sql)
    name = function[1].lower() if function else ""
    where = f" FILTER (WHERE {aggregate.filter})" if aggregate.filter is not None else ""
    sql, mode = aggregate.sql, EvaluationMode.ORDERED
    if name in _LISTS and aggregate.argument is not None and not aggregate.distinct:
        # Wrapped in a struct of its own, so that the order never looks into the value.
        pairs = f"collect_list(struct({ORDER} AS o, ({aggregate.argument}) AS v))"
        known = f" FILTER (WHERE ({aggregate.argument}) IS NOT NULL"
        known += f" AND ({aggregate.filter}))" if aggregate.filter is not None else ")"
        sql = f"transform(array_sort({pairs}{known}, (a, b) -> {_COMPARE}), x -> x.v)"
        mode = EvaluationMode.COLLECTED
    elif name == "collect_set" or (name in _LISTS and aggregate.argument is not None):
        sql, mode = (
            f"sort_array(collect_set({aggregate.argument}){where})",
            EvaluationMode.COLLECTED,
        )
    elif aggregate.distinct and name in _ADDING and isinstance(type_, _FRACTIONAL):
        sql, mode = (
            _distinct_doubles(name, str(aggregate.argument), where),
            EvaluationMode.COLLECTED,
        )
    elif aggregate.distinct or (name in AGGREGATES and AGGREGATES[name].buffered):
        mode = EvaluationMode.COLLECTED
    return Compiled((StateColumn(aggregate.name, sql, mode=mode),), aggregate.name, raw=True)


_COMPARE = "CASE WHEN a.o < b.o THEN -1 WHEN a.o > b.o THEN 1 ELSE 0 END"


def _distinct_doubles(name: str, argument: str, where: str) -> str:
    """Distinct values are added in their own order: for doubles the order shows."""
    values = f"sort_array(collect_set(cast({argument} AS double)){where})"
    total = f"aggregate({values}, 0D, (a, v) -> a + v)"
    result = total if name == "sum" else f"{total} / size({values})"
    return f"CASE WHEN size({values}) > 0 THEN {result} END"


_ADDING = frozenset({"sum", "avg", "mean"})


_FRACTIONAL = (T.DoubleType, T.FloatType)


_LISTS = frozenset(name for name, one in AGGREGATES.items() if one.collects and not one.buffered)


# Each function here is the `merge` of that name in `core/aggregates.py`. It gives None where the
# state would not be exact for the argument's type (a sum of doubles); then the aggregate is
# evaluated over all events again.


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


def first_or_last(
    aggregate: Aggregate, prepared: PreparedArguments, type_: T.DataType | None, value: str | None
) -> Compiled:
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
    alike = type_ is not None and has_alike_values(type_)
    return Compiled(
        parts, state, FirstOrLast(at, state, last, prepared.argument, where, always, alike)
    )
