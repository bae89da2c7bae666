"""
Steps for changed definitions whose rows follow from the stored rows.

Such a step reads no input. After it the table has the rows of the new definition, built from the
versions of the inputs that the old rows were built from. So the trace keeps these versions and what
was pending, and everything that arrived since is an ordinary step after it. Of a table that starts
earlier than before, the new cells are missing; of one that starts later, rows go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from infold.core.definition import How, Redefinition
from infold.core.files import set_aside_whole
from infold.core.interval import MAX, Interval, Ranges, show_instant
from infold.core.plan import Action, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause, Pending, merge_pending
from infold.core.widened_types import Retyping
from infold.planning.buildable_cells import retained_range
from infold.planning.plan_draft import PlanDraft

FOLLOWS = "follows from stored rows: 0 input rows read"
"""The reason for such a step."""

EVOLVES = "columns get other names: one commit of metadata, 0 rows read or written"
"""The reason for a step that only renames stored columns."""

WIDENS = "columns get wider types: one commit of metadata, 0 rows read or written"
"""The reason for a step that gives stored columns types with the same hashes."""

REHASHES = "columns get wider types: one commit of metadata, stored rows read once, 0 written"
"""The reason for one that gives them types in which values hash to other numbers."""

FORWARD = "forward-only: cells before {} keep their rows"
"""The reason for the step of a forward-only change."""


def derivable(draft: PlanDraft, node: Node, model: ModelObservation) -> Redefinition | None:
    """The change of a model's definition, if its new rows follow from its stored ones."""
    if model.redefined is not None and model.redefined.effective_from is not None:
        return model.redefined  # ``forward_only`` has seen to the rest
    change = changed_as_built(draft, node, model, How.DERIVE)
    return None if change is None or change.derivation is None else change


def changed_as_built(
    draft: PlanDraft, node: Node, model: ModelObservation, how: How
) -> Redefinition | None:
    """
    The change of a model's definition that is carried out in some way from its stored rows.

    None where the rows are not those of the one definition that it was compared with, or are asked
    to be built again.
    """
    change, trace = model.redefined, model.trace
    if change is None or change.how is not how:
        return None
    if trace is None or change.before is None or change.before.fingerprint != trace.fingerprint:
        return None
    if trace.earlier or trace.mixed:
        return None  # the table has rows of two definitions
    if node.name in draft.options.restated or node.name in draft.options.not_derived:
        return None
    return change if trace.inputs.keys() == {e.name for e in node.stored_inputs} else None


def derive_table(
    draft: PlanDraft, node: Node, model: ModelObservation, change: Redefinition
) -> Step:
    """The step that replaces a table by rows that follow from it."""
    assert model.trace is not None, "only a built table has rows to follow from"
    trace, retained = model.trace, retained_range(node)
    pending = [Pending(entry.cause, entry.ranges & retained) for entry in trace.pending]
    pending.append(Pending(Cause.MISSING, _before_start(node, change) & retained))
    why, since = FOLLOWS, change.effective_from
    if since is not None:
        why = FORWARD.format(show_instant(since))
        later = Ranges((Interval(since, MAX),)) & retained
        if change.events is not None and change.events.rows:
            later &= _cells_of_files(node, model, since)
        pending.append(Pending(Cause.DEFINITION, later - trace.pending_ranges))
    step = draft.make_step(node, Action.DERIVE, [Reason(Cause.DEFINITION, why, retained)])
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        files=None,
        trace=replace(
            step.trace,
            # What only the new definition reads is read where cells are pending, and nowhere else.
            inputs={**(step.trace.inputs if since is not None else {}), **trace.inputs},
            pending=merge_pending(entry for entry in pending if entry.ranges),
            applied_entry=trace.applied_entry,
            earlier=() if since is None else trace.redefined_from(since, ""),
        ),
        expected=any(
            may_have_other_types(draft, entry.name)
            or (since is not None and _may_have_other_columns(draft, entry.name))
            for entry in node.stored_inputs
        ),
        scanned=0,
        changed_key_rows=(),
        derivation=change.derivation,
    )


def _cells_of_files(node: Node, model: ModelObservation, since: int) -> Ranges:
    """
    Cells that ingested files have rows in, by both definitions of an events model.

    Where files have rows that wait, the first cell from ``since`` on is one of them.
    """
    granularity, files = node.model.granularity, model.files
    waits = files is not None and any(file.waiting for file in files.ingested)
    first = [granularity.cell(since)] if waits and granularity is not None else []
    return Ranges.of((*(state.cell for state in model.cells), *first))


def evolvable(draft: PlanDraft, node: Node, model: ModelObservation) -> Redefinition | None:
    """
    The change of a model's definition, if it gives stored columns other names or wider types.

    A value that did not fit the earlier type was set aside with its row, and may fit the wider one:
    then files are read again. So they are where another copy of an event may be the one to keep.
    """
    change, trace = model.redefined, model.trace
    if change is None or change.how is not How.EVOLVE or change.before is None or trace is None:
        return None
    mixed = any(entry.cause in (Cause.DEFINITION, Cause.REDEFINED) for entry in trace.pending)
    if trace.earlier or mixed or change.before.fingerprint != trace.fingerprint:
        return None
    if node.name in draft.options.restated or (change.retyped and not _stay(node, model, change)):
        return None
    return change if trace.inputs.keys() == {e.name for e in node.stored_inputs} else None


def _stay(node: Node, model: ModelObservation, change: Redefinition) -> bool:
    """
    Whether the rows of all files are the stored ones under wider types too.

    A file that was set aside as a whole by a policy (its fingerprint has that) is read again.
    """
    files = model.files.ingested if model.files is not None else ()
    if any(file.set_aside and not set_aside_whole(file) for file in files):
        return False
    same = all(part.keeps_hash for part in change.retyped)
    return same or not node.model.unique_key or not any(file.dropped for file in files)


def how_it_evolves(retyped: Collection[Retyping]) -> str:
    """What a step costs that gives columns other names, or these wider types."""
    if not retyped:
        return EVOLVES
    return WIDENS if all(part.keeps_hash for part in retyped) else REHASHES


def evolve_table(
    draft: PlanDraft, node: Node, model: ModelObservation, change: Redefinition
) -> Step:
    """The step that evolves columns; an ordinary one for what is stale comes after it."""
    assert model.trace is not None, "only a built table has columns"
    trace = model.trace
    why = how_it_evolves(change.retyped)
    files = model.files
    if files is not None:
        # What a source lost is refused before the first step, although a later one takes it out.
        files = replace(files, new=(), come_due=(), estimate=None) if files.removed else None
    step = draft.make_step(node, Action.EVOLVE, [Reason(Cause.DEFINITION, why)])
    return replace(
        step,
        inputs={name: (read, read) for name, read in trace.inputs.items()},
        files=files,
        trace=replace(trace, fingerprint=node.fingerprint),
        expected=False,
        scanned=0,
        changed_key_rows=(),
        renamed=change.renamed,
        retyped=change.retyped,
    )


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """
    The steps in the order of execution: those about stored rows first, readers' before inputs'.

    They need no input to be up to date. But once an input lacks a column, it is not known any more
    what the rows of its readers mean that were built from it.
    """
    every = tuple(steps)
    first = [step for step in every if step.action.of_own_rows and not step.expected]
    return (*reversed(first), *(step for step in every if step not in first))


def may_have_other_types(draft: PlanDraft, name: str) -> bool:
    """Whether an input is built in this plan, so that its columns may have other types then."""
    step = draft.steps.get(name)
    if step is None or step.derivation is None:
        return step is not None and step.action is Action.BUILD
    stored = {column.lower() for column in step.derivation.stored}
    same = {new.lower() for new, old in step.derivation.plain if new.lower() == old.lower()}
    return any(new.lower() in stored - same for new, _ in step.derivation.columns)


def _may_have_other_columns(draft: PlanDraft, name: str) -> bool:
    """Whether an input gets the columns in this plan that a forward-only change may name."""
    step = draft.steps.get(name)
    return step is not None and step.action is Action.DERIVE


def _before_start(node: Node, change: Redefinition) -> Ranges:
    """The cells that no run built, as they were before the start; a cell that it cut is one."""
    granularity = node.model.granularity
    if change.before is None or change.before.start is None or granularity is None:
        return Ranges()
    before = Ranges.ever() - Ranges((Interval(change.before.start, MAX),))
    return granularity.cover(before & retained_range(node))
