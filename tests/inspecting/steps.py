"""A step of a run, recorded in the ledger."""

from __future__ import annotations

from infold import api
from infold.core.project import Project
from infold.core.record import Outcome


def step(project: Project, outcome: Outcome) -> None:
    """Record a run of one step, with its outcome."""
    book = api.ledger(project)
    number = len(book.runs(100)) + 1
    book.acquire(f"r{number}")
    book.begin_run(f"r{number}", "run", 0, {})
    book.begin_step(f"r{number}", f"r{number}-1", 1, outcome.model, "build", {})
    book.finish_step(f"r{number}-1", outcome)
    book.close()
