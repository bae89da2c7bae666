"""
Which changed tables are built in tables of their own, and when these can replace them: pure.

A changed definition of a table that is built cell by cell needs all of its cells. Where that is
more than its ``backfill_limit`` lets one run build, they are built in another table, over as many
runs as it takes. Readers have the old table meanwhile, which goes on by the old definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infold.core.definition import How, Redefinition
from infold.core.interval import Interval, Ranges
from infold.core.model import DefinitionChange, Kind
from infold.core.plan import ModelObservation, Observations, PlanOptions, Reason
from infold.core.project import Node, Project
from infold.core.trace import UNKNOWN, Cause, CellState, Trace
from infold.planning.buildable_cells import (
    BACKLOG,
    cells_with_rows,
    completed_range,
    continued_build,
    retained_range,
)
from infold.planning.planner import plan


def may_be_apart(node: Node, trace: Trace | None) -> bool:
    """
    Whether a model's table has the rows of an earlier definition, and may keep them for some runs.

    Not where the table has rows of several definitions, or of one that nobody knows.
    """
    incremental = node.model.incremental
    return (
        trace is not None
        and node.model.kind is Kind.INCREMENTAL_TABLE
        and incremental is not None
        and incremental.on_definition_change is DefinitionChange.COMPLETE
        and trace.fingerprint not in (node.fingerprint, UNKNOWN)
        and not (trace.mixed or trace.earlier or node.downgraded)
    )


def is_rebuilt(change: Redefinition | None) -> bool:
    """Whether a changed definition has rows that follow from nothing stored, and both are known."""
    return (
        change is not None
        and change.how is How.REBUILD
        and None not in (change.before, change.after)
        and change.effective_from is None
        and change.refused is None
    )


def exceeds_limit(node: Node, model: ModelObservation, asked: PlanOptions) -> bool:
    """
    Whether building all cells of a model takes more than one run, by its ``backfill_limit``.

    Whoever names a window, or has all of a table built again, overrides the limit.
    """
    if node.name in asked.restated:
        return False
    first = Reason(Cause.MISSING, "", Ranges.ever())
    cells, _ = continued_build(node, model, [first], retained_range(node), asked)
    return cells != Ranges.ever()


def built_part(
    node: Node, model: ModelObservation, replaced: Sequence[CellState]
) -> tuple[int, int]:
    """How many cells with rows a table has that is built apart, and how many it will have."""
    there = _cells_with_rows(node, model, replaced)
    if model.trace is None:
        return 0, len(there)
    return sum(not model.trace.pending_ranges.overlaps(cell) for cell in there), len(there)


def complete(
    project: Project, observed: Observations, replaced: Mapping[str, Sequence[CellState]]
) -> tuple[str, ...]:
    """
    The keys of the tables that can replace those that readers have, with these cells by model.

    They are up to date, and have all cells that readers have, or may have by now.
    """
    return tuple(key for key in project.apart if _is_complete(project, key, observed, replaced))


def _is_complete(
    project: Project,
    key: str,
    observed: Observations,
    replaced: Mapping[str, Sequence[CellState]],
) -> bool:
    name = project.apart[key]
    node, model, old = project[key], observed.models[key], observed.models[name]
    if model.trace is None or model.trace.fingerprint != node.fingerprint or old.trace is None:
        return False
    if {key, name} & observed.refused.keys():
        return False
    left = plan(project, observed, PlanOptions(selected=frozenset((key,))))
    if any(reason.cause not in BACKLOG for step in left.steps for reason in step.reasons):
        return False
    backlog = [one.ranges for one in old.trace.pending if one.cause is Cause.MISSING]
    never_built = Ranges.of(part for ranges in backlog for part in ranges)
    never_built -= Ranges.of(state.cell for state in replaced[name])
    missing = (model.trace.pending_ranges - never_built) & completed_range(node, observed.as_of)
    return not any(missing.overlaps(cell) for cell in _cells_with_rows(node, model, replaced[name]))


def _cells_with_rows(
    node: Node, model: ModelObservation, replaced: Sequence[CellState]
) -> Sequence[Interval]:
    """The cells that have rows, in the inputs or in the table that is replaced."""
    granularity = node.model.granularity
    assert granularity is not None, "it is built cell by cell"
    filled = Ranges.of((*cells_with_rows(node, model), *(s.cell for s in replaced if s.rows)))
    whole = granularity.cover(filled & retained_range(node))
    return [cell for part in whole for cell in granularity.cells(part)]
