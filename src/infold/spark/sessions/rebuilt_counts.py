"""
What became of the sessions of a table that was built anew, by their ids.

Every row is written and every old one removed, and still most sessions are those that were there
before. New and removed ones differ by as many rows as the table gained or lost.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.session_columns import ID, LAST
from infold.spark.content import micros
from infold.spark.step_context import Work


def became(work: Work, step: Step, now: DataFrame, receipt: Receipt) -> Receipt:
    """A receipt that knows the rows written and removed, with what became of the sessions."""
    anew = replace(receipt, sessions_new=receipt.written, sessions_removed=receipt.removed)
    head = work.ledger.newest_versions().get(step.model)
    if head is None or head.snapshot is None or not receipt.removed:
        return anew
    try:
        return _compared(work.tables.read(step.model, head.snapshot), now, receipt)
    except Exception:  # noqa: BLE001 (what was there may be damaged, expired, or no sessions)
        return anew


def _compared(before: DataFrame, now: DataFrame, receipt: Receipt) -> Receipt:
    """What became of sessions between two states of a table."""
    both = _ids(before, was=1).unionByName(_ids(now, was=0))
    ends = [F.max(F.when(F.col("was") == was, F.col("last"))) for was in (0, 1)]
    by_id = both.groupBy("id").agg(
        F.sum(1 - 2 * F.col("was")).alias("more"), (ends[0] != ends[1]).alias("moved")
    )
    [(new, gone, moved)] = by_id.agg(
        F.sum(F.greatest("more", F.lit(0))),
        F.sum(F.greatest(-F.col("more"), F.lit(0))),
        F.count_if("moved"),
    ).collect()
    return replace(
        receipt,
        sessions_new=new or 0,
        sessions_removed=gone or 0,
        sessions_extended=moved or 0,
    )


def _ids(table: DataFrame, *, was: int) -> DataFrame:
    """The ids of sessions, and when they end."""
    return table.select(
        F.col(ID).alias("id"), micros(F.col(LAST)).alias("last"), F.lit(was).alias("was")
    )
