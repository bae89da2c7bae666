"""One run: its steps on an axis of time, its receipt, and what each step changed where."""

from __future__ import annotations

from typing import Any

from infold.core.interval import Interval
from infold.core.project import Project
from infold.core.record import StepRecord
from infold.ledger import SqlLedger
from infold.page.shapes import (
    JsonObject,
    file_shape,
    files_of_step,
    run_shape,
    seconds_of_range,
    step_shape,
    version_shape,
)

FILES = 50
"""How many files of a step are listed."""

SPANS = 300
"""How many ranges of a step are drawn."""


def run_document(project: Project, ledger: SqlLedger, id_: str) -> JsonObject | None:
    """A run with its steps; None where there is none of this id."""
    found = ledger.runs(run=id_)
    if not found:
        return None
    run = found[0]
    return {
        **run_shape(run),
        "steps": [_step(project, ledger, step) for step in run.steps],
    }


def _step(project: Project, ledger: SqlLedger, step: StepRecord) -> JsonObject:
    """A step, the cells that it was to build, and what its version did to the rows."""
    node = next((one for one in project if one.name == step.model), None)
    granularity = node.model.granularity if node is not None else None
    files = (
        files_of_step(ledger.files(step.model), step)
        if node is not None and node.source is not None
        else []
    )
    return {
        **step_shape(step),
        "known": node is not None,
        "granularity": granularity.value if granularity else None,
        "spans": _spans(step.detail),
        "changed": _changed(ledger, step),
        "files": [file_shape(file) for file in files[:FILES]],
        "more_files": len(files[FILES:]),
    }


def _spans(detail: Any) -> list[list[int | None]]:
    """The cells of a plan's step; other steps have none."""
    cells = detail.get("cells", ())
    return [seconds_of_range(Interval(start, end)) for start, end in list(cells)[-SPANS:]]


def _changed(ledger: SqlLedger, step: StepRecord) -> JsonObject | None:
    """The version that a step made, as far as its changes are kept."""
    number = step.outcome.version if step.outcome else None
    if number is None:
        return None
    versions = {one.number: one for one in ledger.versions(step.model, number - 2)}
    made, earlier = versions.get(number), versions.get(number - 1)
    if made is None or made.step != step.id:
        return None  # nothing was committed, or it was another table's
    before = earlier.rows if earlier is not None else 0
    changes = ledger.changes_by_version(step.model, number - 1).get(number, ())
    return version_shape(made, before, step, changes) | {
        "spans": [seconds_of_range(one.cell) for one in changes if one.changes_rows][-SPANS:],
        "kept": bool(changes),
    }
