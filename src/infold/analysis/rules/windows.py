"""
Window functions look at rows of one cell, or of a bounded range around it.

PARTITION BY has an expression that follows the time, or a RANGE frame with intervals is ordered by
one. ROWS and GROUPS frames count rows of any time. LAG, LEAD and ranks ignore every frame. In no
model does Spark have FILTER in a window.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.relation import Block, blocks_of
from infold.analysis.names.select_parts import window_calls
from infold.analysis.names.subject import Subject
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every window over rows of any time, and every one that Spark does not evaluate."""
    for one in blocks_of(subject.relation):
        for window in window_calls(one) if isinstance(one, Block) else ():
            if isinstance(window.this, exp.Filter):
                yield refusals.filter_in_window(one.text.spot_of(window))
    cells = cells_of(subject)
    if cells is None:
        return
    for block in cells.select_blocks():
        if not cells.reads_time(block):
            continue
        if block in cells.bounded_by_where:
            continue
        for window, near in cells.select(block).bounded_windows():
            if not near:
                at = block.text.spot_of(window)
                yield refusals.window_over_cells(
                    at, cell=cells.cell_name, columns=cells.time_columns(block)
                )
