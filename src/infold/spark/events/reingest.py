"""
Files that are ingested again because a lookup changed that their rows are joined with.

All of their rows are evaluated again. Most give the row that is stored; these stay as they are. So
the change of the table is the rows that differ, one by one, and what reads the table folds them.

The frames here are judged arrivals (``arrivals``), and stored rows with ``_hash``
(``table_change``).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from infold.core.interval import Ranges
from infold.core.own_columns import FILE
from infold.spark.content import cell_start
from infold.spark.events.arrivals import HASH
from infold.spark.events.ingest import Ingest

_NTH = "_nth"


@dataclass(frozen=True)
class ReingestDiff:
    """
    How the rows of some files differ from the stored rows of these files.

    ``new`` are rows that are not stored, with those of new files; ``stay`` are stored rows that
    came out again; ``gone`` are stored rows that did not, in ``cells``.
    """

    new: DataFrame | None
    stay: DataFrame | None = None
    gone: DataFrame | None = None
    cells: Ranges = Ranges()


def reingest_diff(ingest: Ingest, new: DataFrame, stored: DataFrame) -> ReingestDiff:
    """
    How files that are ingested again differ from what is stored; rows of gone files are ``gone``.

    ``stored`` are their stored rows: one at most of equal rows of a file, as rows have a key.
    """
    again = F.col(FILE).isin([*ingest.again])
    equal = Window.partitionBy(FILE, HASH).orderBy(HASH)
    numbered = new.withColumn(_NTH, F.row_number().over(equal))
    known = _renamed(stored.where(again).select(FILE, HASH))
    evaluated = _renamed(new.where(again).select(FILE, HASH))
    same = (F.col(FILE) == F.col(f"_of{FILE}")) & (F.col(HASH) == F.col(f"_of{HASH}"))
    fresh = numbered.join(known, same & (F.col(_NTH) == 1), "left_anti").drop(_NTH)
    gone = stored.join(evaluated, same, "left_anti").localCheckpoint(eager=False)
    cell = cell_start(ingest.time_or_null(), ingest.granularity).alias("cell")
    # At most a row for each cell.
    cells = Ranges.of(ingest.cell(row["cell"]) for row in gone.select(cell).distinct().collect())
    stay = stored.join(evaluated, same, "left_semi")
    return ReingestDiff(fresh, stay, gone if cells else None, cells)


def _renamed(rows: DataFrame) -> DataFrame:
    """Rows with other column names, to be joined with rows that have the same."""
    return rows.toDF(*(f"_of{name}" for name in rows.columns))
