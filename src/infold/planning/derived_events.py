"""
Steps for changed definitions of events whose rows follow from the stored ones.

What the stored rows do not tell is how an event's copies compare that were left out, as the order
of copies may depend on every column; and what is in columns that were never read. The ledger says
which cells have had copies. Rows of these cells, and columns that are new, are read again from
files that are still what they were. Everything that came, changed or went since is an ordinary
ingest after it.

What the ledger counts of files has to be what a rebuild counts. So where a condition is added, no
row may have been set aside or be waiting: it might leave them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from infold.core.definition import Derivation, How
from infold.core.files import IngestedFile
from infold.core.interval import Ranges
from infold.core.model import Deduplicate
from infold.core.plan import Action, FileDiff, ModelObservation, Reason, Step
from infold.core.project import Node
from infold.core.trace import Cause
from infold.planning.buildable_cells import retained_range
from infold.planning.derivations import FOLLOWS, changed_as_built, may_have_other_types
from infold.planning.file_reasons import count_of
from infold.planning.plan_draft import PlanDraft


def derive_events(
    draft: PlanDraft, node: Node, model: ModelObservation, files: FileDiff
) -> Step | None:
    """The step that makes an events table of its rows; None where all files are ingested again."""
    change, trace = changed_as_built(draft, node, model, How.DERIVE), model.trace
    if change is None or change.derivation is None or trace is None:
        return None
    found, known = change.derivation, files.ingested
    if (found.where or found.other_source_columns) and any(file.set_aside for file in known):
        return None
    if found.where and any(file.waiting for file in known):
        return None
    contested = Ranges.of(entry.cell for entry in files.cells if entry.dropped)
    if contested and node.model.deduplicate is Deduplicate.EVERYWHERE:
        return None  # copies of an event may be in any cells
    whole = _files_in(files, contested)
    columns = _files_with_columns(found, files)
    # A lookup may have changed since, and most of the rows are read by a rebuild with less ado.
    unwise = node.stored_inputs or 2 * _rows(whole) > _rows(known)
    if (whole or columns) and (unwise or _differ(files, whole, columns)):
        return None
    reasons = "; ".join(_reasons(found, columns, whole)) or FOLLOWS
    rows = _rows(whole) + _rows(columns)
    cells = retained_range(node)
    step = draft.make_step(
        node, Action.DERIVE, [Reason(Cause.DEFINITION, reasons, cells, rows)], trace.pending
    )
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        inputs={name: (version, version) for name, version in trace.inputs.items()},
        # What a source lost is refused before the first step, although a later one takes it out.
        files=replace(
            files, new=(), come_due=(), estimate=None, reingest=whole, new_columns_of=columns
        ),
        trace=replace(step.trace, inputs=dict(trace.inputs), applied_entry=trace.applied_entry),
        expected=any(may_have_other_types(draft, entry.name) for entry in node.stored_inputs),
        scanned=0,
        changed_key_rows=(),
        derivation=found,
        contested=contested,
    )


def _files_in(files: FileDiff, cells: Ranges) -> tuple[IngestedFile, ...]:
    """The files with rows in some cells."""
    some = {entry.file_id for entry in files.cells if entry.rows and cells.overlaps(entry.cell)}
    return tuple(file for file in files.ingested if file.id in some)


def _files_with_columns(found: Derivation, files: FileDiff) -> tuple[IngestedFile, ...]:
    """
    The files to read for new columns: those with stored rows.

    Of a column that the source did not have, any file may have values that cannot be used.
    """
    if not found.from_files:
        return ()
    every = found.other_source_columns
    return tuple(file for file in files.ingested if every or file.rows > file.dropped)


def _differ(files: FileDiff, *read: Collection[IngestedFile]) -> bool:
    """Whether one of some files is gone, or is not what was ingested."""
    present = {(file.path, file.fingerprint) for file in files.new}
    return any((file.path, file.fingerprint) not in present for some in read for file in some)


def _rows(files: Collection[IngestedFile]) -> int:
    return sum(file.rows for file in files)


def _reasons(
    found: Derivation, columns: Collection[IngestedFile], whole: Collection[IngestedFile]
) -> Iterator[str]:
    """What is read again, and what for."""
    if columns:
        names, them = ", ".join(found.from_files), "them" if len(found.from_files) > 1 else "it"
        word = "columns" if len(found.from_files) > 1 else "column"
        yield f"{word} {names}: {count_of(len(columns), 'file')} read again for {them}"
    if whole:
        yield f"{count_of(len(whole), 'file')} read again where copies of events were left out"
