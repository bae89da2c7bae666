"""
Aggregates that are evaluated over all events of an island whenever one of them changes.

The result follows from the content of the events, not from the order in which Spark reads them.
``ORDERED`` functions see the events in the total order (event time, key), one after the other;
``COLLECTED`` ones either do not depend on order or sort what they collected.
"""

from __future__ import annotations

import re

from pyspark.sql import types as T

from infold.core.aggregates import AGGREGATES
from infold.core.queries import Aggregate
from infold.spark.sessions.aggregate_state import (
    ORDER,
    Compiled,
    EvaluationMode,
    PreparedArguments,
    StateColumn,
)


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
