"""Which models a function was asked for, landed sources included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.api.opening import ledger
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.messages import command_errors
from infold.planning.selection import select_models, with_landed


def with_chosen(
    project: Project, asked: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What a plan is asked for, with the models that some terms name."""
    asked = asked or PlanOptions()
    chosen = chosen_models(project, select, exclude)
    if chosen is None:
        return asked
    return replace(asked, selected=with_landed(project, chosen, exclude))


def refuse_unknown_allowed(project: Project, asked: PlanOptions) -> None:
    """Raise ``unknown_model`` where an allowed change is of no model, not even a removed one."""
    names = asked.allow_destructive - {node.name for node in project}
    if names:
        known = {node.name for node in project} | ledger(project).applied().keys()
        for name in sorted(names - known):
            raise command_errors.unknown_model(name, sorted(known))


def chosen_models(
    project: Project, select: Sequence[str], exclude: Sequence[str]
) -> frozenset[str] | None:
    """The models that some terms name; None without a term."""
    return select_models(project, select, exclude) if select or exclude else None
