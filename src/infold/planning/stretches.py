"""
Which definition holds for which cells of a table; ordinarily it is one for all.

After a forward-only change the cells before it keep the rows of the definition that built them. A
change of an input makes such a cell stale if the definition in force there reads it, and as far as
that one reaches. So everything that follows from a model's query is asked of each definition, for
its own cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from infold.core.definition import Redefinition
from infold.core.interval import Interval, Ranges
from infold.core.model import Kind, Late
from infold.core.plan import ModelObservation
from infold.core.project import Batches, Input, Node, Stretch
from infold.core.trace import EarlierCells, Trace


def definitions_in_force(node: Node, model: ModelObservation) -> tuple[tuple[Ranges, Node], ...]:
    """The definitions of a model's table, each with the cells that it holds for; newest last."""
    if not model.earlier:
        return ((Ranges.ever(), node),)
    earlier = tuple((one.cells, one.node) for one in model.earlier)
    earlier_cells = Ranges.of(part for cells, _ in earlier for part in cells)
    return (*earlier, (Ranges.ever() - earlier_cells, node))


def by_definitions_in_force(node: Node, trace: Trace, change: Redefinition | None) -> Trace | None:
    """
    The trace of a table, with the earlier definitions that its next step goes by; None: by none.

    Sessions that change forward-only are folded by those that are in force after the change.
    """
    since = change.effective_from if change is not None else None
    if since is not None and node.model.kind is Kind.SESSIONS:
        return replace(trace, earlier=trace.redefined_from(since, ""))
    return trace if trace.earlier and trace.fingerprint == node.fingerprint else None


def input_of(node: Node, name: str) -> Input | None:
    """How a definition reads an input; None if it does not."""
    return next((entry for entry in node.stored_inputs if entry.name == name), None)


def inputs_in_force(node: Node, earlier: Iterable[Stretch]) -> tuple[str, ...]:
    """The stored inputs of all definitions of a table, those of the newest first."""
    nodes = (node, *(one.node for one in earlier))
    return tuple(dict.fromkeys(entry.name for one in nodes for entry in one.stored_inputs))


def cells_reached(
    node: Node, model: ModelObservation, times: dict[str, list[Interval]]
) -> list[Interval]:
    """The cells that rows of the inputs at these times can affect, in order."""
    granularity = node.model.granularity
    if granularity is None:
        return []
    reached = Ranges.of(
        part
        for cells, by in definitions_in_force(node, model)
        for entry in by.stored_inputs
        if entry.time_column is not None and entry.name in times
        for part in granularity.cover(entry.times_affected(Ranges.of(times[entry.name]))) & cells
    )
    return [cell for part in granularity.cover(reached) for cell in granularity.cells(part)]


def built_one_by_one(node: Node, model: ModelObservation) -> bool:
    """Whether a definition in force means a query for each cell."""
    return any(
        by.batches is Batches.PER_PARTITION_ONLY for _, by in definitions_in_force(node, model)
    )


def earlier_after(node: Node, model: ModelObservation, built: Ranges) -> tuple[EarlierCells, ...]:
    """
    The cells of earlier definitions once some are built, by the definitions in force there.

    Those before the instant of a forward-only change are of the one that it changes.
    """
    if model.trace is None:
        return ()
    if model.redefined is not None and model.redefined.effective_from is not None:
        return model.trace.redefined_from(model.redefined.effective_from, "")
    if model.trace.fingerprint != node.fingerprint:
        return ()
    incremental = node.model.incremental
    if incremental is not None and incremental.late is Late.NEW:
        return model.trace.built_anew(built)
    return model.trace.earlier
