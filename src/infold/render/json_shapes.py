"""
What ``--json`` prints: plain values with stable names, described in docs/reference/json.md.

Instants are ISO 8601 in UTC; a range is ``[start, end)`` as two of them, null for an open end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from infold.core.interval import Interval, Ranges, iso_duration
from infold.core.model import Kind
from infold.core.plan import FileDiff, Plan, Step
from infold.core.project import Project
from infold.core.record import COUNTS, Arrival, Receipt, RunRecord, StepRecord
from infold.core.report import (
    ExplainedInput,
    Explanation,
    Forgotten,
    ModelState,
    ModelStatus,
    Row,
    RunFailed,
    RunResult,
    VerificationReport,
    key_values,
)
from infold.core.trace import Pending
from infold.render.audits import audits_status_json
from infold.render.definitions import apart_json, definitions_json, destructive_json
from infold.render.erasures import waiting_requests_json
from infold.render.formatting import iso
from infold.render.run import amplification
from infold.render.status import message

JsonObject = dict[str, Any]


def plan(value: Plan) -> JsonObject:
    """A plan: its steps with their reasons, and what is left alone."""
    return {
        "as_of": iso(value.as_of),
        "rows": value.rows_to_read,
        "definitions": definitions_json(value),
        "unapplied": list(value.unapplied),
        "destructive": destructive_json(value),
        "steps": [step(entry) for entry in value.steps],
        "left": [
            {"model": entry.model, "why": entry.why, "stale": ranges(entry.stale)}
            for entry in value.skipped
        ],
        "refused": [
            {"model": name, "error": error.record} for name, error in value.refused.items()
        ],
        "notes": list(value.notes),
    }


def step(value: Step) -> JsonObject:
    """One step of a plan; ``rows`` is how many it is expected to read."""
    return {
        "model": value.model,
        "action": value.action.value,
        "cells": ranges(value.stale_cells),
        "batches": value.batches,
        "rows": value.rows_to_read,
        "expected": value.expected,
        "version": value.version,
        "inputs": {name: {"since": since, "to": to} for name, (since, to) in value.inputs.items()},
        "reasons": [
            {
                "cause": reason.cause.value,
                "detail": reason.detail,
                "cells": ranges(reason.cells),
                "rows": reason.rows,
            }
            for reason in value.reasons
        ],
        "files": None if value.files is None else _files_shape(value.files),
    }


def _files_shape(value: FileDiff) -> JsonObject:
    return {
        "source": value.source,
        "new": [entry.path for entry in value.new],
        "replaced": value.replaced,
        "gone": [entry.path for entry in value.removed],
        "due": [entry.path for entry in value.come_due],
        "again": [entry.path for entry in value.reingest],
        "settling": value.settling,
        "same": value.unchanged,
        "folders_listed": value.folders,
        "folders_left_out": value.folders_left_out,
        "arrived": None
        if value.estimate is None
        else [{"cell": interval(state.cell), "rows": state.rows} for state in value.estimate],
        "ahead": value.future_rows,
    }


def failed(value: RunFailed) -> JsonObject:
    """What a run did that did not do everything: as :func:`run`, with the error as everywhere."""
    return run(value.result) | {"error": value.record}


def run(value: RunResult) -> JsonObject:
    """What a run did."""
    return {
        "run": value.run,
        "state": value.state,
        "seconds": round(value.seconds, 3),
        "steps": [
            {
                "model": run_step.model,
                "action": run_step.action.value,
                "cells": ranges(run_step.stale_cells),
                "receipt": receipt(step_receipt),
            }
            for run_step, step_receipt in value.steps
        ],
        "receipt": receipt(value.receipt),
        "left": plan(value.plans[-1])["left"] if value.plans else [],
        "states": [model_state(entry) for entry in value.model_states],
        "notes": list(value.notes),
        "failed": [
            {
                "model": entry.model or None,
                "refused": entry.refused or entry.misdefined,
                "error": entry.error.record,
            }
            for entry in value.failures
        ],
        "not_tried": [
            {"model": model, "because_of": list(because)} for model, because in value.not_tried
        ],
        "up_to_date": list(value.up_to_date),
        "unapplied": list(value.unapplied),
        "error": value.error or None,
    }


def model_state(value: ModelState) -> JsonObject:
    """One model's state before a run, and the event time that the run processes."""
    return {
        "model": value.model,
        "state": value.state.value,
        "message": message(value),
        **_limits_shape(value),
    }


def forgotten(value: Forgotten) -> JsonObject:
    """What was dropped, and what there was nothing of."""
    return {
        "models": list(value.models),
        "missing": list(value.missing),
        "entries": value.entries,
        "requests": value.requests,
    }


def _limits_shape(value: ModelState | None) -> JsonObject:
    return {
        "lower_limit": iso(value.lower if value else None),
        "upper_limit": iso(value.upper if value else None),
        "processed": ranges(value.cells if value else Ranges()),
        "no_data": bool(value and value.empty),
    }


def receipt(value: Receipt) -> JsonObject:
    """A receipt: its counts by their names, and the two ratios."""
    counts = asdict(value)
    counts |= {name: dict(getattr(value, name)) for name in COUNTS}
    counts |= {name: round(getattr(value, name), 3) for name in ("seconds", "audit_seconds")}
    counts["read_per_arrived"], counts["scanned_per_arrived"] = (
        None if ratio is None else round(ratio, 4) for ratio in amplification(value)
    )
    return counts


def status(
    project: Project, models: Sequence[ModelStatus], gaps: Mapping[str, Ranges]
) -> JsonObject:
    """The state of every model."""
    return {
        "project": project.name,
        "unapplied": list(project.unapplied),
        "models": [model_status(entry, gaps.get(entry.model, Ranges())) for entry in models],
    }


def model_status(entry: ModelStatus, gaps: Ranges) -> JsonObject:
    """The state of a model, with the ``gaps`` between its cells."""
    return {
        "model": entry.model,
        **materialization(entry.kind),
        "state": entry.state.value,
        "message": message(entry.model_state) if entry.model_state else "",
        **_limits_shape(entry.model_state),
        "rows": entry.rows,
        "covered": ranges(entry.covered),
        "gaps": ranges(gaps),
        "stale": ranges(entry.stale),
        "pending": [_pending_shape(part) for part in entry.pending],
        "version": entry.version,
        "last_built_at": iso(entry.last_built_at),
        "last_event": iso(entry.last_event),
        "set_aside": entry.set_aside,
        "waiting": entry.waiting,
        "next_due": iso(entry.next_due),
        "refused": entry.refused.record if entry.refused else None,
        "waits_for": list(entry.waits_for),
        "audits": audits_status_json(entry.audits),
        "erasures": waiting_requests_json(entry.erasures),
        **({"built_apart": apart_json(entry.apart)} if entry.apart else {}),
    }


def history(runs: Sequence[RunRecord]) -> JsonObject:
    """Past runs with their steps, newest first."""
    return {
        "runs": [
            run_record(entry) | {"steps": [step_record(record) for record in entry.steps]}
            for entry in runs
        ]
    }


def run_record(value: RunRecord) -> JsonObject:
    """A past run, without its steps."""
    return {
        "run": value.id,
        "command": value.command,
        "state": value.state,
        "as_of": iso(value.as_of),
        "started_at": iso(value.started_at),
        "finished_at": iso(value.finished_at),
        "receipt": receipt(value.receipt),
        "error": value.error,
    }


def step_record(value: StepRecord) -> JsonObject:
    """A step of a past run."""
    return {
        "step": value.id,
        "model": value.model,
        "action": value.action,
        "state": value.state,
        "started_at": iso(value.started_at),
        "finished_at": iso(value.finished_at),
        "version": value.outcome.version if value.outcome else None,
        "receipt": receipt(value.outcome.receipt) if value.outcome else None,
        "error": value.error,
    }


def explanation(value: Explanation) -> JsonObject:
    """What is known about a model, or about one cell of it."""
    return {
        "model": value.model,
        **materialization(value.kind),
        "file": value.place,
        "sql": value.sql,
        "granularity": value.granularity or None,
        "fingerprint": value.fingerprint,
        "applied": None
        if value.applied is None
        else {
            "digest": value.applied.digest,
            "at": iso(value.applied.at),
            "same": value.applied.same,
        },
        "layout": value.layout,
        "version": value.version,
        "rows": value.rows,
        "cells": value.cells,
        "inputs": [
            {key: getattr(entry, key) for key in ("name", "mapping", "built", "now", "columns")}
            for entry in value.inputs
        ],
        "bounds": {
            entry.name: _bound_shape(entry) for entry in value.inputs if entry.bound is not None
        },
        "trace": None
        if value.trace is None
        else {
            "fingerprint": value.trace.fingerprint,
            "inputs": dict(value.trace.inputs),
            "pending": [_pending_shape(part) for part in value.trace.pending],
            "earlier": [
                {"definition": one.definition, "cells": ranges(one.cells)}
                for one in value.trace.earlier
            ],
        },
        "step": None if value.step is None else step(value.step),
        "why_left": value.why_left,
        "cell": None if value.cell is None else interval(value.cell),
        "cell_rows": value.state.rows if value.state else None,
        "cell_checksum": value.state.content if value.state else None,
        "arrivals": [_arrival_shape(entry) for entry in value.arrivals],
        "built_by": [{"started_at": iso(at), **step_record(done)} for at, done in value.built_by],
    }


def _bound_shape(entry: ExplainedInput) -> JsonObject:
    """How far around its cell an input is read, lengths by ISO 8601."""
    assert entry.bound is not None
    return {
        "type": "bounded",
        "partition_col": entry.partition_col,
        "before": iso_duration(entry.bound.before),
        "after": iso_duration(entry.bound.after),
    }


def verification(value: VerificationReport) -> JsonObject:
    """What a verification found."""
    return {
        "equal": value.equal,
        "as_of": iso(value.as_of),
        "seconds": round(value.seconds, 3),
        "models": [
            {
                "model": entry.model,
                **materialization(entry.kind),
                "equal": entry.equal,
                "built": entry.built,
                "moved": entry.moved,
                "beyond_bounds": entry.beyond_bounds,
                "rows": entry.rows,
                "cells": entry.cells,
                "checksum": entry.content,
                "differing": [
                    {"cell": interval(cell), "stored": stored, "rebuilt": rebuilt}
                    for cell, stored, rebuilt in entry.differing
                ],
                "sample": [{"side": side, "row": dict(row)} for side, row in entry.sample],
                "values": [
                    {"key": dict(pair.key), "column": name, "stored": stored, "rebuilt": rebuilt}
                    for pair in pair_rows(entry.sample, entry.key)
                    for name, (stored, rebuilt) in pair.differing.items()
                ],
                "left_out": list(entry.left_out),
                "note": entry.note,
            }
            for entry in value.models
        ],
    }


def ranges(value: Ranges) -> list[list[str | None]]:
    """Ranges as pairs of ISO instants, each ``[start, end)``, None for an open end."""
    return [interval(part) for part in value]


def interval(value: Interval) -> list[str | None]:
    """One range as ``[start, end)`` in ISO instants, None for an open end."""
    return [iso(value.start), iso(value.end)]


def materialization(kind: Kind) -> JsonObject:
    """What kind of model it is, by the keys that its front matter has."""
    return {
        "materialization": kind.materialization.value,
        "incremental": kind.is_by_cell,
    }


def _pending_shape(value: Pending) -> JsonObject:
    return {"cause": value.cause.value, "ranges": ranges(value.ranges)}


def _arrival_shape(value: Arrival) -> JsonObject:
    return {
        "version": value.version,
        "received": interval(value.received),
        "cell": interval(value.cell),
        "rows": value.rows,
    }


# Two rows are one row and what became of it if they have one key. Where no key is known, rows pair
# up with the one that they are most like, if a third of their values are the same.


@dataclass(frozen=True, slots=True)
class Pair:
    """What is stored and what a rebuild has in its place; None where one has nothing there."""

    key: Row
    stored: Row | None
    rebuilt: Row | None

    @property
    def differing(self) -> Mapping[str, tuple[Any, Any]]:
        """Column -> value stored and value rebuilt, of rows on both sides."""
        if self.stored is None or self.rebuilt is None:
            return {}
        values = {name: (value, self.rebuilt.get(name)) for name, value in self.stored.items()}
        return {name: pair for name, pair in values.items() if not _equal_values(*pair)}


def pair_rows(sample: Sequence[tuple[str, Row]], key: Sequence[str]) -> tuple[Pair, ...]:
    """Rows of both sides (``stored`` or ``rebuilt``) in pairs, in order of the first of each."""
    stored = [row for side, row in sample if side == "stored"]
    rebuilt = [row for side, row in sample if side == "rebuilt"]
    partners = _pairs_by_key(stored, rebuilt, key) if key else _pairs_by_likeness(stored, rebuilt)
    pairs = []
    for side, row in sample:
        if side == "stored":
            at = next(i for i, other in enumerate(stored) if other is row)
            other = partners.get(at)
            pairs.append(Pair(key_values(row, key), row, None if other is None else rebuilt[other]))
        elif not any(rebuilt[other] is row for other in partners.values()):
            pairs.append(Pair(key_values(row, key), None, row))
    return tuple(pairs)


def _pairs_by_key(
    stored: Sequence[Row], rebuilt: Sequence[Row], key: Sequence[str]
) -> dict[int, int]:
    """Rows of one key; where several have it, one after the other."""
    free = list(range(len(rebuilt)))
    pairs = {}
    for at, row in enumerate(stored):
        other = next((i for i in free if key_values(rebuilt[i], key) == key_values(row, key)), None)
        if other is not None:
            free.remove(other)
            pairs[at] = other
    return pairs


def _pairs_by_likeness(stored: Sequence[Row], rebuilt: Sequence[Row]) -> dict[int, int]:
    """The pairs that are most alike, best first."""
    likeness = sorted(_likely_pairs(stored, rebuilt), key=lambda entry: -entry[0])
    pairs: dict[int, int] = {}
    for _, at, other in likeness:
        if at not in pairs and other not in pairs.values():
            pairs[at] = other
    return pairs


def _likely_pairs(
    stored: Sequence[Row], rebuilt: Sequence[Row]
) -> Iterator[tuple[float, int, int]]:
    for at, row in enumerate(stored):
        for i, other in enumerate(rebuilt):
            equal_values = sum(_equal_values(value, other.get(name)) for name, value in row.items())
            if equal_values and equal_values * 3 >= len(row):
                yield equal_values / len(row), at, i


def _equal_values(a: Any, b: Any) -> bool:
    """Whether two values are one, up to the last digits of doubles."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9)
    same: bool = a == b
    return same
