"""
Steps for tables whose rows stay as they are, and whose cells are others: a changed granularity.

The rows are proven to be the same by both definitions. So no version is made, readers see no
change, and the trace keeps the versions of the inputs. What was pending is so in whole new cells.
"""

from __future__ import annotations

from dataclasses import replace

from infold.core.definition import How
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Action, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause, Pending, added_up, merge_pending
from infold.planning.buildable_cells import completed_range, retained_range
from infold.planning.plan_draft import PlanDraft

ADDED_UP = "same rows, cells add up: 0 rows read"
"""The reason for a step that needs the states of the old cells alone."""

COUNTED = "same rows, cells are counted: no row is written"
"""The reason for a step that reads the stored rows."""


def rebucket_table(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """The step that divides a table into other cells; None where all of it is to be built."""
    granularity, trace = node.model.granularity, model.trace
    if trace is None or granularity is None or not _same_rows(draft, node, model):
        return None
    longer = added_up(model.cells, granularity) is not None
    if not longer and node.model.kind is Kind.EVENTS:
        return None  # the ledger counts copies by file and cell, and the table has none of them
    # A cell that is not over yet would have rows that a build leaves out until it is.
    stored = granularity.cover(Ranges.of(state.cell for state in model.cells))
    if stored - completed_range(node, draft.observed.as_of):
        return None
    retained = retained_range(node)
    pending = (
        Pending(entry.cause, granularity.cover(entry.ranges) & retained) for entry in trace.pending
    )
    reason = Reason(
        Cause.DEFINITION, ADDED_UP if longer else COUNTED, retained, 0 if longer else model.rows
    )
    step = draft.make_step(node, Action.REBUCKET, [reason], merge_pending(pending))
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        files=None,
        trace=replace(step.trace, inputs=dict(trace.inputs), applied_entry=trace.applied_entry),
        expected=False,
        scanned=0,
        changed_key_rows=(),
    )


def _same_rows(draft: PlanDraft, node: Node, model: ModelObservation) -> bool:
    """Whether the stored rows are those of the new definition for the versions in the trace."""
    change, trace = model.redefined, model.trace
    if change is None or trace is None or change.how is not How.REBUCKET or change.before is None:
        return False
    return (
        change.before.fingerprint == trace.fingerprint
        and not trace.earlier  # the cells of an earlier definition are as long as they were
        and all(entry.cause is not Cause.DEFINITION for entry in trace.pending)
        and node.name not in draft.options.restated
        and trace.inputs.keys() == {entry.name for entry in node.stored_inputs}
    )
