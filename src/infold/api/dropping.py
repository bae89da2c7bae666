"""What drops tables of a target."""

from __future__ import annotations

from infold.api.opening import lake, ledger, now
from infold.core.project import Project
from infold.running.forget import Dropper
from infold.system.process_lock import writer_lock


def dropper(project: Project) -> Dropper:
    """Drops tables of the project's target, under its lease."""
    return Dropper(
        project,
        ledger(project),
        lake(project),
        now(),
        lambda: writer_lock(project.root, project.target.name),
    )
