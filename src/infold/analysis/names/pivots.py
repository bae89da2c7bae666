"""
PIVOT over a subquery, read as the GROUP BY that it is.

``(SELECT day, country, amount …) PIVOT (sum(amount) FOR country IN ('DE' AS de, 'FR' AS fr))``
groups by every column that it does not name, here ``day``. ``de`` is the aggregate over those rows
of a group that have the country DE. So the bounds are those of ``SELECT day, sum(amount) FILTER
(WHERE country = 'DE') AS de, … GROUP BY day``. Nothing is known of a value with FILTER, as it is
NULL in groups of any time. The query that runs is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.relation import Columns
from infold.analysis.sql.aggregate_calls import is_aggregate
from infold.analysis.sql.text import SPAN, Text, span_of


def pivot_as_group_by(node: exp.Subquery, columns: Columns, text: Text) -> exp.Select | None:
    """
    The SELECT equal to a subquery with one PIVOT; ``columns`` are those of the subquery.

    None where a name is not certain: with UNPIVOT, several columns, values that are no plain texts,
    an alias (Spark has none behind PIVOT), or unknown columns.
    """
    pivots = node.args["pivots"]
    field = _pivot_field(pivots[0]) if len(pivots) == 1 and not node.args.get("alias") else None
    if field is None or columns is None or len({name.lower() for name in columns}) < len(columns):
        return None
    made = list(_outputs_made(pivots[0], field))
    named = _names_used([field.this, *(one.this for one in made)])
    if not made or named is None or "" in columns:
        return None
    keys = [name for name in columns if name.lower() not in named]
    if {name.lower() for name in keys} & {one.alias.lower() for one in made}:
        return None
    inner = exp.Subquery()
    inner.args["this"] = node.this  # which stays where it is in its own tree
    found = exp.Select(expressions=[*map(_column_node, keys), *made], from_=exp.From(this=inner))
    if keys:
        group = exp.Group(expressions=[*map(_column_node, keys)])
        group.meta[SPAN] = _pivot_span(pivots[0], text)
        found.set("group", group)
    return found


def _pivot_field(pivot: exp.Pivot) -> exp.In | None:
    """The FOR of a PIVOT, where it is of one column and of texts."""
    options = {key for key, value in pivot.args.items() if value}
    if pivot.args.get("unpivot") or options - _KNOWN:
        return None
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or type(fields[0]) is not exp.In or not fields[0].expressions:
        return None
    values = [one.this if isinstance(one, exp.PivotAlias) else one for one in fields[0].expressions]
    texts = all(isinstance(one, exp.Literal) and one.is_string for one in values)
    found: exp.In = fields[0]
    return found if texts else None


_KNOWN = {"expressions", "fields", "columns", "pivot_column_naming"}


def _outputs_made(pivot: exp.Pivot, field: exp.In) -> Iterator[exp.Alias]:
    """An output for each value and aggregate; none where Spark names one by its SQL."""
    several = len(pivot.expressions) > 1
    if not all(is_aggregate(one.unalias()) for one in pivot.expressions):
        return
    if several and not all(isinstance(one, exp.Alias) for one in pivot.expressions):
        return
    for value in field.expressions:
        name = value.alias if isinstance(value, exp.PivotAlias) else value.name
        for one in pivot.expressions:
            full = f"{name}_{one.alias}" if several else name
            alias = exp.Identifier(this=full, quoted=True)
            text = value.this if isinstance(value, exp.PivotAlias) else value
            yield exp.Alias(this=_with_filter(one.unalias(), field.this, text), alias=alias)


def _with_filter(call: exp.Expr, column: exp.Expr, text: exp.Expr) -> exp.Filter:
    where = exp.Where(this=exp.EQ(this=column.copy(), expression=text.copy()))
    found = exp.Filter(this=call.copy(), expression=where)
    if SPAN in call.meta:
        found.meta[SPAN] = call.meta[SPAN]
    return found


def _pivot_span(pivot: exp.Expr, text: Text) -> tuple[int, int] | None:
    """The position of a PIVOT."""
    found = span_of(pivot)
    token = text.token_before(found[0], TokenType.PIVOT) if found is not None else None
    return (
        text.with_closing_brackets(token.start, found[1])
        if found is not None and token is not None
        else None
    )


def _names_used(nodes: list[exp.Expr]) -> set[str] | None:
    """The columns that are named, in lower case; None where one has a dot in it."""
    found = [column for node in nodes for column in node.find_all(exp.Column)]
    if any(len(column.parts) > 1 for column in found) or not isinstance(nodes[0], exp.Column):
        return None
    if any(node.find(exp.Query, exp.Window) for node in nodes):
        return None
    return {column.name.lower() for column in found}


def _column_node(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
