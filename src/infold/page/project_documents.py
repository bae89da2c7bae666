"""
The project at a glance: its graph from the newest versions, and then the states of its models.

They are two documents, as the second observes sources and reads all cells: of five hundred models
the graph is there before anybody can blink, and the states colour it a moment later.
"""

from __future__ import annotations

from infold import __version__, api
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.project import Node, Project
from infold.core.record import StepRecord
from infold.core.report import ModelStatus
from infold.core.trace import Version
from infold.ledger import SqlLedger
from infold.ledger.glimpses import run_heads, steps_by_id
from infold.messages.errors import InfoldError
from infold.page.shapes import JsonObject, instant, length, run_shape, spans
from infold.render import formatting
from infold.render.formatting import iso
from infold.render.status import message

RUNS = 200
"""How many runs are listed."""


def project_document(project: Project, ledger: SqlLedger) -> JsonObject:
    """What there is: sources, models with what they read, and what is stored of each."""
    heads, traces = ledger.newest_versions(), ledger.traces()
    built = {name: head for name, head in heads.items() if name in traces and name in project}
    steps = steps_by_id(ledger.database, (head.step for head in built.values()))
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
        "materialization": model.kind.materialization.value,
        "incremental": model.kind is Kind.INCREMENTAL_TABLE,
        "landed": node.landed,
        "description": model.description,
        "tags": list(model.tags),
        "reads": list(node.reads),
        "columns": list(node.columns),
        "granularity": granularity.value if granularity else None,
        "rows": head.rows if head else None,
        "version": head.number if head else None,
        "built_at": instant(head.committed_at) if head else None,
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


def _state_shape(node: Node, entry: ModelStatus, step: Step | None) -> JsonObject:
    granularity, hull = node.model.granularity, entry.covered.span
    ends = hull is not None and formatting.has_ends(entry.covered)
    gaps = entry.covered.gaps if ends else Ranges()
    failed = [one.result for one in entry.audits if one.result.state.value == "failed"]
    return {
        "state": "refused" if entry.refused else entry.state.value,
        "message": message(entry.model_state) if entry.model_state else "",
        "rows": entry.rows,
        "from": iso(hull.start) if hull is not None and ends else None,
        "to": iso(hull.end) if hull is not None and ends else None,
        "last_event": instant(entry.last_event),
        "cells_without_rows": formatting.cells_in(gaps, granularity) if granularity else None,
        "stale": _stale_text(node, entry, step),
        "pending": [
            f"{one.cause.value}: {formatting.ranges_text(one.ranges, granularity)}"
            for one in entry.pending
        ],
        "set_aside": entry.set_aside,
        "waiting": entry.waiting,
        "next_due": instant(entry.next_due),
        "refused": entry.refused.record if entry.refused else None,
        "waits_for": list(entry.waits_for),
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
    runs = run_heads(ledger.database, RUNS)
    return {"runs": [run_shape(run) for run in runs], "most": RUNS}


def error_document(error: InfoldError) -> JsonObject:
    """Why a document cannot be made."""
    return {"error": error.record | {"text": str(error)}}
