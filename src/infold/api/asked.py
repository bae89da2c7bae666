"""Which models a function was asked for, landed sources included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.core.plan import PlanOptions
from infold.core.project import Project
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


def chosen_models(
    project: Project, select: Sequence[str], exclude: Sequence[str]
) -> frozenset[str] | None:
    """The models that some terms name; None without a term."""
    return select_models(project, select, exclude) if select or exclude else None
