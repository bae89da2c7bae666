"""
Steps for changed definitions whose rows follow from the stored rows.

Such a step reads no input. After it the table has the rows of the new definition, built from the
versions of the inputs that the old rows were built from. So the trace keeps these versions and what
was pending, and everything that arrived since is an ordinary step after it. Of a table that starts
earlier than before, the new cells are missing; of one that starts later, rows go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from infold.core.definition import Derivation, How, Redefinition
from infold.core.files import IngestedFile, set_aside_whole
from infold.core.interval import MAX, Interval, Ranges, show_instant
from infold.core.model import Deduplicate, Kind
from infold.core.plan import Action, FileDiff, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause, Pending, Trace, added_up, merge_pending
from infold.core.type_changes import Retyping
from infold.planning.buildable_cells import completed_range, retained_range
from infold.planning.plan_draft import PlanDraft
from infold.planning.staleness import count_of

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
    planned_trace = step.trace
    assert planned_trace is not None, "a planned step has a trace"
    return _over_stored_rows(
        step,
        trace,
        files=None,
        trace=replace(
            planned_trace,
            # What only the new definition reads is read where cells are pending, and nowhere else.
            inputs={**(planned_trace.inputs if since is not None else {}), **trace.inputs},
            pending=merge_pending(entry for entry in pending if entry.ranges),
            applied_entry=trace.applied_entry,
            earlier=() if since is None else trace.redefined_from(since, ""),
        ),
        expected=any(
            may_have_other_types(draft, entry.name)
            or (since is not None and _may_have_other_columns(draft, entry.name))
            for entry in node.stored_inputs
        ),
        derivation=change.derivation,
    )


def _over_stored_rows(step: Step, stored: Trace, **more: Any) -> Step:
    """The step over the versions of the inputs that the stored rows were made from."""
    assert step.trace is not None, "a planned step has a trace"
    trace = replace(step.trace, inputs=dict(stored.inputs), applied_entry=stored.applied_entry)
    usual = {"trace": trace, "expected": False, "scanned": 0, "changed_key_rows": ()}
    inputs = {name: (version, version) for name, version in stored.inputs.items()}
    return replace(step, inputs=inputs, **{**usual, **more})


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
    if node.name in draft.options.restated or (
        change.retyped and not _rows_of_events_stay(node, model, change)
    ):
        return None
    return change if trace.inputs.keys() == {e.name for e in node.stored_inputs} else None


def _rows_of_events_stay(node: Node, model: ModelObservation, change: Redefinition) -> bool:
    """
    Whether the rows of all files are the stored ones under wider types too.

    A file that was set aside as a whole by a policy (its fingerprint has that) is read again.
    """
    files = model.files.ingested if model.files is not None else ()
    if any(file.set_aside and not set_aside_whole(file) for file in files):
        return False
    keeps_hashes = all(part.keeps_hash for part in change.retyped)
    return keeps_hashes or not node.model.unique_key or not any(file.dropped for file in files)


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
    return _over_stored_rows(
        step,
        trace,
        files=files,
        trace=replace(trace, fingerprint=node.fingerprint),
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
    plain = {new.lower() for new, old in step.derivation.plain if new.lower() == old.lower()}
    return any(new.lower() in stored - plain for new, _ in step.derivation.columns)


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


# What the stored rows do not tell is how an event's copies compare that were left out, as the order
# of copies may depend on every column; and what is in columns that were never read. The ledger says
# which cells have had copies. Rows of these cells, and columns that are new, are read again from
# files that are still what they were. Everything that came, changed or went since is an ordinary
# ingest after it.
#
# What the ledger counts of files has to be what a rebuild counts. So where a condition is added, no
# row may have been set aside or be waiting: it might leave them out.


def derive_events(
    draft: PlanDraft, node: Node, model: ModelObservation, files: FileDiff
) -> Step | None:
    """The step that makes an events table of its rows; None where all files are ingested again."""
    change, trace = changed_as_built(draft, node, model, How.DERIVE), model.trace
    if change is None or change.derivation is None or trace is None:
        return None
    derivation, ingested = change.derivation, files.ingested
    if (derivation.where or derivation.other_source_columns) and any(f.set_aside for f in ingested):
        return None
    if derivation.where and any(file.waiting for file in ingested):
        return None
    contested = Ranges.of(entry.cell for entry in files.cells if entry.dropped)
    if contested and node.model.deduplicate is Deduplicate.EVERYWHERE:
        return None  # copies of an event may be in any cells
    whole = _files_in(files, contested)
    column_files = _files_with_columns(derivation, files)
    # A lookup may have changed since, and most of the rows are read by a rebuild with less ado.
    is_costly = node.stored_inputs or 2 * _stored_rows_of(whole) > _stored_rows_of(ingested)
    if (whole or column_files) and (is_costly or _are_other_files(files, whole, column_files)):
        return None
    reasons = "; ".join(_reading_reasons(derivation, column_files, whole)) or FOLLOWS
    rows = _stored_rows_of(whole) + _stored_rows_of(column_files)
    cells = retained_range(node)
    step = draft.make_step(
        node, Action.DERIVE, [Reason(Cause.DEFINITION, reasons, cells, rows)], trace.pending
    )
    return _over_stored_rows(
        step,
        trace,
        # What a source lost is refused before the first step, although a later one takes it out.
        files=replace(
            files, new=(), come_due=(), estimate=None, reingest=whole, new_columns_of=column_files
        ),
        expected=any(may_have_other_types(draft, entry.name) for entry in node.stored_inputs),
        derivation=derivation,
        contested=contested,
    )


def _files_in(files: FileDiff, cells: Ranges) -> tuple[IngestedFile, ...]:
    """The files with rows in some cells."""
    ids = {entry.file_id for entry in files.cells if entry.rows and cells.overlaps(entry.cell)}
    return tuple(file for file in files.ingested if file.id in ids)


def _files_with_columns(derivation: Derivation, files: FileDiff) -> tuple[IngestedFile, ...]:
    """
    The files to read for new columns: those with stored rows.

    Of a column that the source did not have, any file may have values that cannot be used.
    """
    if not derivation.from_files:
        return ()
    every = derivation.other_source_columns
    return tuple(file for file in files.ingested if every or file.rows > file.dropped)


def _are_other_files(files: FileDiff, *read: Collection[IngestedFile]) -> bool:
    """Whether one of some files is gone, or is not what was ingested."""
    present = {(file.path, file.fingerprint) for file in files.new}
    return any((file.path, file.fingerprint) not in present for some in read for file in some)


def _stored_rows_of(files: Collection[IngestedFile]) -> int:
    return sum(file.rows for file in files)


def _reading_reasons(
    derivation: Derivation, columns: Collection[IngestedFile], whole: Collection[IngestedFile]
) -> Iterator[str]:
    """What is read again, and what for."""
    if columns:
        names, several = ", ".join(derivation.from_files), len(derivation.from_files) > 1
        word, them = ("columns", "them") if several else ("column", "it")
        yield f"{word} {names}: {count_of(len(columns), 'file')} read again for {them}"
    if whole:
        yield f"{count_of(len(whole), 'file')} read again where copies of events were left out"


# The rows are proven to be the same by both definitions. So no version is made, readers see no
# change, and the trace keeps the versions of the inputs. What was pending is so in whole new cells.

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
    return _over_stored_rows(step, trace, files=None)


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


# Where other values are computed of the same sessions, states may tell all of them, and no event is
# read. Where sessions end elsewhere, the events of those that may change are read, as they were
# when the stored sessions were made, and no others. So the trace keeps the versions of the inputs,
# and everything that arrived since is an ordinary fold after it.

REFOLDS = "follows from stored sessions: only those that may end elsewhere are read again"
"""The reason for a step that makes some sessions again."""


STATES = "follows from stored states: 0 events read"
"""The reason for a step that reads no event."""


def step_from_stored(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """
    The step that changes the stored sessions of an earlier definition, if that is enough.

    The caller has seen that the rows that they were made from are still there.
    """
    if any(_is_replaced(draft, diff.name) for diff in model.inputs):
        return None
    derived = changed_as_built(draft, node, model, How.DERIVE)
    if derived is not None and derived.derivation is not None:
        step = _step_from_sessions(draft, node, model, Action.DERIVE, STATES)
        return replace(step, derivation=derived.derivation)
    refolded = changed_as_built(draft, node, model, How.REFOLD)
    if refolded is not None and refolded.before is not None:
        step = _step_from_sessions(draft, node, model, Action.REFOLD, REFOLDS)
        return replace(step, stored_by=refolded.before.query)
    return None


def _step_from_sessions(
    draft: PlanDraft, node: Node, model: ModelObservation, action: Action, why: str
) -> Step:
    """A step over the versions of the inputs that the stored sessions were made from."""
    trace = model.trace
    assert trace is not None, "only a built table has sessions to follow from"
    reason = Reason(Cause.DEFINITION, why, Ranges.ever())
    step = draft.make_step(node, action, [reason], trace.pending)
    return _over_stored_rows(step, trace)


def _is_replaced(draft: PlanDraft, name: str) -> bool:
    """Whether an input is itself of another definition now, or is built again."""
    step = draft.steps.get(name)
    if step is not None and step.action in (Action.BUILD, Action.DERIVE, Action.REFOLD):
        return True
    known = draft.observed.models.get(name)
    return known is None or known.redefined is not None
