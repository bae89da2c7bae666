"""LIMIT: without ORDER BY it takes any rows, and in a cell it takes from all cells together."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import Block, SetOperation, blocks_of
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import span_of
from infold.messages import refusals
from infold.messages.errors import InfoldError, Spot

_KINDS = {"limit": TokenType.LIMIT, "offset": TokenType.OFFSET}


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every LIMIT and OFFSET where none is allowed."""
    cells = cells_of(subject)
    if subject.model.kind.is_by_key:
        return  # refused there in any form
    for block in blocks_of(subject.relation, views=cells is not None):
        for key in _KINDS:
            clause = block.node.args.get(key)
            if clause is None:
                continue
            at, word = _spot(block, key), key.upper()
            if (
                cells is not None
                and cells.reads_time(block)
                and block not in cells.bounded_by_where
            ):
                if block in cells.unbounded_laterals:
                    break  # its bound in time has to be stated first
                yield refusals.limit_over_cells(at, word=word, cell=cells.cell_name)
            elif isinstance(block.node.parent, exp.Exists):
                pass  # how many rows are left does not depend on which
            elif not block.node.args.get("order") and block.text is subject.text:
                yield refusals.limit_without_order(at, word=word)
            break


def _spot(block: Block | SetOperation, key: str) -> Spot:
    """The keyword: the first of its kind behind all other names of the query."""
    ends = [
        span[1]
        for name, value in block.node.args.items()
        if name not in ("limit", "offset")
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr) and (span := span_of(part)) is not None
    ]
    token = block.text.token_after(max(ends, default=0), _KINDS[key])
    return block.text.spot_of_token(token) if token else block.text.spot(0)
