"""Frames that are computed once, and read several times."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.spark.observed import kept_and_observed


def computed_once(frame: DataFrame) -> tuple[DataFrame, int]:
    """A frame's rows, kept, and how many there are: in one action."""
    kept, seen = kept_and_observed(frame, F.count(F.lit(1)).alias("rows"))
    return kept, seen.get("rows") or 0
