"""
What a run would build from nothing although it stands already, and which targets mind.

On a protected target nothing drops or rebuilds a table, or what is known of it, unless that run
was allowed to. Keeping a table up to date is no rebuild, even where that writes all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from infold import errors
from infold.interval import Ranges
from infold.plan import Asked, Plan, Step
from infold.project import Project
from infold.trace import UNKNOWN

Stands = Callable[[str], bool]
"""Whether a model's table stands that its ledger tells nothing of."""


def refuse_rebuilds(
    project: Project, plan: Plan, asked: Asked, stands: Stands, *, allowed: bool
) -> None:
    """Raise ``errors.protected`` when a plan rebuilds a table of a protected target."""
    if not project.target.protected or allowed:
        return
    found = tuple(rebuilds(plan, asked, stands))
    if found:
        raise errors.protected(project.target.name, "rebuild", found)


def rebuilds(plan: Plan, asked: Asked, stands: Stands) -> Iterator[tuple[str, str]]:
    """The models that a plan builds anew although they were built, each with the reason."""
    for step in plan.steps:
        why = _why(step, asked, stands)
        if why:
            yield step.model, why


def _why(step: Step, asked: Asked, stands: Stands) -> str:
    if asked.restated.get(step.model) == Ranges.ever() and step.before is not None:
        return "all of it is to be built again"
    if step.before is None:
        return "its table stands, and nothing is known of it" if stands(step.model) else ""
    old, new = step.before.fingerprint, step.trace.fingerprint if step.trace else ""
    # What a dead run left half known has to be built again before anything can be.
    return "its definition changed" if old not in (new, UNKNOWN) else ""
