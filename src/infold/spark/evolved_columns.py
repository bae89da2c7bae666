"""
Stored columns that get other names or wider types: one commit of metadata for each table.

The commit makes a snapshot too, without a change of rows. It has the step's id, so that a run that
died over it is finished by the next one; and it has the new names and types, which older snapshots
have not. Where values of a wider type hash to other numbers, the stored rows are read once for the
content of each cell; no row is written. The version counts as one that replaced the table, so that
readers see that a column is of another type.
"""

from __future__ import annotations

from pyspark.sql import types as T

from infold.analysis.names.subject import time_column
from infold.core.plan import Step
from infold.core.ports import Prepared
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, changes_of_rewrite
from infold.spark.content import cell_states, user_columns
from infold.spark.retyped_columns import retyped
from infold.spark.step_context import Work


def carry_out_evolved(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """Give the columns of a table their new names and types; no row is written."""
    assert step.trace is not None, "a planned step has a trace"
    changes, scanned = _changes(work, step) if step.retyped else ((), 0)
    receipt = Receipt(commits=1, scanned=scanned)
    outcome = Outcome(
        step.model,
        step.version,
        step.trace,
        changes=changes,
        whole=bool(step.retyped),
        receipt=receipt,
    )
    outcome = prepared(outcome)
    types = [
        (part.path, T.DataType.fromDDL(part.after))
        for part in step.retyped
        if not part.is_stored_alike
    ]
    snapshot = work.tables.evolve(step.model, step.renamed, types, work.stamp(step))
    return Outcome(
        outcome.model,
        outcome.version,
        outcome.trace,
        changes=outcome.changes,
        whole=outcome.whole,
        snapshot=snapshot,
        receipt=outcome.receipt,
    )


def _changes(work: Work, step: Step) -> tuple[tuple[CellChange, ...], int]:
    """The cells with their contents before and after; how many rows were read for that."""
    before = tuple(work.cells(step.model))
    if all(part.keeps_hash for part in step.retyped):
        return changes_of_rewrite(before, before), 0
    node = work.project[step.model]
    parts = {part.path: T.DataType.fromDDL(part.after) for part in step.retyped}
    rows = retyped(user_columns(work.tables.read(step.model)), parts)
    after = cell_states(rows, time_column(node), node.model.granularity)
    return changes_of_rewrite(before, after.values()), sum(state.rows for state in before)
