"""A recursive CTE may reach rows of any cell."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.subject import Subject
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """WITH RECURSIVE in a model that is built cell by cell."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.blocks():
        clause = block.node.args.get("with_")
        if isinstance(clause, exp.With) and clause.args.get("recursive"):
            token = block.text.token_after(-1, TokenType.RECURSIVE)
            at = block.text.spot_of_token(token or block.text.tokens[0])
            yield refusals.recursion(at, cell=cells.cell_name)
