"""
Changed definitions that leave the cells before an instant as they are: forward-only.

The new definition holds from the first cell that is not built, or from an instant that somebody
named. The cells before it keep their rows, and what arrives late for them is computed by the
definition in force there. So the change itself reads no input: the table gets its new columns, NULL
in every stored row, and the cells from the instant on are stale. Sessions end at the instant: those
that reach over it, and what comes after it, are made from their events again by the same step.

What would need rows of the earlier cells to change is refused, never guessed: a column that goes, a
key or a cell of another kind. Afterwards each cell has one definition in force, which everything
that is planned for it follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from infold.core.definition import Category, Derivation, How, Redefinition
from infold.core.interval import MAX, Interval, Ranges, show_instant
from infold.core.model import Kind, Late
from infold.core.plan import ModelObservation, Reason
from infold.core.project import Batches, Input, Node, Stretch
from infold.core.queries import quoted
from infold.core.trace import UNKNOWN, Cause, CellState, EarlierCells, Trace
from infold.messages import apply_errors

FORWARD = "forward-only: cells before {} keep their rows"
"""Why cells from an instant on are stale."""

_KINDS = (Kind.INCREMENTAL_TABLE, Kind.EVENTS, Kind.SESSIONS)
"""The kinds of tables with cells that each follow one definition."""

_NO_CHANGE = (How.NOTHING, How.RESTAMP)
"""Changes that leave every row as it is anyway."""


def forward_only(
    change: Redefinition,
    trace: Trace,
    effective_from: int | None,
    stored: Sequence[CellState],
    *,
    computable: bool = True,
) -> Redefinition:
    """
    A change that is to be forward-only: from an instant, or from the first cell that is not built.

    Where it cannot be, ``refused`` says why. It stays as it is where no row changes, or none is
    stored. The earlier definition has to be ``computable`` over the inputs as they are declared.
    """
    filled = [state.cell.end for state in stored if state.rows]
    if trace.fingerprint == UNKNOWN or change.how in _NO_CHANGE or not filled:
        return change
    at = max(filled) if effective_from is None else effective_from
    why = next(_obstacles(change, trace, at), None)
    if why is None and not computable:
        why = "its inputs no longer have what its earlier definition reads"
    if why is not None:
        refused = apply_errors.not_forward_only(model=change.model, why=why)
        return replace(change, category=Category.FORWARD_ONLY, refused=refused)
    folds = change.after is not None and change.after.model.kind is Kind.SESSIONS
    return replace(
        change,
        category=Category.FORWARD_ONLY,
        how=How.REFOLD if folds else How.DERIVE,
        columns_kept=frozenset(),
        losses=(),
        destroys=(),
        derivation=None if folds else _with_new_columns(change),
        effective_from=at,
    )


def without_earlier_cells(change: Redefinition, trace: Trace) -> Redefinition:
    """
    A change that is not forward-only. Where a table has cells of earlier definitions, it builds all
    of it by the new one: what is proven of the newest two definitions is not proven of these cells.
    """
    if not trace.earlier or change.how in _NO_CHANGE:
        return change
    proven = change.category in (Category.NONE, Category.METADATA, Category.ADDITIVE)
    return replace(
        change,
        category=Category.BREAKING if proven else change.category,
        how=How.REBUILD,
        columns_kept=frozenset(),
        derivation=None,
        rewrites_until=trace.earlier_ranges.parts[-1].end,
    )


def _obstacles(change: Redefinition, trace: Trace, at: int) -> Iterator[str]:
    """Why the earlier cells cannot stay as they are."""
    before, after = change.before, change.after
    if after is None or after.model.kind not in _KINDS:
        yield "only events, sessions, and tables that are built cell by cell, have cells to keep"
        return
    known = before is not None and before.fingerprint == trace.fingerprint and trace.definition
    if before is None or not known or trace.mixed:
        yield "the definition that built its rows is not known"
        return
    yield from _other_cells(before, after)
    if change.events is not None and change.events.other:
        yield change.events.other
    yield from _other_sessions(before, after)
    names = {column.lower() for column in after.columns}
    dropped_columns = [column for column in before.columns if column.lower() not in names]
    if dropped_columns:
        yield f"the earlier cells have columns that it lacks: {', '.join(dropped_columns)}"
    granularity = after.model.granularity
    if granularity is not None and not granularity.aligned(at):
        cell = granularity.cell(at)
        ends = f"{show_instant(cell.start)} or {show_instant(cell.end)}"
        yield f"{show_instant(at)} lies inside a cell; nearest: {ends}"


def _other_cells(before: Node, after: Node) -> Iterator[str]:
    """What divides the table into other cells, or into cells of other times."""
    if before.model.kind is not after.model.kind:
        yield f"its kind changed, from {before.model.kind} to {after.model.kind}"
    elif before.model.timeseries != after.model.timeseries:
        yield "its timeseries changed, and with it the cells"
    elif before.start != after.start:
        yield "its start changed"
    elif after.downgraded:
        yield "this run builds it whole"


def _other_sessions(before: Node, after: Node) -> Iterator[str]:
    """What makes sessions of something else, or counts them in another way."""
    old, new = before.query, after.query
    if old is None or new is None:
        return
    if old.user != new.user or (old.fallback is None) != (new.fallback is None):
        yield "its sessions are of other owners"
    elif new.numbered and not old.numbered:
        yield "the earlier sessions have no session_number, which counts all of a user"
    elif new.numbered and old.owner_column != new.owner_column:
        yield "session_number counts the sessions of another user"


def _with_new_columns(change: Redefinition) -> Derivation:
    """The stored columns in the order of the new definition, and NULL where it has new ones."""
    assert change.before is not None, "a change without an earlier definition is refused"
    assert change.after is not None, "a change without a definition is refused"
    stored = {column.lower(): column for column in change.before.columns}
    names = change.after.columns
    return Derivation(
        columns=tuple(
            (name, quoted(stored[name.lower()]) if name.lower() in stored else "NULL")
            for name in names
        ),
        stored=change.before.columns,
        added=frozenset(name for name in names if name.lower() not in stored),
    )


# Sessions that start before the instant keep their definition, and what changed in their events is
# folded in by that. Those from the instant on are built by the new definition, from their events.


def forward_from(model: ModelObservation) -> Reason | None:
    """Why sessions from an instant on are made again, where a change is forward-only."""
    change = model.redefined
    if change is None or change.effective_from is None:
        return None
    since = change.effective_from
    later = Ranges((Interval(since, MAX),))
    return Reason(Cause.DEFINITION, FORWARD.format(show_instant(since)), later)


# Which definition is in force in which cells of a table; ordinarily it is one for all. A change of
# an input makes a cell stale if the definition in force there reads it, and as far as that one
# reaches. So everything that follows from a model's query is asked of each definition, for its own
# cells.


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
