"""The one commit of a fold: announced to the ledger first, then rows removed and added at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.record import Outcome
from infold.spark.inputs.changed_keys import SMALL
from infold.spark.jvm.session_settings import settings_of_one_plan
from infold.spark.step_context import Work

ROWS_PER_TASK = 100_000
"""About how many rows one task joins and writes when a fold commits."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """
    The rows that a fold adds to its table, and those that it removes.

    ``delete`` has the columns ``on`` alone, and finds its rows by ``condition`` (SQL over the
    table). None: nothing is removed. ``shuffled`` is about how many rows Spark
    joins for that, if it is known.
    """

    insert: DataFrame
    delete: DataFrame | None
    on: tuple[str, ...]
    condition: str = "true"
    shuffled: int | None = None


def announce_and_commit(
    work: Work, step: Step, outcome: Outcome, rows: RowChanges | None, announce: Prepared
) -> Outcome:
    """
    Record the expected outcome in the ledger, commit, and give the outcome with its snapshot.

    Without ``rows`` nothing is committed: the table is as it was.
    """
    announce(outcome)
    if rows is None:
        return outcome
    if rows.shuffled is None or rows.shuffled > SMALL:
        return replace(outcome, snapshot=_commit(work, step, rows))
    with settings_of_one_plan(work.spark, 1 + rows.shuffled // ROWS_PER_TASK):
        snapshot = _commit(work, step, rows)
    return replace(outcome, snapshot=snapshot)


def _commit(work: Work, step: Step, rows: RowChanges) -> int:
    """The snapshot with the rows added and removed."""
    if rows.delete is None:
        return work.tables.append(step.model, rows.insert, work.stamp(step))
    return work.tables.merge(
        step.model,
        insert=rows.insert,
        delete=rows.delete,
        on=rows.on,
        condition=rows.condition,
        stamp=work.stamp(step),
    )
