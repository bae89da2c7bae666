"""
Building again on request: ``restate`` and ``backbuild``.

Late rows, changed definitions and changed lookups need none of this: they are detected. Building
again is for what infold cannot see, such as a function with a new meaning. A cell with the same
result is no change, and nothing downstream of it is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infold.core.interval import Interval, Ranges
from infold.core.model import Kind
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.planning.selection import select_models


@dataclass(frozen=True, slots=True)
class RestateRequest:
    """What is asked for, and the models that were named but are skipped, with reasons."""

    options: PlanOptions
    skipped: tuple[tuple[str, str], ...] = ()


def restate(project: Project, terms: Sequence[str], window: Interval | None) -> RestateRequest:
    """
    Build the models of some terms again: cells of a window, or all; then what follows from changes.

    A window applies to models that are built cell by cell; others named are skipped.
    """
    ranges = Ranges.ever() if window is None else Ranges((window,))
    names = _with_table(project, select_models(project, terms))
    again = {name: ranges for name in names if window is None or _by_cell(project, name)}
    left = tuple(
        (name, "a window bounds no model of its kind") for name in sorted(names - again.keys())
    )
    readers = names | project.downstream(names)
    within = {} if window is None else again
    return RestateRequest(
        PlanOptions(selected=frozenset(readers), restated=again, build_missing_in=within), left
    )


def backbuild(project: Project, terms: Sequence[str], window: Interval) -> RestateRequest:
    """
    Build models over a window again, and what they read for it, upstream first.

    Each model upstream is built again over the union of the ranges that its readers read. Folded
    tables follow their files at any time, and are only brought up to date.
    """
    targets = _with_table(
        project, select_models(project, [term.removeprefix("+") for term in terms])
    )
    ranges = dict.fromkeys(targets, Ranges((window,)))
    for node in reversed(project.nodes):
        if node.name not in ranges:
            continue
        for entry in node.inputs:
            if entry.name in project:
                times = ranges[node.name]
                read = Ranges.ever() if entry.time_column is None else entry.times_read(times)
                ranges[entry.name] = ranges.get(entry.name, Ranges()) | read
    again = {name: cells for name, cells in ranges.items() if _by_cell(project, name)}
    names = frozenset(ranges)
    left = tuple(
        (name, "it is brought up to date, not built again") for name in sorted(names - again.keys())
    )
    return RestateRequest(PlanOptions(selected=names, restated=again, build_missing_in=again), left)


def _with_table(project: Project, names: Iterable[str]) -> frozenset[str]:
    """Those that have a table; a view has nothing to build."""
    return frozenset(name for name in names if project[name].model.kind is not Kind.VIEW)


def _by_cell(project: Project, name: str) -> bool:
    return project[name].model.kind is Kind.INCREMENTAL_TABLE
