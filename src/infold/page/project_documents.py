"""
The project at a glance: its graph from the newest versions, and then the states of its models.

They are two documents, as the second observes sources and reads all cells: of five hundred models
the graph is there before anybody can blink, and the states colour it a moment later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infold import __version__, api
from infold.core.definition import to_json_text
from infold.core.files import IngestedFile
from infold.core.interval import DAY, EVER, MAX, MIN, SECOND, Granularity, Interval, Ranges
from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.project import Node, Project
from infold.core.record import RunRecord, StepRecord
from infold.core.report import ModelStatus
from infold.core.trace import CellChange, CellState, Version
from infold.ledger import SqlLedger
from infold.messages.errors import InfoldError
from infold.render import formatting, json_shapes
from infold.render.audits import audits_status_json
from infold.render.formatting import iso

JsonObject = dict[str, Any]

TOP = 5
"""How many of its cells a version is described by."""


def seconds_of(at: int) -> int | None:
    """An instant as whole seconds since 1970, as scripts count; None for an open end."""
    return None if at <= MIN or at >= MAX else at // SECOND


def seconds_of_range(part: Interval) -> list[int | None]:
    """A range as two of them."""
    return [seconds_of(part.start), seconds_of(part.end)]


def spans(ranges: Ranges, most: int = 2_000) -> list[list[int | None]]:
    """Ranges as pairs of seconds; the newest of very many."""
    return [seconds_of_range(part) for part in ranges.parts[-most:]]


def run_shape(run: RunRecord) -> JsonObject:
    """A run without its steps, and how long it took."""
    return json_shapes.run_record(run) | {"seconds": length(run.started_at, run.finished_at)}


def step_shape(step: StepRecord) -> JsonObject:
    """A step with its reasons, as the run that began it had them."""
    return json_shapes.step_record(step) | {
        "run": step.run,
        "seconds": length(step.started_at, step.finished_at),
        "reasons": reasons(step),
    }


def reasons(step: StepRecord | None) -> list[JsonObject]:
    """Why a step was carried out; nothing of steps that are not of a plan."""
    return list(step.detail.get("reasons", ())) if step is not None else []


def length(start: int, end: int | None) -> float | None:
    """How long something took, in seconds."""
    return None if end is None else round((end - start) / 1e6, 3)


def rows_before(versions: Iterable[Version]) -> Mapping[int, int]:
    """The rows that a table had before each of its versions, by number."""
    found, rows = {}, 0
    for one in versions:
        found[one.number], rows = rows, one.rows
    return found


def version_shape(
    version: Version, before: int, step: StepRecord | None, changes: Sequence[CellChange]
) -> JsonObject:
    """
    A version of a table: when, by what, why, and what it did to the rows it had ``before``.

    The changes are not enough to tell how many more there are now: they may be pruned, and of a
    version that replaced all content they do not have the cells that became empty.
    """
    changed = [change for change in changes if change.changes_rows]
    widest = sorted(changed, key=lambda one: (-abs(one.rows_after - one.rows_before), one.cell))
    return {
        "version": version.number,
        "at": iso(version.committed_at),
        "run": version.run,
        "action": step.action if step else None,
        "reasons": reasons(step),
        "rows": version.rows,
        "whole": version.whole,
        "cells": len(changed),
        "added": sum(one.added for one in changes),
        "removed": sum(one.removed for one in changes),
        "net": version.rows - before,
        "top": [
            [*seconds_of_range(one.cell), one.rows_before, one.rows_after] for one in widest[:TOP]
        ],
    }


def files_of_step(files: Iterable[IngestedFile], step: StepRecord | None) -> list[IngestedFile]:
    """The files that a step took in, as far as their rows are still in the table."""
    if step is None or step.finished_at is None:
        return []
    return [file for file in files if step.started_at <= file.received_at <= step.finished_at]


def file_shape(file: IngestedFile) -> JsonObject:
    """A file with what became of its rows."""
    return {
        "path": file.path,
        "bytes": file.size,
        "rows": file.rows,
        "dropped": file.dropped,
        "set_aside": file.set_aside,
        "waiting": file.waiting,
        "received_at": iso(file.received_at),
    }


def plain(row: Mapping[str, Any]) -> JsonObject:
    """A row of a table, its values as texts where JSON has none for them."""
    found: JsonObject = json.loads(to_json_text(dict(row)))
    return found


RUNS = 200
"""How many runs are listed."""


def project_document(project: Project, ledger: SqlLedger) -> JsonObject:
    """What there is: sources, models with what they read, and what is stored of each."""
    heads, traces = ledger.newest_versions(), ledger.traces()
    built = {name: head for name, head in heads.items() if name in traces and name in project}
    steps = ledger.steps_by_id(head.step for head in built.values())
    return {
        "project": project.name,
        "target": project.target.name,
        "infold": __version__,
        "made_at": iso(api.now()),
        "sources": [
            {
                "source": source.name,
                "format": source.format.value,
                "place": source.path or source.table,
                "event_time": source.event_time_column,
                "received": source.received_column,
            }
            for source in project.sources.values()
        ],
        "models": [
            _model_shape(node, head, steps.get(head.step) if head else None)
            for node in project
            for head in (built.get(node.name),)
        ],
        "unapplied": list(project.unapplied),
    }


def _model_shape(node: Node, head: Version | None, step: StepRecord | None) -> JsonObject:
    model, receipt = node.model, step.outcome.receipt if step and step.outcome else None
    granularity = model.granularity
    return {
        "model": node.name,
        **json_shapes.materialization(model.kind),
        "landed": node.landed,
        "description": model.description,
        "tags": list(model.tags),
        "reads": list(node.reads),
        "columns": list(node.columns),
        "granularity": granularity.value if granularity else None,
        "rows": head.rows if head else None,
        "version": head.number if head else None,
        "built_at": iso(head.committed_at) if head else None,
        "run": head.run if head else None,
        "seconds": length(step.started_at, step.finished_at) if step else None,
        "read": receipt.read if receipt else None,
        "written": receipt.written if receipt else None,
    }


def states_document(project: Project, ledger: SqlLedger) -> JsonObject:
    """The state of each model now, and what a run would do."""
    entries = api.status(project)
    plan = api.plan(project)
    manual = {node.name: len(ledger.quarantined(node.name)) for node in _sessions(project)}
    steps = {step.model: step for step in plan.steps}
    return {
        "made_at": iso(api.now()),
        "models": {
            entry.model: _state_shape(project[entry.model], entry, steps.get(entry.model))
            | {"quarantined": manual.get(entry.model, 0)}
            for entry in entries
        },
        "plan": {
            "rows": plan.rows_to_read,
            "steps": [_planned_shape(project, step) for step in plan.steps],
            "notes": list(plan.notes),
        },
    }


def _sessions(project: Project) -> list[Node]:
    return [node for node in project if node.model.kind is Kind.SESSIONS]


_AS_STATUS = (
    *("message", "rows", "last_event", "set_aside", "waiting", "next_due", "refused"),
    "waits_for",
)
"""What the page says of a model's state as ``infold status --json`` does."""


def _state_shape(node: Node, entry: ModelStatus, step: Step | None) -> JsonObject:
    granularity, hull = node.model.granularity, entry.covered.span
    ends = hull is not None and formatting.has_ends(entry.covered)
    gaps = entry.covered.gaps if ends else Ranges()
    failed = [one.result for one in entry.audits if one.result.state.value == "failed"]
    known = json_shapes.model_status(entry, gaps)
    return {
        **{key: known[key] for key in _AS_STATUS},
        "state": "refused" if entry.refused else known["state"],
        "from": iso(hull.start) if hull is not None and ends else None,
        "to": iso(hull.end) if hull is not None and ends else None,
        "cells_without_rows": formatting.cells_in(gaps, granularity) if granularity else None,
        "stale": _stale_text(node, entry, step),
        "pending": [
            f"{one.cause.value}: {formatting.ranges_text(one.ranges, granularity)}"
            for one in entry.pending
        ],
        "audits": len(entry.audits),
        "audits_failed": [f"{one.audit}: {one.what}" for one in failed],
    }


def _stale_text(node: Node, entry: ModelStatus, step: Step | None) -> str | None:
    """
    What a run would build of a model, in words; None for nothing.

    A plan knows of more than the state: of files that nobody has read yet, and what follows.
    """
    stale = entry.stale or (step.stale_cells if step is not None else Ranges())
    if not stale:
        return None if step is None else "new files"
    granularity = node.model.granularity
    number = formatting.cells_in(stale, granularity) if granularity else None
    if number is None or granularity is None:
        return "some of it" if entry.partly or not entry.stale else "all of it"
    most = "" if entry.stale else "up to "
    return most + formatting.count(number, granularity.value)


def _planned_shape(project: Project, step: Step) -> JsonObject:
    granularity = project[step.model].model.granularity
    cells = step.stale_cells
    return {
        "model": step.model,
        "action": step.action.value,
        "rows": step.rows_to_read,
        "expected": step.expected,
        "cells": formatting.ranges_text(cells, granularity) if cells else "",
        "spans": spans(cells, 50),
        "reasons": [
            {"cause": one.cause.value, "detail": one.detail, "rows": one.rows}
            for one in step.reasons
        ],
    }


def runs_document(ledger: SqlLedger) -> JsonObject:
    """The newest runs, without their steps."""
    runs = ledger.run_heads(RUNS)
    return {"runs": [run_shape(run) for run in runs], "most": RUNS}


def error_document(error: InfoldError) -> JsonObject:
    """Why a document cannot be made."""
    return {"error": error.record | {"text": str(error)}}


# What a browser gets is bounded: hours are counted by their days, and of the changes the newest are
# sent, as many as :data:`CHANGES`.

VERSIONS = 40
"""How many versions of a table are shown."""

CHANGES = 6_000
"""How many changes of cells are shown, of the newest versions."""

NAMED = 8
"""How many files of a version are named."""


def model_document(project: Project, ledger: SqlLedger, name: str) -> JsonObject:
    """Everything that the page of a model shows."""
    node = project[name]
    stored = node.model.kind.is_stored
    return {
        "model": name,
        **_definition(node),
        "readers": [other.name for other in project if name in other.reads],
        "inputs": [_input_shape(project, node, entry.name) for entry in node.inputs],
        "calendar": _calendar(node, ledger.cells(name)) if stored else None,
        **(_history(ledger, node) if stored else {"versions": [], "changes": []}),
        "audits": _audits(node, ledger),
    }


def _definition(node: Node) -> JsonObject:
    model = node.model
    return {
        **json_shapes.materialization(model.kind),
        "description": model.description,
        "tags": list(model.tags),
        "unique_key": list(model.unique_key),
        "file": str(model.place),
        "text": model.written,
        "python": model.python is not None,
        "columns": list(node.columns),
        "granularity": model.granularity.value if model.granularity else None,
        "bounds_declared": node.bounds_declared,
    }


def _input_shape(project: Project, node: Node, name: str) -> JsonObject:
    """One input, with how far around a cell it is read, in seconds."""
    entry = node.input(name)
    timed = entry.time_column is not None and not node.is_lookup(name)
    by_cell = timed and node.model.kind.is_by_cell
    other = project[name].model.granularity if name in project else None
    return {
        "name": name,
        "model": name in project,
        "lookup": name != node.source and node.is_lookup(name),
        "time_column": entry.time_column,
        "granularity": other.value if other else None,
        "bounds": [[one.before / SECOND, one.after / SECOND] for one in entry.bounds]
        if by_cell
        else None,
    }


def explained_document(project: Project, name: str) -> JsonObject:
    """
    What `infold explain` says, without what the model's document has already.

    It observes the whole project, so it comes after the page has been drawn.
    """
    found = api.explain(project, name)
    shape = json_shapes.explanation(found)
    wanted = ("fingerprint", "applied", "layout", "version", "rows", "cells", "why_left", "trace")
    step = found.step
    return {
        **{key: shape[key] for key in wanted},
        "reads": [
            {
                **{key: entry[key] for key in ("name", "mapping", "built", "now")},
                "columns": entry["columns"] and list(entry["columns"]),
            }
            for entry in shape["inputs"]
        ],
        "notes": [list(note) for note in found.notes],
        "step": None if step is None else shape["step"] | {"spans": spans(step.stale_cells)},
    }


def _calendar(node: Node, cells: Sequence[CellState]) -> JsonObject | None:
    """The cells with rows, as `[start, rows, cells]`; hours are counted by their days."""
    granularity = node.model.granularity
    if granularity is None:
        return None
    hourly = granularity is Granularity.HOUR
    found: dict[int, list[int]] = {}
    for one in cells:
        if one.cell == EVER:
            continue
        start = one.cell.start - one.cell.start % DAY if hourly else one.cell.start
        entry = found.setdefault(start, [start // SECOND, 0, 0])
        entry[1] += one.rows
        entry[2] += 1
    unit = Granularity.DAY if hourly else granularity
    return {
        "unit": unit.value,
        "cell": granularity.value,
        "cells": [found[start] for start in sorted(found)],
    }


def _history(ledger: SqlLedger, node: Node) -> JsonObject:
    """The newest versions, and the changes of cells by them: `[version, start, …]`."""
    every = ledger.versions(node.name)
    versions, before = every[-VERSIONS:][::-1], rows_before(every)
    if not versions:
        return {"versions": [], "changes": []}
    steps = ledger.steps_by_id(one.step for one in versions)
    by_version = ledger.changes_by_version(node.name, versions[-1].number - 1)
    files = ledger.files(node.name) if node.source else ()
    shapes = []
    for one in versions:
        step = steps.get(one.step)
        came = files_of_step(files, step)
        shapes.append(
            version_shape(one, before[one.number], step, by_version.get(one.number, ()))
            | {"files": [file.path for file in came[:NAMED]], "more_files": len(came[NAMED:])}
        )
    return {"versions": shapes, "changes": _changes(by_version)}


def _changes(by_version: Mapping[int, Sequence[CellChange]]) -> list[list[int | None]]:
    """Those of the newest versions, as many as are shown; none of a version is left out alone."""
    found: list[list[int | None]] = []
    for version in sorted(by_version, reverse=True):
        rows = [
            [version, seconds_of(one.cell.start), *_counts(one)]
            for one in by_version[version]
            if one.changes_rows
        ]
        if len(found) + len(rows) > CHANGES:
            break
        found += rows
    return found


def _counts(one: CellChange) -> tuple[int, int, int, int]:
    """Rows added and removed, before and after."""
    return one.added, one.removed, one.rows_before, one.rows_after


def _audits(node: Node, ledger: SqlLedger) -> list[JsonObject]:
    """The declared audits, with what each found last."""
    if not node.model.audits:
        return []
    judged = audits_status_json(one for one in ledger.audits() if one.result.model == node.name)
    return [
        {
            "audit": audit.name,
            "severity": audit.severity.value,
            "file": f"{audit.file}:{audit.line}" if audit.file else None,
            "judged": [one for one in judged if one["audit"] == audit.name],
        }
        for audit in node.model.audits
    ]
