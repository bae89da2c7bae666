"""A ledger after a run that no engine made: a model has taken in all files of its source."""

from __future__ import annotations

from infold import api
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import DAY, Interval, parse_instant_text
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace


def take_in(project: Project, model: str, source: str) -> None:
    """What is there is what the model holds, ten rows of each file, all on one day."""
    book = api.ledger(project)
    book.acquire("r1")
    book.begin_run("r1", "run", 0, {})
    seen = api.observer(project).observe().models[model].files
    assert seen is not None
    ids = book.register_files(source, seen.new)
    taken = tuple(
        IngestedFile(ids[file.path], file.path, file.size, file.fingerprint, 0, rows=10)
        for file in seen.new
    )
    day = Interval(parse_instant_text("2024-03-01"), parse_instant_text("2024-03-01") + DAY)
    cells = tuple(FileCell(file.id, day, 10) for file in taken)
    rows = 10 * len(taken)
    trace = Trace(model, project[model].fingerprint)
    book.begin_step("r1", "r1-1", 1, model, "build", {})
    files = FilesOutcome(source, taken, (), cells)
    change = CellChange(day, rows, 0, 0, rows, 0, 1)
    book.finish_step("r1-1", Outcome(model, 1, trace, (change,), files=files))
    book.finish_run("r1", "done", Receipt())
    book.close()
