"""What is known of audits: what each found last, and the rows that it failed for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from infold.core.audits import AuditState, JudgedAudit
from infold.core.interval import MAX, MIN
from infold.core.project import Project

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.core.ports import Ledger

AUDIT_FAILURES = "audit_failures"
"""The name that `infold show` knows the rows by that failed audits."""


def newest_audits(project: Project, ledger: Ledger) -> tuple[JudgedAudit, ...]:
    """
    What the audits of a project found, as far as they are still declared.

    An audit that failed for some cells and passed for others has failed: of it only failures are
    given.
    """
    declared = {(node.name, audit.name) for node in project for audit in node.model.audits}
    if not declared:
        return ()
    known = [one for one in ledger.audits() if (one.result.model, one.result.audit) in declared]
    failed = {_audit_of(one) for one in known if one.result.state is AuditState.FAILED}
    return tuple(
        one
        for one in known
        if one.result.state is AuditState.FAILED or _audit_of(one) not in failed
    )


def _audit_of(judged: JudgedAudit) -> tuple[str, str, bool]:
    return judged.result.model, judged.result.audit, judged.result.stored


def failed_audits(project: Project, ledger: Ledger) -> Mapping[str, tuple[JudgedAudit, ...]]:
    """The audits that failed when they were judged last, by model."""
    by_model: dict[str, tuple[JudgedAudit, ...]] = {}
    for judged in newest_audits(project, ledger):
        if judged.result.state is AuditState.FAILED:
            model = judged.result.model
            by_model[model] = (*by_model.get(model, ()), judged)
    return by_model


def audit_failure_rows(project: Project, ledger: Ledger) -> pa.Table:
    """
    The rows that failed audits, as far as they are kept, one row for each.

    ``of`` is ``step`` for rows that a step was about to write (or wrote, of severity warn), and
    ``stored`` for rows that `infold audit` found. ``row`` is the row as a JSON object.
    """
    import pyarrow as pa

    schema = pa.schema(
        [
            ("model", pa.string()),
            ("audit", pa.string()),
            ("severity", pa.string()),
            ("of", pa.string()),
            ("found", pa.string()),
            ("row", pa.string()),
            ("since", pa.timestamp("us", "UTC")),
            ("until", pa.timestamp("us", "UTC")),
            ("run", pa.string()),
            ("judged_at", pa.timestamp("us", "UTC")),
        ]
    )
    return pa.Table.from_pylist([*_failure_rows(project, ledger)], schema=schema)


def _failure_rows(project: Project, ledger: Ledger) -> Iterator[dict[str, object]]:
    for judged in (one for found in failed_audits(project, ledger).values() for one in found):
        result = judged.result
        for row in result.rows or ("",):
            yield {
                "model": result.model,
                "audit": result.audit,
                "severity": result.severity.value,
                "of": "stored" if result.stored else "step",
                "found": result.what,
                "row": row or None,
                "since": None if result.cells.start == MIN else result.cells.start,
                "until": None if result.cells.end == MAX else result.cells.end,
                "run": judged.run or None,
                "judged_at": judged.at,
            }
