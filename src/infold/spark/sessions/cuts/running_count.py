"""Starts counted up to an event: they number the pieces that cuts make of an island."""

from __future__ import annotations

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec


def running_count(begins: Column, by_time: WindowSpec) -> Column:
    """How many instants so far begin something: alike for all events of an instant."""
    frame = by_time.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    return F.sum(F.when(begins, 1).otherwise(0)).over(frame)
