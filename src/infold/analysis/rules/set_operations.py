"""
UNION ALL puts rows beside each other; every other set operation compares them.

Equal rows are of one range around one cell when one of their columns, on both sides, follows the
time; else they may be of any two cells.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import SetOperation
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import span_of
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every set operation but UNION ALL that compares rows of any two times."""
    cells = cells_of(subject)
    if cells is None:
        return
    for operation in cells.blocks():
        if not isinstance(operation, SetOperation) or not cells.reads_time(operation):
            continue
        if operation in cells.bounded_by_where:
            continue
        if any(cells.known(operation).by_position or ()):
            continue
        if not isinstance(operation.node, exp.Union) or operation.node.args.get("distinct"):
            at, word = _spot(operation)
            yield refusals.set_operation(at, cell=cells.cell_name, word=word)


def _spot(operation: SetOperation) -> tuple[Spot, str]:
    found = span_of(operation.node.expression)
    kinds = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
    token = operation.text.token_before(found[0], *kinds) if found else None
    token = token or operation.text.token_after(-1, *kinds)
    if token is None:  # MINUS, which has no kind of its own
        return operation.text.spot_of(operation.node.expression), "a set operation"
    return operation.text.spot_of_token(token), token.text.upper()
