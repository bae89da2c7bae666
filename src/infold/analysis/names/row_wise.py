"""Queries that turn one row into at most one row: a projection and a WHERE, nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.relation import Block, Relation, Table, own_nodes
from infold.analysis.sql.aggregate_calls import is_aggregate
from infold.analysis.sql.text import Text
from infold.analysis.times.buckets import makes_several
from infold.messages.errors import Spot

_CLAUSES = {
    "with_": ("a CTE", TokenType.WITH),
    "distinct": ("DISTINCT", TokenType.DISTINCT),
    "joins": ("a join", TokenType.JOIN),
    "laterals": ("LATERAL VIEW", TokenType.LATERAL),
    "group": ("GROUP BY", TokenType.GROUP_BY),
    "having": ("HAVING", TokenType.HAVING),
    "windows": ("WINDOW", TokenType.WINDOW),
    "qualify": ("QUALIFY", TokenType.QUALIFY),
    "order": ("ORDER BY", TokenType.ORDER_BY),
    "sort": ("SORT BY", TokenType.SORT_BY),
    "cluster": ("CLUSTER BY", TokenType.CLUSTER_BY),
    "distribute": ("DISTRIBUTE BY", TokenType.DISTRIBUTE_BY),
    "limit": ("LIMIT", TokenType.LIMIT),
    "offset": ("OFFSET", TokenType.OFFSET),
}


def clauses_beyond_row_wise(text: Text, relation: Relation) -> Iterator[tuple[str, Spot]]:
    """Everything that makes a query more than one SELECT … FROM … WHERE … over one table."""
    if not isinstance(relation, Block):
        token = text.token_after(-1, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
        what = token.text.upper() if token else "a subquery"
        yield what, text.spot_of_token(token or text.tokens[0])
        return
    for key, (what, kind) in _CLAUSES.items():
        if relation.node.args.get(key):
            token = text.token_after(-1, kind)
            yield what, text.spot_of_token(token) if token else text.spot(0)
    for entry in relation.entries[:1]:
        if not isinstance(entry.relation, Table):
            yield "a subquery in FROM", text.spot_of_entry(entry.node)
        elif entry.node.args.get("sample"):
            token = text.token_after(-1, TokenType.TABLE_SAMPLE)
            yield "TABLESAMPLE", text.spot_of_token(token or text.tokens[0])
    if not relation.entries:
        yield "a SELECT without FROM", text.spot_of_token(text.tokens[0])
    for holder, _ in relation.nested_queries:
        yield "a subquery", text.spot_of(holder)


def calls_over_rows(block: Block) -> Iterator[tuple[str, exp.Expr]]:
    """Aggregates, windows and generators: calls that do not make one value of one row."""
    inside: set[int] = set()
    for node in block.expressions():
        if id(node) in inside:
            continue
        what = ""
        if isinstance(node, exp.Window):
            what = "a window function"
        elif _makes_several_rows(node):
            what = "a function that makes several rows"
        elif is_aggregate(node):
            what = "an aggregate"
        if what:
            inside.update(id(part) for part in own_nodes(node))
            yield what, node


_GENERATORS = (
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
    exp.Stack,
)


def _makes_several_rows(node: exp.Expr) -> bool:
    several = _is_function(node, "stack", "inline_outer", "json_tuple")
    return isinstance(node, _GENERATORS) or several or makes_several(node)


def _is_function(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names
