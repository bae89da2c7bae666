"""An aggregate over the events of a session, in their order, by code that no fold shares."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from infold.core.queries import Aggregate


def aggregate(call: Aggregate, order: Column, events: DataFrame) -> Column:
    """An aggregate over a session's events; order-dependent ones follow the order of events."""
    if call.call in ("first", "last") and call.argument is not None:
        value = F.struct(F.expr(call.argument).alias("v"))
        kept = _takes_part(call)
        if call.ignore_nulls:
            kept = kept & F.expr(call.argument).isNotNull()
        wanted = F.when(kept, order)
        picked = F.min_by(value, wanted) if call.call == "first" else F.max_by(value, wanted)
        return picked["v"]
    if call.argument is not None and re.match(_COLLECTS, call.sql, re.IGNORECASE):
        return _collected_in_order(call, order)
    if call.call in ("sum", "avg") and _adds_doubles(call, events):
        return _added_in_order(call, order)
    return F.expr(call.sql)


def _adds_doubles(call: Aggregate, events: DataFrame) -> bool:
    """Whether the order of events shows in a sum or an average."""
    of = events.select(F.expr(str(call.argument))).schema.fields[0].dataType
    doubles = T.DoubleType | T.FloatType
    return isinstance(of, doubles if call.call == "sum" else doubles | T.LongType)


def _added_in_order(call: Aggregate, order: Column) -> Column:
    """A sum or an average, of which doubles are added one after the other."""
    value = F.expr(str(call.argument)).cast("double")
    values = _in_order(call, value, order)
    total = F.aggregate(values, F.lit(0.0), lambda found, one: found + one)
    count = F.size(values)
    return F.when(count > 0, total / count if call.call == "avg" else total)


_COLLECTS = r"\s*`?(collect_list|array_agg|collect_set)`?\s*\("


def _collected_in_order(call: Aggregate, order: Column) -> Column:
    """Lists in the order of events, sets sorted: Spark collects rows in any order."""
    value = F.expr(str(call.argument))
    if call.distinct or "set" in call.sql[: call.sql.index("(")].lower():
        kept = _takes_part(call) & value.isNotNull()
        return F.sort_array(F.collect_set(F.when(kept, value)))
    return _in_order(call, value, order)


def _in_order(call: Aggregate, value: Column, order: Column) -> Column:
    """The values that take part and are not NULL, in the order of events."""
    kept = _takes_part(call) & value.isNotNull()
    pairs = F.collect_list(F.when(kept, F.struct(order.alias("o"), value.alias("v"))))
    return F.transform(F.array_sort(pairs, _by_order), lambda pair: pair["v"])


def _takes_part(call: Aggregate) -> Column:
    return F.lit(True) if call.filter is None else F.expr(call.filter)


def _by_order(a: Column, b: Column) -> Column:
    """Compares by order alone: some values cannot be compared."""
    return F.when(a["o"] < b["o"], -1).when(a["o"] > b["o"], 1).otherwise(0)
