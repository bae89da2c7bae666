"""DISTINCT compares rows of one cell: one of its columns keeps the cell."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.subject import Subject
from infold.analysis.sql.text import span_of
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every SELECT DISTINCT over rows of several cells."""
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        if not block.node.args.get("distinct"):
            continue
        if block in cells.bounded_by_where:
            continue
        known = cells.known(block)
        if known.reads_time and not known.columns:
            spans = [span for item in block.node.expressions if (span := span_of(item)) is not None]
            start = min((span[0] for span in spans), default=len(block.text.sql))
            token = block.text.token_before(start, TokenType.DISTINCT)
            at = block.text.spot_of_token(token or block.text.tokens[0])
            yield refusals.distinct_over_cells(
                at, cell=cells.cell_name, columns=cells.time_columns(block)
            )
