"""What drops tables of a target."""

from __future__ import annotations

from infold.api.opening import lake, ledger, now
from infold.api.sole_writer import sole_writer
from infold.core.project import Project
from infold.running.forget import Dropper


def dropper(project: Project) -> Dropper:
    """Drops tables of the project's target, under its lease."""
    book = ledger(project)
    return Dropper(project, book, lake(project), now(), lambda: sole_writer(project, book))
