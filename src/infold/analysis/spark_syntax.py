"""
Syntax that Spark reads differently than the parser here, or not at all.

A query is parsed by another parser than Spark's. So every form that the two read differently is
refused: names that are made at run time, programs, table functions that read files, clauses and
functions that Spark does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.names.relation import Block, Relation, blocks_of
from infold.analysis.names.select_parts import named_windows, window_calls
from infold.analysis.sql.functions import BUILT_IN, GRAMMAR, is_python
from infold.analysis.sql.text import CALL, SPAN, Text
from infold.analysis.times.durations import MONTHS
from infold.messages import findings
from infold.messages.errors import InfoldError

_MARKS = (exp.Parameter, exp.Placeholder, exp.SessionParameter)


def unreadable_by_spark(
    text: Text, tree: exp.Expr, relation: Relation, functions: Sequence[str] = ()
) -> Iterator[InfoldError]:
    """
    Everything in a query that Spark has no such form of, or that hides what is read.

    ``functions`` are the project's, whose calls are expanded already.
    """
    yield from _ambiguous_words(text)
    for block in blocks_of(relation):
        if isinstance(block, Block):
            yield from _mixed_frames(block)
    for node in tree.walk():
        name = node.meta.get(CALL) if node.meta else None
        if name is not None:
            yield from _refused_calls(text, node, str(name), functions)
        if isinstance(node, exp.QueryTransform):
            spot = text.spot_of_token(text.token_after(-1, TokenType.USING) or text.tokens[0])
            yield findings.unsupported_sql(spot, what="TRANSFORM … USING, which runs a program")
        elif isinstance(node, _MARKS):
            yield findings.unsupported_sql(text.spot_of(node), what="a parameter")


def _ambiguous_words(text: Text) -> Iterator[InfoldError]:
    """Clauses of other dialects, by their words."""
    for token, behind in pairwise(text.tokens):
        words = f"{token.text} {behind.text}".upper()
        if token.token_type is TokenType.QUALIFY:
            what = "QUALIFY"
            todo = "Number rows in a subquery, and ask for the number outside of it."
        elif words == "BY NAME" and token.token_type is not TokenType.STRING:
            what, todo = words, "Name the columns of both sides in one order."
        elif words == "DISTINCT ON":
            what, todo = words, "Number rows in a subquery, and ask for the first outside of it."
        else:
            continue
        yield findings.not_in_spark(text.spot_of_token(token), what=what, instead=todo)


def _refused_calls(
    text: Text, node: exp.Expr, name: str, functions: Sequence[str]
) -> Iterator[InfoldError]:
    """A call of a function, by the name that is written."""
    i = text.token_index(node.meta[SPAN][0])
    spot = text.spot_of_token(text.tokens[i])
    if name.lower() == "identifier":
        yield findings.unsupported_sql(spot, what="IDENTIFIER(…), a name that is made of a text")
    elif i > 0 and text.tokens[i - 1].text == ".":
        yield findings.unsupported_sql(spot, what="a function of a catalog")
    elif name.lower() not in BUILT_IN | GRAMMAR and not is_python(name):
        yield findings.unknown_function(spot, name=name, known=[*functions, *BUILT_IN])


def _mixed_frames(block: Block) -> Iterator[InfoldError]:
    """RANGE frames from a number of months to a number of days: Spark takes one kind for both."""
    for window in (*window_calls(block), *named_windows(block).values()):
        spec = window.args.get("spec")
        if not isinstance(spec, exp.WindowSpec) or str(spec.args.get("kind")).upper() != "RANGE":
            continue
        kinds = {
            unit.name.upper().removesuffix("S") in MONTHS
            for end in (spec.args.get("start"), spec.args.get("end"))
            if isinstance(end, exp.Interval) and isinstance(unit := end.args.get("unit"), exp.Var)
        }
        if len(kinds) > 1:
            todo = "Give both ends in days and shorter units, or both in months and longer ones."
            yield findings.not_in_spark(
                block.text.spot_of(window), what="a RANGE frame of months and days", instead=todo
            )
