"""
Stored columns that get other names: one commit of metadata for each table, of any kind.

The commit makes a snapshot too, without a change of rows. It has the step's id, so that a run that
died over it is finished by the next one; and it has the new names, which older snapshots have not.
"""

from __future__ import annotations

from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.record import Outcome, Receipt
from infold.spark.step_context import Work


def carry_out(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """Give the columns of a table their new names; no row is read or written."""
    assert step.trace is not None, "a planned step has a trace"
    outcome = prepared(Outcome(step.model, step.version, step.trace, receipt=Receipt(commits=1)))
    snapshot = work.tables.rename_columns(step.model, step.renamed, work.stamp(step))
    return Outcome(
        outcome.model, outcome.version, outcome.trace, snapshot=snapshot, receipt=outcome.receipt
    )
