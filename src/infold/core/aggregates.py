"""
Spark's aggregate functions: one table of what each does, for all rooms.

To let sessions merge another function, give it a ``merge`` here and a state in
``spark/sessions/aggregates.py``. To let a cumulative aggregate follow it without reading rows
again, give it a ``follows`` here and a state in ``spark/cumulative/fold.py``. A test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """
    One function, by its name in lower case.

    ``merge`` names the merge of its state when sessions join; None: it is evaluated over all
    events again. ``follows`` names the state by which its value for a key follows from rows that
    come and go; None: it is evaluated over all rows of the key again. ``picks``: it takes the first
    or the last value. ``collects``: it puts values one after the other, as a ``text`` if not as a
    list. ``buffered``: Spark keeps an object for each group and evaluates all aggregates beside it
    by hashing, where a group's events may come in several pieces.
    """

    name: str
    merge: str | None = None
    follows: str | None = None
    picks: bool = False
    collects: bool = False
    text: bool = False
    buffered: bool = False


def _functions() -> Iterator[AggregateFunction]:
    merges = {
        "count": "count",
        "count_if": "count_if",
        "sum": "sum",
        "min": "min",
        "max": "max",
        "avg": "avg mean",
        "bool_and": "bool_and every",
        "bool_or": "bool_or some any",
    }
    for merge, names in merges.items():
        yield from (AggregateFunction(name, merge, follows=merge) for name in names.split())
    yield from (AggregateFunction(name, follows=name) for name in ("min_by", "max_by"))
    for merge in ("first", "last"):
        yield from (
            AggregateFunction(name, merge, picks=True) for name in (merge, f"{merge}_value")
        )
    yield from (AggregateFunction(name, collects=True) for name in ("array_agg", "collect_list"))
    yield AggregateFunction("collect_set", collects=True, buffered=True)
    for name in ("listagg", "string_agg"):
        yield AggregateFunction(name, collects=True, text=True, buffered=True)
    yield from (AggregateFunction(name, buffered=True) for name in _BUFFERED_FUNCTIONS.split())
    yield from (AggregateFunction(name) for name in _OTHER_FUNCTIONS.split())


_BUFFERED_FUNCTIONS = """
approx_percentile approx_top_k bitmap_construct_agg bitmap_or_agg count_min_sketch
histogram_numeric hll_sketch_agg hll_union_agg median mode percentile percentile_approx
percentile_cont percentile_disc
"""

_OTHER_FUNCTIONS = """
any_value approx_count_distinct bit_and bit_or bit_xor bitmap_and_agg corr covar_pop covar_samp
grouping grouping_id kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
regr_syy schema_of_avro skewness std stddev stddev_pop stddev_samp
theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp variance
"""

AGGREGATES = {function.name: function for function in _functions()}
"""Every aggregate function of Spark 4.1, by name."""
