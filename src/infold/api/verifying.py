"""Tables compared with their rebuilds."""

from __future__ import annotations

import time

from infold.api.opening import observer
from infold.api.spark_sessions import session, whole_size
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

    looking = observer(project)
    looking.check_ledger()
    started = time.monotonic()
    verifier = Verifier(
        session(project, size=whole_size(looking)),
        project,
        looking.ledger,
        looking.lake,
        progress or SilentProgress(),
    )
    verdicts = verifier.verify(chosen, sample)
    return VerificationReport(verdicts, looking.as_of, time.monotonic() - started)
