"""
Values that are one of several: CASE, IF, coalesce, greatest, least, and those of explode.

A shape that each of them has is the shape of the result. NULL is different: a CASE without ELSE is
NULL for rows of any time, so it is none of these.
"""

from __future__ import annotations

from sqlglot import exp

from infold.analysis.times.durations import interval_length
from infold.core.interval import DAY


def possible_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values that a CASE or IF may have, NULL or not; None for any other expression."""
    if first_values(node) is not None:
        return None
    if isinstance(node, exp.If):
        return _two_values(node.args.get("true"), node.args.get("false"))
    if isinstance(node, exp.Case):
        results = [branch.args["true"] for branch in node.args["ifs"]]
        last = node.args.get("default")
        return None if last is None else [*results, last]
    return None


def coalesced_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of an expression that is one of them that is not NULL, if there is any."""
    if isinstance(node, (exp.Greatest, exp.Least)):
        return [node.this, *node.expressions]
    return first_values(node)


def first_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of an expression that is the first of them that is not NULL."""
    node = node.unnest()
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    branch: exp.Expr | None = node if isinstance(node, exp.If) else None
    last = node.args.get("false")
    if isinstance(node, exp.Case) and len(node.args["ifs"]) == 1 and node.args.get("this") is None:
        branch, last = node.args["ifs"][0], node.args.get("default")
    condition = branch.this.unnest() if branch is not None else None
    there = isinstance(condition, exp.Not)
    asked = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    if branch is None or last is None or not isinstance(asked, exp.Is):
        return None
    first, second = (branch.args["true"], last) if there else (last, branch.args["true"])
    plain = isinstance(asked.expression, exp.Null) and isinstance(first, exp.Column)
    return [first, second] if plain and first == asked.this.unnest() else None


def exploded_values(node: exp.Expr) -> list[exp.Expr] | None:
    """What the elements of an exploded list lie between, or are."""
    if not isinstance(node, exp.Explode) or type(node) is not exp.Explode or node.expressions:
        return None
    inner = node.this.unnest()
    if isinstance(inner, exp.GenerateSeries) and _by_days(inner.args.get("step")):
        return _two_values(inner.args.get("start"), inner.args.get("end"))
    return list(inner.expressions) if isinstance(inner, exp.Array) and inner.expressions else None


def _two_values(one: object, other: object) -> list[exp.Expr] | None:
    if isinstance(one, exp.Expr) and isinstance(other, exp.Expr):
        return [one, other]
    return None


def _by_days(step: object) -> bool:
    """Whether each element is as whole as the first: days after days."""
    if step is None:
        return True
    span = interval_length(step) if isinstance(step, exp.Expr) else None
    return span is not None and span[0] == span[1] and span[0] > 0 and span[0] % DAY == 0
