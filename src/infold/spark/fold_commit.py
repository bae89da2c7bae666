"""The one commit of a fold: announced to the ledger first, then rows removed and added at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.record import Outcome
from infold.spark.step_context import Work


@dataclass(frozen=True, slots=True)
class RowChanges:
    """
    The rows that a fold adds to its table, and those that it removes.

    ``delete`` has the columns ``on`` alone, and finds its rows by ``condition`` (SQL over the
    table). None: nothing is removed.
    """

    insert: DataFrame
    delete: DataFrame | None
    on: tuple[str, ...]
    condition: str = "true"


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
    if rows.delete is None:
        snapshot = work.tables.append(step.model, rows.insert, work.stamp(step))
    else:
        snapshot = work.tables.merge(
            step.model,
            insert=rows.insert,
            delete=rows.delete,
            on=rows.on,
            condition=rows.condition,
            stamp=work.stamp(step),
        )
    return replace(outcome, snapshot=snapshot)
