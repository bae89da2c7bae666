"""
Window functions look at rows of one cell, or of a bounded range around it.

PARTITION BY has an expression that follows the time, or a RANGE frame with intervals is ordered by
one. ROWS and GROUPS frames count rows of any time. LAG, LEAD and ranks ignore every frame.
"""

from __future__ import annotations

from collections.abc import Iterator

from infold.analysis.bounds.cells import cells_of
from infold.analysis.names.subject import Subject
from infold.messages import refusals
from infold.messages.errors import InfoldError


def check(subject: Subject) -> Iterator[InfoldError]:
    """Every window over rows of any time."""
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
