"""Which audits fail a step."""

from __future__ import annotations

import pytest

from infold.core.audits import AuditReport, AuditResult, AuditState, Severity


@pytest.mark.parametrize(
    ("severity", "state", "fails"),
    [
        (Severity.ERROR, AuditState.FAILED, True),
        (Severity.WARN, AuditState.FAILED, False),
        (Severity.ERROR, AuditState.PASSED, False),
        (Severity.ERROR, AuditState.WAITING, False),
    ],
)
def test_a_failure_of_severity_error_fails_a_step(
    severity: Severity, state: AuditState, fails: bool
) -> None:
    """One of severity warn is only told, and one that waits has found nothing."""
    found = AuditResult("daily", "unique(id)", severity, state)

    assert found.fails is fails
    assert AuditReport((found,)).passed is not fails
