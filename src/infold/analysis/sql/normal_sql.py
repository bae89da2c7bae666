"""Expressions as SQL that is alike however their columns are written."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp


def normal_sql(node: exp.Expr, name_of: Callable[[exp.Column], str]) -> str:
    """The SQL of an expression, with ``name_of`` each column in place of its own name."""
    copy = node.copy()
    columns = zip(node.find_all(exp.Column), list(copy.find_all(exp.Column)), strict=True)
    for written, column in columns:
        for key in ("table", "db", "catalog"):
            column.set(key, None)
        column.set("this", exp.to_identifier(name_of(written), quoted=True))
    return copy.sql("spark", normalize=True)
