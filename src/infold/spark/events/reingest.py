"""
Files that are taken in again, as a lookup that their rows are joined with has changed.

All of their rows are evaluated anew. Most say what they said: these stay stored as they are, so
that the change of the table is the rows that differ, one by one, and what reads it folds them.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from infold.core.interval import Ranges
from infold.spark.content import cell_start
from infold.spark.events.arrivals import FILE, HASH
from infold.spark.events.ingest import Ingest

_NTH = "_nth"


@dataclass(frozen=True)
class ReingestDiff:
    """
    What differs between what some files say now and what is stored of them.

    ``new`` are rows that are not stored, those of new files among them; ``stay`` are stored ones
    that are said again; ``gone`` are stored ones that are said no longer, in ``cells``.
    """

    new: DataFrame | None
    stay: DataFrame | None = None
    gone: DataFrame | None = None
    cells: Ranges = Ranges()


def differing(ingest: Ingest, new: DataFrame, stored: DataFrame) -> ReingestDiff:
    """
    What differs in files that are taken in again, and in those that are gone.

    ``stored`` are their stored rows, of equal ones of a file one at most, as they have a key.
    """
    again = F.col(FILE).isin([*ingest.again])
    equal = Window.partitionBy(FILE, HASH).orderBy(HASH)
    numbered = new.withColumn(_NTH, F.row_number().over(equal))
    known = _named(stored.where(again).select(FILE, HASH))
    said = _named(new.where(again).select(FILE, HASH))
    same = (F.col(FILE) == F.col(f"_of{FILE}")) & (F.col(HASH) == F.col(f"_of{HASH}"))
    fresh = numbered.join(known, same & (F.col(_NTH) == 1), "left_anti").drop(_NTH)
    gone = stored.join(said, same, "left_anti").localCheckpoint(eager=False)
    cell = cell_start(ingest.time_or_null(), ingest.granularity).alias("cell")
    cells = Ranges.of(ingest.cell(row["cell"]) for row in gone.select(cell).distinct().collect())
    stay = stored.join(said, same, "left_semi")
    return ReingestDiff(fresh, stay, gone if cells else None, cells)


def _named(rows: DataFrame) -> DataFrame:
    """Rows under names of their own, to be joined with others of the same."""
    return rows.toDF(*(f"_of{name}" for name in rows.columns))
