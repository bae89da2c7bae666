"""Plain values that several documents have: instants, step records, versions with what they did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infold.core.files import IngestedFile
from infold.core.interval import MAX, MIN, SECOND, Interval, Ranges
from infold.core.record import RunRecord, StepRecord
from infold.core.trace import CellChange, Version
from infold.render.formatting import iso
from infold.render.json_shapes import receipt

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


def instant(at: int | None) -> str | None:
    """An instant, or None."""
    return None if at is None else iso(at)


def run_shape(run: RunRecord) -> JsonObject:
    """A run without its steps."""
    return {
        "run": run.id,
        "command": run.command,
        "state": run.state,
        "started_at": iso(run.started_at),
        "finished_at": instant(run.finished_at),
        "seconds": length(run.started_at, run.finished_at),
        "receipt": receipt(run.receipt),
        "error": run.error,
    }


def step_shape(step: StepRecord) -> JsonObject:
    """A step with its reasons, as the run that began it had them."""
    return {
        "step": step.id,
        "run": step.run,
        "model": step.model,
        "action": step.action,
        "state": step.state,
        "started_at": iso(step.started_at),
        "finished_at": instant(step.finished_at),
        "seconds": length(step.started_at, step.finished_at),
        "reasons": reasons(step),
        "version": step.outcome.version if step.outcome else None,
        "receipt": receipt(step.outcome.receipt) if step.outcome else None,
        "error": step.error,
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
    import json

    from infold.core import definition_text

    found: JsonObject = json.loads(definition_text.to_json_text(dict(row)))
    return found
