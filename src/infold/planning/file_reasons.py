"""Why files make a step due, and which files are ingested again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from infold.core.files import IngestedFile
from infold.core.interval import Ranges
from infold.core.plan import FileDiff, ModelObservation, Reason
from infold.core.trace import Cause


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
    names = {entry.name for one in model.earlier for entry in one.node.stored_inputs}
    every = every or any(
        diff.changed_keys is None or diff.changed_keys.everywhere or diff.name in names
        for diff in changed
    )
    some = {id_ for diff in changed if diff.changed_keys for id_ in diff.changed_keys.files}
    some |= {file.id for file in files.redefined}
    out = {file.id for file in files.removed}
    return tuple(f for f in files.ingested if f.id not in out and (every or f.id in some))


def read_again(stale: Iterable[Reason], files: Sequence[IngestedFile]) -> Iterator[Reason]:
    """Reasons to ingest files again; of a changed definition, with how much that reads."""
    for one in stale:
        if one.cause is Cause.DEFINITION:
            rows = sum(file.rows + file.waiting + file.set_aside for file in files)
            detail = f"{count_of(len(files), 'file')} read again: {one.detail}"
            yield replace(one, detail=detail, rows=rows)
        else:
            yield one


def count_of(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
