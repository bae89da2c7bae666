"""Spark's aggregate functions by name, and which of them have a state that can be merged."""

from __future__ import annotations

from sqlglot import exp

MERGEABLE = {
    "count": "count",
    "count_if": "count_if",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "mean": "avg",
    "first": "first",
    "first_value": "first",
    "last": "last",
    "last_value": "last",
    "bool_and": "bool_and",
    "every": "bool_and",
    "bool_or": "bool_or",
    "some": "bool_or",
    "any": "bool_or",
}
"""Spark's name -> the name of the merge."""

OTHERS = frozenset(
    {
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bitmap_and_agg",
        "collect_list",
        "collect_set",
        "corr",
        "covar_pop",
        "covar_samp",
        "count_min_sketch",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kurtosis",
        "listagg",
        "max_by",
        "median",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_avro",
        "schema_of_json_agg",
        "skewness",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
    }
)
"""Aggregates that are evaluated over all rows again."""

AGGREGATES = frozenset(MERGEABLE) | OTHERS


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node of a tree is an aggregate call (outside of OVER or not)."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATES
    if isinstance(node, exp.Any):
        return not isinstance(node.this, exp.Query)
    return isinstance(node, exp.AggFunc) and not isinstance(node, _WINDOW_ONLY)


_WINDOW_ONLY = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.NthValue,
)
