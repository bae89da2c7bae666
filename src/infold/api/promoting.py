"""Promoting an environment, and going back."""

from __future__ import annotations

from collections.abc import Callable, Collection

from infold.api.environments import stored
from infold.api.opening import dropper, ledger, refuse_unknown_allowed
from infold.api.repairing import finish_swaps
from infold.core.plan import PlanOptions
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.report import SwapPreview
from infold.core.swap import Swap
from infold.messages import environment_errors
from infold.running.ledger_consistency import refuse_other_project

Find = Callable[[Ledger, Lake], SwapPreview]


def find_promotion(
    project: Project, name: str, *, allow_destructive: Collection[str] = ()
) -> SwapPreview:
    """
    What :func:`promote` would do; nothing is written, but what a dead swap left is finished.

    Raises ``destructive_change`` where readers of a table would lose something, but for those of
    the models that are allowed to.
    """
    return _found(project, _promotion(project, name, allow_destructive))


def promote(
    project: Project,
    shown: SwapPreview,
    *,
    allow_destructive: Collection[str] = (),
    wait: float = 0.0,
) -> None:
    """
    Make the tables of an environment production's, as it was ``shown``.

    Raises ``promote_changed`` where something else would be done by now.
    """
    find = _promotion(project, shown.swap.environment, allow_destructive)
    _carry_out(project, shown, find, wait)


def find_rollback(project: Project) -> SwapPreview:
    """What :func:`rollback` would do; nothing is written, but a dead swap is finished."""
    return _found(project, _rollback(project))


def rollback(project: Project, shown: SwapPreview, *, wait: float = 0.0) -> None:
    """Give the tables that the last promote replaced their names back, as it was ``shown``."""
    _carry_out(project, shown, _rollback(project), wait)


def _promotion(project: Project, name: str, allow: Collection[str]) -> Find:
    from infold.inspecting.swaps import promotion

    refuse_unknown_allowed(project, PlanOptions(allow_destructive=frozenset(allow)))
    return lambda book, tables: promotion(
        stored(project, name), name, book, tables, frozenset(allow)
    )


def _rollback(project: Project) -> Find:
    from infold.inspecting.swaps import rollback as rolled_back

    return lambda book, tables: rolled_back(project, book, tables)


def _found(project: Project, find: Find) -> SwapPreview:
    refuse_other_project(project, ledger(project))
    finish_swaps(project)
    outside = dropper(project)
    return find(outside.ledger, outside.lake)


def _carry_out(project: Project, shown: SwapPreview, find: Find, wait: float) -> None:
    if not shown.changes:
        return  # a swap of nothing would hide the one before it from a rollback
    by = dropper(project)

    def swap() -> Swap:
        now = find(by.ledger, by.lake)
        if now != shown:
            raise environment_errors.promote_changed()
        return now.swap

    by.swap(swap, command=shown.swap.kind.value, wait=wait)
