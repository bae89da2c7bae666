"""The aggregates of a sessions model, compiled against the columns of its input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from infold.core.aggregates import AGGREGATES
from infold.core.queries import Aggregate, Output
from infold.core.quoting import quoted
from infold.spark.content import expression_types
from infold.spark.sessions.aggregate_state import (
    ORDER,
    Compiled,
    EvaluationMode,
    FirstOrLast,
    PreparedArguments,
    StateColumn,
    orderable,
)
from infold.spark.sessions.frames import TIME
from infold.spark.sessions.mergeable import MERGES, first_or_last


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
        return first_or_last(aggregate, prepared, value)
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
