"""
Which sessions of a rebuilt table are new, extended or removed, by their ids.

A rebuild writes every row and removes every old one, and still most sessions are those that were
there before. The numbers of new and removed ones differ by the rows that the table gained or lost.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.plan import Step
from infold.core.record import Receipt
from infold.core.session_columns import ID, LAST
from infold.spark.content import micros
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.step_context import Work

_ID, _LAST, _OLD = "id", "last", "old"

SESSION_ENDS = FrameSchema(
    "a session of the table before or after the rebuild",
    (
        FrameColumn(_ID, "string", "its id"),
        FrameColumn(_LAST, "bigint", "its last instant"),
        FrameColumn(_OLD, "int", "1 before the rebuild, 0 after it"),
    ),
)


def with_session_counts(work: Work, step: Step, now: DataFrame, receipt: Receipt) -> Receipt:
    """A receipt of rows written and removed, with the sessions new, extended or removed."""
    all_new = replace(receipt, sessions_new=receipt.written, sessions_removed=receipt.removed)
    head = work.ledger.newest_versions().get(step.model)
    if head is None or head.snapshot is None or not receipt.removed:
        return all_new
    try:
        return _compared(work.tables.read(step.model, head.snapshot), now, receipt)
    except Exception:  # noqa: BLE001 (the old table may be damaged, expired, or no sessions)
        return all_new


def _compared(before: DataFrame, now: DataFrame, receipt: Receipt) -> Receipt:
    """The receipt, with what changed between two states of a table."""
    both = _session_ends(before, old=1).unionByName(_session_ends(now, old=0))
    ends = [F.max(F.when(F.col(_OLD) == old, F.col(_LAST))) for old in (0, 1)]
    by_id = both.groupBy(_ID).agg(
        F.sum(1 - 2 * F.col(_OLD)).alias("more"), (ends[0] != ends[1]).alias("extended")
    )
    # One row.
    [(new, removed, extended)] = by_id.agg(
        F.sum(F.greatest("more", F.lit(0))),
        F.sum(F.greatest(-F.col("more"), F.lit(0))),
        F.count_if("extended"),
    ).collect()
    return replace(
        receipt,
        sessions_new=new or 0,
        sessions_removed=removed or 0,
        sessions_extended=extended or 0,
    )


@returns(SESSION_ENDS)
def _session_ends(table: DataFrame, *, old: int) -> DataFrame:
    """The ids of sessions, and when they end."""
    return table.select(
        F.col(ID).alias(_ID), micros(F.col(LAST)).alias(_LAST), F.lit(old).alias(_OLD)
    )
