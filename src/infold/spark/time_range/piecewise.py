"""
A whole table from pieces, each computed by itself, in one commit.

Batches bound what is computed at once, and models that stand on overrides are computed cell by
cell. Where a definition changed, all of the table changes at once all the same: so Spark keeps the
rows of each piece, in memory and on its disks, until the last are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from infold.core.interval import Ranges
from infold.spark.step_context import Work

TOGETHER = 64
"""So many frames are put together and kept as one: a plan of thousands takes Spark for ever."""


def pieced(
    work: Work, pieces: Sequence[Ranges], compute: Callable[[Ranges], DataFrame]
) -> DataFrame:
    """The rows of all pieces; each has been computed, alone, when this returns."""
    frames: list[DataFrame] = []
    groups: list[DataFrame] = []
    for piece in pieces:
        named = len(work.views)
        frames.append(compute(piece).localCheckpoint())
        while len(work.views) > named:  # its rows are kept: what they were made from may go
            work.spark.catalog.dropTempView(work.views.popitem()[0])
        if len(frames) == TOGETHER:
            groups.append(_together(frames).localCheckpoint())
            frames.clear()
    return _together([*groups, *frames])


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
