"""What the files of a source say of a step that takes them in: why, and which of them again."""

from __future__ import annotations

from infold.core.files import FileKnown
from infold.core.interval import Ranges
from infold.core.plan import FileDiff, ModelObservation, Reason
from infold.core.trace import Cause


def file_reasons(files: FileDiff, model: ModelObservation) -> list[Reason]:
    """Why an ingest is due: files that are new, replaced, gone, or hold rows that have come due."""
    reasons = []
    if files.new:
        covered = Ranges.of(state.cell for state in model.cells)
        new = count(len(files.new) - files.replaced, "new file")
        detail = f"{new}, {files.replaced} replaced" if files.replaced else new
        if files.peek is None:
            reasons.append(Reason(Cause.ARRIVED, detail))
        else:
            late = [state for state in files.peek if covered.overlaps(state.cell)]
            early = [state for state in files.peek if not covered.overlaps(state.cell)]
            for cause, states in ((Cause.LATE, late), (Cause.ARRIVED, early)):
                if states or (cause is Cause.ARRIVED and not late):
                    cells = Ranges.of(state.cell for state in states)
                    rows = sum(state.rows for state in states)
                    reasons.append(Reason(cause, detail, cells, rows))
    if files.gone:
        rows = sum(file.rows for file in files.gone)
        detail = f"{count(len(files.gone), 'file')} replaced or deleted"
        reasons.append(Reason(Cause.REMOVED, detail, Ranges(), rows))
    if files.due:
        rows = sum(file.waiting for file in files.due)
        detail = f"rows of {count(len(files.due), 'file')} have come due"
        reasons.append(Reason(Cause.DUE, detail, Ranges(), rows))
    return reasons


def again(files: FileDiff, model: ModelObservation) -> tuple[FileKnown, ...]:
    """The files to take in again: those with rows of keys that changed in a lookup."""
    changed = [news for news in model.inputs if news.changes]
    every = any(news.found is None or news.found.everywhere for news in changed)
    some = {id_ for news in changed if news.found for id_ in news.found.files}
    out = {file.id for file in files.gone}
    return tuple(f for f in files.known if f.id not in out and (every or f.id in some))


def count(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
