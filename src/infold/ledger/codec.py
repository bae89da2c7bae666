"""
Outcomes, with their traces, and receipts as JSON text and back, exactly.

Cells and changes are arrays, not objects: a step may touch thousands. A receipt leaves out what
is zero, so a field added later reads as zero from an older row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, fields, replace
from typing import Any

from infold.core.audits import AuditResult, AuditState, JudgedAudit, Severity
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.interval import Interval, Ranges
from infold.core.record import COUNTS, Outcome, QuarantinedSession, Receipt
from infold.core.trace import (
    Cause,
    CellChange,
    CellState,
    EarlierCells,
    Pending,
    Retention,
    Trace,
    Unchanged,
)
from infold.ledger.database import Query


def dump(value: Any) -> str:
    """Compact JSON, keys sorted, so that equal values make equal texts."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def dump_outcome(outcome: Outcome) -> str:
    """The whole outcome, as kept while a step is prepared."""
    return dump(
        {
            "model": outcome.model,
            "version": outcome.version,
            "trace": _trace(outcome.trace),
            "changes": [_change(change) for change in outcome.changes],
            "whole": outcome.whole,
            "snapshot": outcome.snapshot,
            "committed": outcome.committed,
            "files": None if outcome.files is None else _files(outcome.files),
            "receipt": _receipt(outcome.receipt),
            # These three keys stay as they are: ledgers have outcomes that were stored under them.
            "held": [astuple(session) for session in outcome.quarantined],
            "freed": outcome.released,
            "untold": outcome.cell_column,
            "left_out": outcome.left_out,
            "unchanged": [[sorted(one.columns), _ranges(one.cells)] for one in outcome.unchanged],
            "cells": None if outcome.cells is None else [_state(cell) for cell in outcome.cells],
        }
    )


def load_outcome(text: str) -> Outcome:
    """The outcome that :func:`dump_outcome` wrote."""
    raw = json.loads(text)
    return Outcome(
        model=raw["model"],
        version=raw["version"],
        trace=_load_trace(raw["trace"]),
        changes=tuple(
            CellChange(Interval(start, end), *rest) for start, end, *rest in raw["changes"]
        ),
        whole=raw["whole"],
        snapshot=raw["snapshot"],
        committed=raw["committed"],
        files=None if raw["files"] is None else _load_files(raw["files"]),
        receipt=_load_receipt(raw["receipt"]),
        quarantined=tuple(QuarantinedSession(*values) for values in raw.get("held", ())),
        released=tuple((of, start) for of, start in raw.get("freed", ())),
        cell_column=raw.get("untold"),
        left_out=raw.get("left_out"),
        unchanged=tuple(
            Unchanged(frozenset(columns), _load_ranges(parts))
            for columns, parts in raw.get("unchanged", ())
        ),
        cells=_load_states(raw.get("cells")),
    )


def without_rows_of_tables(outcome: Outcome) -> Outcome:
    """
    The outcome as kept once its step is done: without changes, cells, files, quarantine, columns.

    Those are in tables of their own then; a history of a thousand runs stays small.
    """
    return replace(
        outcome, changes=(), cells=None, files=None, quarantined=(), released=(), unchanged=()
    )


def dump_receipt(receipt: Receipt) -> str:
    """A receipt, zeros left out."""
    return dump(_receipt(receipt))


def load_receipt(text: str) -> Receipt:
    """The receipt that :func:`dump_receipt` wrote."""
    return _load_receipt(json.loads(text))


def _state(state: CellState) -> list[int | None]:
    return [state.cell.start, state.cell.end, state.rows, state.content, state.last]


def _load_states(raw: Iterable[Any] | None) -> tuple[CellState, ...] | None:
    if raw is None:
        return None
    return tuple(CellState(Interval(start, end), *rest) for start, end, *rest in raw)


def _change(change: CellChange) -> list[int | None]:
    return [
        change.cell.start,
        change.cell.end,
        change.added,
        change.removed,
        change.rows_before,
        change.rows_after,
        change.content_before,
        change.content_after,
        change.last,
    ]


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        entry.name: value
        for entry in fields(receipt)
        if (value := getattr(receipt, entry.name)) != entry.default
    }


def _load_receipt(raw: Mapping[str, Any]) -> Receipt:
    values = dict(raw)
    for name in COUNTS:
        if name in values:
            values[name] = tuple((key, rows) for key, rows in values[name])
    return Receipt(**values)


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "model": trace.model,
        "fingerprint": trace.fingerprint,
        "inputs": trace.inputs,
        "entries": trace.applied_entry,
        "retention": astuple(trace.retention),
        "definition": trace.definition,
        "pending": [[entry.cause.value, _ranges(entry.ranges)] for entry in trace.pending],
        "earlier": [[entry.definition, _ranges(entry.cells)] for entry in trace.earlier],
    }


def _load_trace(raw: Mapping[str, Any]) -> Trace:
    return Trace(
        model=raw["model"],
        fingerprint=raw["fingerprint"],
        inputs=dict(raw["inputs"]),
        pending=tuple(
            Pending(Cause(cause), _load_ranges(parts)) for cause, parts in raw["pending"]
        ),
        applied_entry=raw.get("entries", 0),
        retention=Retention(*raw.get("retention", ())),
        definition=raw.get("definition", ""),
        earlier=tuple(
            EarlierCells(_load_ranges(parts), digest) for digest, parts in raw.get("earlier", ())
        ),
    )


def _ranges(ranges: Ranges) -> list[list[int]]:
    return [[part.start, part.end] for part in ranges]


def _load_ranges(raw: Iterable[list[int]]) -> Ranges:
    return Ranges(tuple(Interval(start, end) for start, end in raw))


def _files(outcome: FilesOutcome) -> dict[str, Any]:
    return {
        "source": outcome.source,
        "taken": [astuple(file) for file in outcome.ingested],
        "removed": list(outcome.removed),
        "cells": [_file_cell(cell) for cell in outcome.cells],
        "dropped": [_file_cell(cell) for cell in outcome.dropped],
        "recounted": outcome.recounted,
    }


def _load_files(raw: Mapping[str, Any]) -> FilesOutcome:
    return FilesOutcome(
        source=raw["source"],
        ingested=tuple(IngestedFile(*values) for values in raw["taken"]),
        removed=tuple(raw["removed"]),
        cells=_load_file_cells(raw["cells"]),
        dropped=_load_file_cells(raw["dropped"]),
        recounted=raw.get("recounted", False),
    )


def _file_cell(cell: FileCell) -> list[int]:
    return [cell.file_id, cell.cell.start, cell.cell.end, cell.rows, cell.dropped]


def _load_file_cells(raw: Iterable[list[int]]) -> tuple[FileCell, ...]:
    return tuple(
        FileCell(file, Interval(start, end), rows, dropped)
        for file, start, end, rows, dropped in raw
    )


def put_audits(
    query: Query, model: str, results: Iterable[AuditResult], *, now: int, run: str, step: str
) -> None:
    """
    Record what the audits of a model found, of one stretch of its table.

    What they found there before is dropped, and what passed anywhere; so a failure stays until the
    same cells are judged again.
    """
    results = tuple(results)
    for stored in {result.stored for result in results}:
        judged = [result for result in results if result.stored is stored]
        cells = judged[0].cells
        query.run(
            "drop_judged_audits", model=model, stored=stored, since=cells.start, until=cells.end
        )
        query.many(
            "add_audit",
            [
                {
                    "model": model,
                    "audit": one.audit,
                    "stored": stored,
                    "range_start": cells.start,
                    "range_end": cells.end,
                    "state": one.state.value,
                    "found": _text(one),
                    "run": run,
                    "step": step,
                    "judged_at": now,
                }
                for one in judged
            ],
        )


def load_purges(text: str) -> tuple[tuple[int, int | None], ...]:
    """Numbers of requests and when they were purged; earlier versions of infold noted no time."""
    parts = (part.partition("@") for part in text.split())
    return tuple((int(number), int(at) if at else None) for number, _, at in parts)


_FORGOTTEN = "it may have had values of erased rows, and a purge took it out"
"""What is kept in place of the text of an error."""


def forget_texts(query: Query) -> None:
    """Keep that runs and steps failed without why, and what audits found without any row."""
    query.run("forget_run_errors", instead=_FORGOTTEN)
    query.run("forget_step_errors", instead=_FORGOTTEN)
    for judged in all_audits(query):
        result = judged.result
        if result.rows:
            query.run(
                "replace_found",
                of_model=result.model,
                of_audit=result.audit,
                of_stored=result.stored,
                of_start=result.cells.start,
                new_found=_text(replace(result, rows=())),
            )


def all_audits(query: Query) -> Sequence[JudgedAudit]:
    """Everything that is recorded, by model."""
    return tuple(_judged(*row) for row in query.all("audits"))


def _judged(
    model: str,
    audit: str,
    stored: bool,
    start: int,
    end: int,
    state: str,
    values: str,
    run: str,
    step: str,
    at: int,
) -> JudgedAudit:
    raw = json.loads(values)
    result = AuditResult(
        model=model,
        audit=audit,
        severity=Severity(raw.pop("severity")),
        state=AuditState(state),
        rows=tuple(raw.pop("rows")),
        cells=Interval(start, end),
        stored=bool(stored),
        **raw,
    )
    return JudgedAudit(result, at, run, step)


def _text(result: AuditResult) -> str:
    """What a result has beside the columns of its row."""
    beside = ("model", "audit", "state", "cells", "stored")
    values = {key: value for key, value in asdict(result).items() if key not in beside}
    return json.dumps(values, separators=(",", ":"), sort_keys=True)
