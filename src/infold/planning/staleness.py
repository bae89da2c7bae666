"""Why cells of a model are stale: each cause, and the cells it affects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from infold.core.erasure import ErasureRequest
from infold.core.files import IngestedFile
from infold.core.interval import SECOND, Ranges, show_instant
from infold.core.plan import (
    FileDiff,
    InputDiff,
    ModelObservation,
    Reason,
    Step,
)
from infold.core.project import Input, Node
from infold.core.trace import Cause, CellChange
from infold.planning.buildable_cells import (
    completed_range,
    filled_cells,
    replaces_by_parts,
    retained_range,
)
from infold.planning.forward_only import definitions_in_force, input_of


def affected_cells(node: Node, name: str, touched: Ranges, reach: int = 0) -> Ranges:
    """The cells of a model that rows at these times of an input can affect."""
    granularity = node.model.granularity
    if granularity is None or node.is_lookup(name):
        return Ranges.ever()
    if node.model.kind.is_by_cell:
        return granularity.cover(node.input(name).times_affected(touched))
    return granularity.cover(touched.widen(reach, reach))


def left_by_run(node: Node, model: ModelObservation) -> Ranges:
    """
    The cells that the run behind a model's newest version had yet to build by the model's cron.

    None once that run is done: what a window or a limit left out waits for the next tick.
    """
    if not model.unfinished or model.trace is None or model.as_of is None:
        return Ranges()
    unbuilt = model.trace.pending_ranges & retained_range(node) & completed_range(node, model.as_of)
    return unbuilt if node.fills_cells else unbuilt & filled_cells(node, model)


def next_due(node: Node, model: ModelObservation, as_of: int) -> int | None:
    """
    When a model that was built since the newest tick of its cron is due; None if it is due.

    A run goes on with its batches, and the next one does after a failure.
    """
    incremental = node.model.incremental
    if incremental is None or incremental.cron is None or model.as_of is None:
        return None
    from infold.planning import cron

    if model.as_of < cron.last_tick(incremental.cron, incremental.cron_tz, as_of):
        return None
    if left_by_run(node, model):
        return None
    return cron.next_tick(incremental.cron, incremental.cron_tz, as_of)


def whole_table_reason(node: Node, model: ModelObservation) -> Reason | None:
    """Why all of a table has to be built, if so."""
    if model.trace is None:
        return Reason(Cause.MISSING, "first run", Ranges.ever())
    if model.trace.fingerprint != node.fingerprint or model.trace.mixed:
        cause = Cause.REDEFINED if replaces_by_parts(node) else Cause.DEFINITION
        return Reason(cause, "its definition changed", Ranges.ever())
    return None


def newest_version(model: ModelObservation, name: str) -> int:
    """The newest version of an input of a model; 0 if it was never built."""
    return next((diff.newest_version for diff in model.inputs if diff.name == name), 0)


def only_redefined(step: Step, model: ModelObservation) -> bool:
    """Whether a step builds a table only because of its definition; its inputs are as they were."""
    if any(reason.cause is not Cause.DEFINITION for reason in step.reasons):
        return False
    if model.trace is None or model.trace.pending:
        return False
    if any((*entry_reasons(model), *snapshot_reasons(model))):
        return False
    return not any(
        newest_version(model, name) != version for name, version in model.trace.inputs.items()
    ) and not (model.files and other_files(model.files))


def other_files(files: FileDiff) -> bool:
    """Whether files came, went, or have rows that came due, since those that were ingested."""
    known = {(file.path, file.fingerprint) for file in files.ingested}
    due = any(file.next_due is not None and file.next_due <= files.as_of for file in files.ingested)
    return bool(due or files.removed) or any(
        (file.path, file.fingerprint) not in known for file in files.new
    )


def entry_reasons(model: ModelObservation) -> Iterator[Reason]:
    """
    That there are new manual entries about the model's sessions, or requests to erase its events.

    The step finds the sessions and the events.
    """
    more = model.newest_entry - (model.trace.applied_entry if model.trace else 0)
    if model.erasures:
        yield Reason(Cause.ERASED, requests_text(model.erasures))
    elif more:
        what = "1 manual entry" if more == 1 else f"{more:,} manual entries"
        yield Reason(Cause.QUARANTINE, f"{what} of its quarantine", Ranges.ever())


def requests_text(requests: Sequence[ErasureRequest]) -> str:
    """How many requests to erase there are, of whom, and since when: ``1 request to erase …``."""
    number = count_of(len(requests), "request")
    erased = ", ".join(sorted({request.erasure for request in requests}))
    made = min(request.made_at for request in requests)
    since = "made" if len(requests) == 1 else "the first made"
    return f"{number} to erase ({erased}), {since} {show_instant(made - made % SECOND)}"


def snapshot_reasons(model: ModelObservation) -> Iterator[Reason]:
    """That snapshots without rows came or went, at whose times keys end or no longer end."""
    new, old = ({file.id for file in files} for files in (model.snapshots, model.snapshots_read))
    for cause, what, files in (
        (Cause.ARRIVED, "that came", new - old),
        (Cause.REMOVED, "that left", old - new),
    ):
        if files:
            detail = f"{count_of(len(files), 'snapshot')} without rows {what}"
            yield Reason(cause, detail, Ranges.ever())


def changed_input_reason(
    node: Node, diff: InputDiff, cause: Cause, changes: Sequence[CellChange], reach: int
) -> Reason:
    """The reason that rows of an input changed, and the cells that they affect."""
    rows = sum(change.added + change.removed for change in changes)
    keys = diff.changed_keys
    if keys is None or keys.everywhere:
        cells = affected_cells(node, diff.name, touched_cells(changes), reach)
        detail = f"{count_of(rows, 'row')} in {count_of(len(changes), 'cell')} of {diff.name}"
        if diff.dropped_since:
            detail += ", dropped since it was read"
        elif keys is None and node.matches_of(diff.name):
            detail += ": at most"
        return Reason(cause, detail, cells, rows)
    cells = Ranges.of(
        part
        for name, times, _ in keys.by_input
        for part in affected_cells(node, name, times, reach)
    )
    return Reason(cause, f"{keys.rows:,} rows with changed keys of {diff.name}", cells, keys.rows)


def merge_reasons(reasons: Iterable[Reason]) -> list[Reason]:
    """One reason for each cause and what it was, with all its cells."""
    merged: dict[tuple[Cause, str], Reason] = {}
    for reason in reasons:
        at = reason.cause, reason.detail
        known = merged.get(at, reason)
        rows = max(known.rows, reason.rows)
        merged[at] = replace(reason, cells=known.cells | reason.cells, rows=rows)
    return list(merged.values())


def touched_cells(changes: Iterable[CellChange]) -> Ranges:
    """The union of the changed cells, whatever changed in them."""
    return Ranges.of(change.cell for change in changes)


def changes_by_cause(node: Node, diff: InputDiff) -> dict[Cause, list[CellChange]]:
    """The net changes of an input, by what they mean to the model that reads it."""
    by_cause: dict[Cause, list[CellChange]] = {}
    for change in diff.changes:
        if node.is_lookup(diff.name):
            cause = Cause.LOOKUP
        elif change.removed:
            cause = Cause.REMOVED
        elif change.rows_before:
            cause = Cause.LATE
        else:
            cause = Cause.ARRIVED
        by_cause.setdefault(cause, []).append(change)
    return by_cause


def rows_to_read(node: Node, model: ModelObservation, cells: Ranges) -> int:
    """About how many rows of its inputs a model reads to build ``cells``."""
    return sum(
        _rows_read_of(entry, diff, cells & in_force)
        for in_force, definition in definitions_in_force(node, model)
        for diff in model.inputs
        if cells & in_force and (entry := input_of(definition, diff.name)) is not None
    )


def _rows_read_of(entry: Input, diff: InputDiff, cells: Ranges) -> int:
    times = cells if entry.time_column is None else entry.times_read(cells)
    return sum(state.rows for state in diff.cells if times.overlaps(state.cell))


def file_reasons(files: FileDiff, model: ModelObservation) -> list[Reason]:
    """Why an ingest is due: files are new, replaced or removed, or have rows that have come due."""
    reasons = []
    if files.new:
        covered = Ranges.of(state.cell for state in model.cells)
        new = count_of(len(files.new) - files.replaced, "new file")
        detail = f"{new}, {files.replaced} replaced" if files.replaced else new
        if files.estimate is None:
            reasons.append(Reason(Cause.ARRIVED, detail))
        else:
            late = [state for state in files.estimate if covered.overlaps(state.cell)]
            early = [state for state in files.estimate if not covered.overlaps(state.cell)]
            for cause, states in ((Cause.LATE, late), (Cause.ARRIVED, early)):
                if states or (cause is Cause.ARRIVED and not late):
                    cells = Ranges.of(state.cell for state in states)
                    rows = sum(state.rows for state in states)
                    reasons.append(Reason(cause, detail, cells, rows))
    if files.removed:
        rows = sum(file.rows for file in files.removed)
        detail = f"{count_of(len(files.removed), 'file')} replaced or deleted"
        reasons.append(Reason(Cause.REMOVED, detail, Ranges(), rows))
    if files.come_due:
        rows = sum(file.waiting for file in files.come_due)
        detail = f"rows of {count_of(len(files.come_due), 'file')} have come due"
        reasons.append(Reason(Cause.DUE, detail, Ranges(), rows))
    return reasons


def files_to_reingest(
    files: FileDiff, model: ModelObservation, *, every: bool = False
) -> tuple[IngestedFile, ...]:
    """
    The files to ingest again: those with rows of keys that changed in a lookup, and those with rows
    that a changed definition is in force for.

    Where the changed keys are is known for the newest definition only; others read every file.
    """
    changed = [diff for diff in model.inputs if diff.changes]
    earlier_inputs = {entry.name for one in model.earlier for entry in one.node.stored_inputs}
    every = every or any(
        diff.changed_keys is None or diff.changed_keys.everywhere or diff.name in earlier_inputs
        for diff in changed
    )
    ids = {id_ for diff in changed if diff.changed_keys for id_ in diff.changed_keys.files}
    ids |= {file.id for file in files.redefined}
    removed_ids = {file.id for file in files.removed}
    return tuple(f for f in files.ingested if f.id not in removed_ids and (every or f.id in ids))


def read_again(stale: Iterable[Reason], files: Sequence[IngestedFile]) -> Iterator[Reason]:
    """Reasons to ingest files again; of a changed definition, with how much that reads."""
    for reason in stale:
        if reason.cause is Cause.DEFINITION:
            rows = sum(file.rows + file.waiting + file.set_aside for file in files)
            detail = f"{count_of(len(files), 'file')} read again: {reason.detail}"
            yield replace(reason, detail=detail, rows=rows)
        else:
            yield reason


def count_of(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
