"""Frames that are computed once, and read several times."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F


def computed_once(frame: DataFrame) -> tuple[DataFrame, int]:
    """A frame's rows, kept, and how many there are: in one action."""
    seen = Observation()
    kept = frame.observe(seen, F.count(F.lit(1)).alias("rows")).localCheckpoint()
    return kept, seen.get.get("rows") or 0
