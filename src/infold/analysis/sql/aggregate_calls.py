"""Which nodes of a syntax tree are aggregate calls."""

from __future__ import annotations

from sqlglot import exp

from infold.core.aggregates import AGGREGATES


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node of a tree is an aggregate call, with or without OVER."""
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
