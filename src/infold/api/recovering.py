"""Finishes what a dead command began, before another one decides what there is to do."""

from __future__ import annotations

from infold.api.opening import dropper, ledger, open_project
from infold.core.project import Project
from infold.core.target import Apply
from infold.running.exchange import is_swap


def after_exchange(project: Project, wait: float) -> Project:
    """
    The project by the definitions that are applied once such an exchange is finished or forgotten.

    Mostly there is none, and it is ``project`` itself. So it is where definitions are to be
    applied: they were chosen by what was applied before, and the run refuses them.
    """
    if project.target.apply is not Apply.MANUAL or project.applies:
        return project
    if not finish_exchange(project, wait):
        return project
    return open_project(project.root, project.target.name)


def finish_exchange(project: Project, wait: float = 0.0) -> bool:
    """Finish or forget an exchange of tables that a dead command began; whether there was one."""
    found = any(is_swap(step) for step in ledger(project).unfinished())
    if found:
        dropper(project).recover(wait)
    return found


def finish_steps(project: Project, wait: float = 0.0) -> None:
    """Finish or forget whatever a dead command left: what an environment shares follows from it."""
    if ledger(project).unfinished():
        dropper(project).recover(wait)
