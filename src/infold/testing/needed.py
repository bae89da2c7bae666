"""Which models a test needs."""

from __future__ import annotations

from collections.abc import Iterable

from infold.core.project import Project


def needed_models(project: Project, models: Iterable[str], given: Iterable[str]) -> frozenset[str]:
    """Some models and all that they are made from, as far as that is not given."""
    found: set[str] = set()
    given = {name for name in given if name not in project.sources}
    todo = list(models)
    while todo:
        name = todo.pop()
        if name in found or name not in project:
            continue
        found.add(name)
        if name not in given:
            todo += project[name].reads
    return frozenset(found)
