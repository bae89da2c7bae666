"""Tables compared with their rebuilds."""

from __future__ import annotations

import time
from collections.abc import Collection

from infold.api.opening import ledger_of, observer_of, spark_work
from infold.api.spark_sessions import session, whole_size
from infold.core.audits import AuditReport, AuditResult
from infold.core.interval import now
from infold.core.ports import Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import VerificationReport


def verify_models(
    project: Project,
    chosen: frozenset[str] | None,
    sample: int | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Compare the stored tables of some models (None: of all) with a full rebuild of each."""
    from infold.spark.verify.verify import Verifier

    observer = observer_of(project)
    observer.check_ledger()
    started = time.monotonic()
    verifier = Verifier(
        session(project, size=whole_size(observer)),
        project,
        observer.ledger,
        observer.lake,
        progress or SilentProgress(),
    )
    verdicts = verifier.verify(chosen, sample)
    return VerificationReport(verdicts, observer.as_of, time.monotonic() - started)


def audit_models(
    project: Project,
    chosen: Collection[str] | None,
    as_of: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """
    Judge the stored rows of some models (None: of all), and record what is found.

    No row of a table is written. Raises InfoldError where an audit cannot be judged.
    """
    from infold.spark.audits.step_audits import audit_stored

    started = time.monotonic()
    clock = now() if as_of is None else as_of
    observer_of(project).check_ledger()
    nodes = [
        node for node in project if node.model.audits and (chosen is None or node.name in chosen)
    ]
    shown = progress or SilentProgress()
    results: list[AuditResult] = []
    missing: list[str] = []
    ledger = ledger_of(project)
    for node in nodes:
        shown.note(f"judging {node.name}")
        with spark_work(project) as work:
            judged = audit_stored(work, node, clock)
        if judged is None:
            missing.append(node.name)
        else:
            ledger.record_audits(node.name, judged)
            results += judged
    return AuditReport(tuple(results), tuple(missing), clock, time.monotonic() - started)
