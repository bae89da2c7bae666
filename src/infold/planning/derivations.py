"""
The step for a changed definition whose rows follow from the stored rows.

Such a step reads no input. After it the table has the rows of the new definition, built from the
versions of the inputs that the old rows were built from. So the trace keeps these versions and what
was pending, and everything that arrived since is an ordinary step after it. Of a table that starts
earlier than before, the new cells are missing; of one that starts later, rows go.

How the rows follow is proven by ``analysis/definitions``: a SELECT over stored rows, or other ends
of stored sessions. Here is decided whether the stored rows, and what the ledger counts beside them,
are those that the proof is about. If not, all is built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from infold.core.definition import Derivation, How, Redefinition
from infold.core.files import IngestedFile, set_aside_whole
from infold.core.interval import MAX, Interval, Ranges, show_instant
from infold.core.model import Deduplicate, Kind
from infold.core.plan import Action, FileDiff, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause, Pending, Trace, added_up, merge_pending
from infold.planning.buildable_cells import cells_to_replace, completed_range, retained_range
from infold.planning.forward_only import FORWARD, earlier_after
from infold.planning.plan_draft import PlanDraft
from infold.planning.staleness import count_of

FOLLOWS = "follows from stored rows: 0 input rows read"
STATES = "follows from stored states: 0 events read"
REFOLDS = "follows from stored sessions: only those that may end elsewhere are read again"
EVOLVES = "columns get other names: one commit of metadata, 0 rows read or written"
WIDENS = "columns get wider types: one commit of metadata, 0 rows read or written"
REHASHES = "columns get wider types: one commit of metadata, stored rows read once, 0 written"
ADDED_UP = "same rows, cells add up: 0 rows read"
COUNTED = "same rows, cells are counted: no row is written"


def step_over_stored_rows(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """The step for a changed definition, if its rows follow from stored ones; else None."""
    change, trace = model.redefined, model.trace
    if change is None or trace is None or not _follows(draft, node, model, change, trace):
        return None
    derivation, files = change.derivation, model.files
    assert derivation is not None, "what follows has a derivation"
    forward = change.effective_from is not None
    why, rows = _cost(node, model, change, derivation)
    if files is not None and change.how is How.DERIVE and not forward:
        contested = Ranges.of(entry.cell for entry in files.cells if entry.dropped)
        derivation = replace(derivation, contested=contested)
        files = _files_to_read(node, derivation, files)
        if files is None:
            return None
        why, rows = _reason_of_files(derivation, files)
    elif files is not None and not files.removed:
        files = None
    if files is not None:
        # What a source lost is refused before the first step, although a later one takes it out.
        files = replace(files, new=(), come_due=(), estimate=None)
    cells = Ranges() if change.how is How.EVOLVE else retained_range(node)
    pending = merge_pending(_pending(node, model, change, trace))
    reason = Reason(Cause.DEFINITION, why, cells, rows)
    step = draft.make_step(node, Action(change.how.value), [reason], pending)
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        files=files,
        trace=replace(
            step.trace,
            # What only the new definition reads is read where cells are pending, and nowhere else.
            inputs={**(step.trace.inputs if forward else {}), **trace.inputs},
            applied_entry=trace.applied_entry,
            earlier=earlier_after(node, model, Ranges()),
        ),
        expected=change.how is How.DERIVE and _waits_for_inputs(draft, node, change),
        scanned=0,
        changed_key_rows=(),
        derivation=derivation,
    )


def _follows(
    draft: PlanDraft, node: Node, model: ModelObservation, change: Redefinition, trace: Trace
) -> bool:
    """
    Whether the stored rows are those of the one definition that the new one was compared with.

    And whether these rows are enough, as far as no file is read.
    """
    if change.derivation is None:
        return False
    if change.effective_from is not None:
        return True  # ``forward_only`` has seen to the rest
    if change.before is None or change.before.fingerprint != trace.fingerprint:
        return False
    if trace.earlier or trace.mixed:
        return False  # the table has rows of two definitions
    if node.name in draft.options.restated or node.name in draft.options.not_derived:
        return False
    if trace.inputs.keys() != {entry.name for entry in node.stored_inputs}:
        return False
    return _are_enough(draft, node, model, change)


def _are_enough(
    draft: PlanDraft, node: Node, model: ModelObservation, change: Redefinition
) -> bool:
    """Whether no more has to be known than the stored rows, and what the ledger has of them."""
    if change.how is How.REBUCKET:
        return _may_have_other_cells(draft, node, model)
    if change.how is How.EVOLVE:
        return _rows_of_events_stay(node, model, change)
    if node.model.kind is Kind.SESSIONS:
        # Of inputs that are replaced, the rows that the sessions were made from are gone.
        replaced = any(_is_replaced(draft, diff.name) for diff in model.inputs)
        return not replaced and not draft.is_mostly_new(node, model)
    if node.model.kind is Kind.INCREMENTAL_TABLE:
        return not cells_to_replace(node, model) - draft.window
    return True


def _cost(
    node: Node, model: ModelObservation, change: Redefinition, derivation: Derivation
) -> tuple[str, int]:
    """What is said of a step that reads no file, and how many stored rows it has to count."""
    granularity = node.model.granularity
    if change.effective_from is not None:
        return FORWARD.format(show_instant(change.effective_from)), 0
    if change.how is How.REBUCKET and granularity is not None:
        longer = added_up(model.cells, granularity) is not None
        return (ADDED_UP, 0) if longer else (COUNTED, model.rows)
    if change.how is How.EVOLVE:
        keeps_hashes = all(part.keeps_hash for part in derivation.retyped)
        widens = WIDENS if keeps_hashes else REHASHES
        return (widens if derivation.retyped else EVOLVES), 0
    if change.how is How.REFOLD:
        return REFOLDS, 0
    return (FOLLOWS if derivation.sessions is None else STATES), 0


def _pending(
    node: Node, model: ModelObservation, change: Redefinition, trace: Trace
) -> Iterator[Pending]:
    """What is stale after the step: what was, in whole cells, and what no run ever built."""
    granularity, retained = node.model.granularity, retained_range(node)
    for entry in trace.pending:
        whole = entry.ranges if granularity is None else granularity.cover(entry.ranges)
        if whole & retained:
            yield Pending(entry.cause, whole & retained)
    if missing := _before_start(node, change) & retained:
        yield Pending(Cause.MISSING, missing)
    if change.effective_from is not None:
        later = Ranges((Interval(change.effective_from, MAX),)) & retained
        if change.events is not None and change.events.rows:
            later &= _cells_of_files(node, model, change.effective_from)
        if later - trace.pending_ranges:
            yield Pending(Cause.DEFINITION, later - trace.pending_ranges)


def _before_start(node: Node, change: Redefinition) -> Ranges:
    """The cells that no run built, as they were before the start; a cell that it cut is one."""
    granularity = node.model.granularity
    if change.before is None or change.before.start in (None, node.start) or granularity is None:
        return Ranges()
    before = Ranges.ever() - Ranges((Interval(change.before.start, MAX),))
    return granularity.cover(before & retained_range(node))


def _cells_of_files(node: Node, model: ModelObservation, since: int) -> Ranges:
    """
    Cells that ingested files have rows in, by both definitions of an events model.

    Where files have rows that wait, the first cell from ``since`` on is one of them.
    """
    granularity, files = node.model.granularity, model.files
    waits = files is not None and any(file.waiting for file in files.ingested)
    first = [granularity.cell(since)] if waits and granularity is not None else []
    return Ranges.of((*(state.cell for state in model.cells), *first))


def _rows_of_events_stay(node: Node, model: ModelObservation, change: Redefinition) -> bool:
    """
    Whether the rows of all files are the stored ones under wider types too.

    A value that did not fit the earlier type was set aside with its row, and may fit the wider one:
    then files are read again. So they are where another copy of an event may be the one to keep. A
    file that was set aside as a whole by a policy (its fingerprint has that) is read again.
    """
    retyped = change.derivation.retyped if change.derivation is not None else ()
    if not retyped:
        return True
    files = model.files.ingested if model.files is not None else ()
    if any(file.set_aside and not set_aside_whole(file) for file in files):
        return False
    keeps_hashes = all(part.keeps_hash for part in retyped)
    return keeps_hashes or not node.model.unique_key or not any(file.dropped for file in files)


def _may_have_other_cells(draft: PlanDraft, node: Node, model: ModelObservation) -> bool:
    """Whether rows that stay as they are can be divided into other cells without building any."""
    granularity = node.model.granularity
    if granularity is None:
        return False
    if node.model.kind is Kind.EVENTS and added_up(model.cells, granularity) is None:
        return False  # the ledger counts copies by file and cell, and the table has none of them
    # A cell that is not over yet would have rows that a build leaves out until it is.
    stored = granularity.cover(Ranges.of(state.cell for state in model.cells))
    return not stored - completed_range(node, draft.observed.as_of)


def _is_replaced(draft: PlanDraft, name: str) -> bool:
    """Whether an input is itself of another definition now, or is built again."""
    step = draft.steps.get(name)
    if step is not None and step.action in (Action.BUILD, Action.DERIVE, Action.REFOLD):
        return True
    known = draft.observed.models.get(name)
    return known is None or known.redefined is not None


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """
    The steps in the order of execution: those about stored rows first, readers' before inputs'.

    They need no input to be up to date. But once an input lacks a column, it is not known any more
    what the rows of its readers mean that were built from it.
    """
    every = tuple(steps)
    first = [step for step in every if step.action.of_own_rows and not step.expected]
    return (*reversed(first), *(step for step in every if step not in first))


def _waits_for_inputs(draft: PlanDraft, node: Node, change: Redefinition) -> bool:
    """Whether what inputs have after this plan decides about the columns of a step."""
    forward = change.effective_from is not None
    return any(
        _may_have_other_types(draft, entry.name)
        or (forward and _may_have_other_columns(draft, entry.name))
        for entry in node.stored_inputs
    )


def _may_have_other_types(draft: PlanDraft, name: str) -> bool:
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


# What the stored rows do not tell is how an event's copies compare that were left out, as the order
# of copies may depend on every column; and what is in columns that were never read. The ledger says
# which cells have had copies. Rows of these cells, and columns that are new, are read again from
# files that are still what they were. Everything that came, changed or went since is an ordinary
# ingest after it.
#
# What the ledger counts of files has to be what a rebuild counts. So where a condition is added, no
# row may have been set aside or be waiting: it might leave them out.


def _files_to_read(node: Node, derivation: Derivation, files: FileDiff) -> FileDiff | None:
    """The files that events are read again from; None where all of them are ingested again."""
    ingested, contested = files.ingested, derivation.contested
    if (derivation.where or derivation.other_source_columns) and any(f.set_aside for f in ingested):
        return None
    if derivation.where and any(file.waiting for file in ingested):
        return None
    if contested and node.model.deduplicate is Deduplicate.EVERYWHERE:
        return None  # copies of an event may be in any cells
    whole = _files_in(files, contested)
    column_files = _files_with_columns(derivation, files)
    # A lookup may have changed since, and most of the rows are read by a rebuild with less ado.
    is_costly = node.stored_inputs or 2 * _stored_rows_of(whole) > _stored_rows_of(ingested)
    if (whole or column_files) and (is_costly or _are_other_files(files, *whole, *column_files)):
        return None
    return replace(files, reingest=whole, new_columns_of=column_files)


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


def _are_other_files(files: FileDiff, *read: IngestedFile) -> bool:
    """Whether one of some files is gone, or is not what was ingested."""
    present = {(file.path, file.fingerprint) for file in files.new}
    return any((file.path, file.fingerprint) not in present for file in read)


def _stored_rows_of(files: Collection[IngestedFile]) -> int:
    return sum(file.rows for file in files)


def _reason_of_files(derivation: Derivation, files: FileDiff) -> tuple[str, int]:
    """What is read again and what for, and how many rows that are."""
    whole, column_files = files.reingest, files.new_columns_of
    reasons = []
    if column_files:
        names, several = ", ".join(derivation.from_files), len(derivation.from_files) > 1
        word, them = ("columns", "them") if several else ("column", "it")
        reasons.append(
            f"{word} {names}: {count_of(len(column_files), 'file')} read again for {them}"
        )
    if whole:
        left_out = "where copies of events were left out"
        reasons.append(f"{count_of(len(whole), 'file')} read again {left_out}")
    rows = _stored_rows_of(whole) + _stored_rows_of(column_files)
    return "; ".join(reasons) or FOLLOWS, rows
