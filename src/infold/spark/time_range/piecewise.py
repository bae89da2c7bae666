"""
A whole table computed piece by piece and committed at once, as one frame of the model's columns.

Batches limit how much is computed at once, and models with overrides are computed cell by cell.
Where a definition changes, the whole table must still change at once. So Spark keeps the rows of
each piece, in memory and on disk, until the last piece is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from infold.core.interval import Ranges
from infold.spark.step_context import Work

TOGETHER = 64
"""After so many pieces their frames are kept as one: Spark plans thousands of frames too slowly."""


def rows_in_pieces(
    work: Work, pieces: Sequence[Ranges], compute: Callable[[Ranges], DataFrame]
) -> DataFrame:
    """The rows of all pieces; each has been computed, alone, when this returns."""
    frames: list[DataFrame] = []
    groups: list[DataFrame] = []
    for piece in pieces:
        named = len(work.views)
        frames.append(compute(piece).localCheckpoint())
        while len(work.views) > named:  # its rows are kept, so its views are no longer needed
            work.spark.catalog.dropTempView(work.views.popitem()[0])
        if len(frames) == TOGETHER:
            groups.append(_union_pieces(frames).localCheckpoint())
            frames.clear()
    return _union_pieces([*groups, *frames])


def _union_pieces(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
