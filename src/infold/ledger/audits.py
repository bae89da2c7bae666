"""What audits found, in the ledger: what each found last, and failures until they are mended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from infold.core.audits import AuditResult, AuditState, JudgedAudit, Severity
from infold.core.interval import Interval
from infold.ledger.query import Query


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
