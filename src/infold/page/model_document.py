"""
One model: its definition, what it reads, its cells on a calendar, and what each version changed.

What a browser gets is bounded: hours are counted by their days, and of the changes the newest are
sent, as many as :data:`CHANGES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infold import api
from infold.core.interval import DAY, EVER, SECOND, Granularity
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.trace import CellChange, CellState
from infold.ledger import SqlLedger
from infold.ledger.glimpses import steps_by_id
from infold.page.shapes import (
    JsonObject,
    files_of_step,
    instant,
    rows_before,
    seconds_of,
    spans,
    version_shape,
)
from infold.render import json_shapes

VERSIONS = 40
"""How many versions of a table are shown."""

CHANGES = 6_000
"""How many changes of cells are shown, of the newest versions."""

NAMED = 8
"""How many files of a version are named."""


def model_document(project: Project, ledger: SqlLedger, name: str) -> JsonObject:
    """Everything that the page of a model shows."""
    node = project[name]
    stored = node.model.kind is not Kind.VIEW
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
        "materialization": model.kind.materialization.value,
        "incremental": model.kind is Kind.INCREMENTAL_TABLE,
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
    by_cell = timed and node.model.kind is Kind.INCREMENTAL_TABLE
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
    steps = steps_by_id(ledger.database, (one.step for one in versions))
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
    judged: dict[str, list[JsonObject]] = {}
    for one in ledger.audits():
        if one.result.model == node.name:
            judged.setdefault(one.result.audit, []).append(
                {
                    "state": one.result.state.value,
                    "of": "stored" if one.result.stored else "step",
                    "found": one.result.what,
                    "rows": list(one.result.rows[:5]),
                    "at": instant(one.at),
                    "run": one.run or None,
                }
            )
    return [
        {
            "audit": audit.name,
            "severity": audit.severity.value,
            "file": f"{audit.file}:{audit.line}" if audit.file else None,
            "judged": judged.get(audit.name, []),
        }
        for audit in node.model.audits
    ]
