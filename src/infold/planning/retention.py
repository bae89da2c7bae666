"""
How far back tables go: which rows are older than they are kept, and which cells are frozen by that.

A table is what it would be if rows that are too old had never come. Its start moves, whole cells at
a time, with the clock of the run. Readers follow by content. But a table built cell by cell that
says itself how long its rows are kept does so although rows are gone that they were made from: such
cells are frozen. Nothing makes them stale any more, and nobody can build them again.

A frozen cell is to have all that ever came. So rows do not go before each table that is to keep
something of them has read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from infold.core.interval import MIN, Interval, Ranges, show_instant
from infold.core.model import Kind
from infold.core.plan import Action, ModelObservation, Observations, Reason, Step
from infold.core.project import Node, Project
from infold.core.trace import UNKNOWN, Cause, Pending, Retention
from infold.planning.staleness import count_of, entry_reasons

KEPT_FOR = "its rows before {} are kept until {} has read them"
"""Why rows stay that are too old."""

FROZEN = "frozen: rows that they were made from are no longer kept"
"""Why cells stay although they are stale."""

IRREPLACEABLE = "all of it would be built again, and {} cannot be: rows are no longer kept"
"""Why a table with frozen cells is not replaced."""


def retained_since(project: Project, node: Node, as_of: int) -> int:
    """The instant before which rows of a model are too old, where a cell begins; MIN: none is."""
    length, granularity = project.retain_of(node), node.model.granularity
    if length is None or granularity is None or as_of - length <= MIN:
        return MIN
    return granularity.floor(as_of - length)


def keeps_frozen_cells(node: Node) -> bool:
    """Whether a model keeps cells for longer than the rows that they were made from."""
    return node.model.kind.is_by_cell and node.model.retain is not None


def has_start(node: Node) -> bool:
    """Whether rows of a model can be too old by themselves, and do not only follow others."""
    return node.model.kind is Kind.EVENTS or keeps_frozen_cells(node)


@dataclass(frozen=True)
class PlannedRetention:
    """What tables lack once the ``steps`` of a plan so far are done."""

    project: Project
    observed: Observations
    steps: Mapping[str, Step]

    def of(self, name: str) -> Retention:
        """What a table lacks then."""
        known = self.steps.get(name) or self.observed.models.get(name)
        return Retention() if known is None or known.trace is None else known.trace.retention

    def after_step(self, node: Node, *, expires: bool = False) -> Retention:
        """What a table lacks after a step of its model, with which rows may go for their age."""
        known, model = self.of(node.name), self.observed.models[node.name]
        start = known.start
        if expires or model.trace is None or not model.expired:
            start = max(start, retained_since(self.project, node, self.observed.as_of))
        lost = {entry.name: self.of(entry.name).lost_until for entry in node.stored_inputs}
        reach = _reach(node, model, lost)
        freezes = keeps_frozen_cells(node) and reach > start
        frozen_until = max(known.frozen_until, reach if freezes else MIN)
        lost_until = max(known.lost_until, start if has_start(node) else reach)
        return Retention(start, lost_until, frozen_until)

    def expiry(self, node: Node, model: ModelObservation) -> Reason | None:
        """That rows of a table are too old, with the cells that they are in."""
        trace = model.trace
        if not (model.expired and has_start(node)) or trace is None or trace.fingerprint == UNKNOWN:
            return None
        since = retained_since(self.project, node, self.observed.as_of)
        rows = sum(state.rows for state in model.expired)
        cells = Ranges.of(state.cell for state in model.expired)
        detail = f"{count_of(rows, 'row')} before {show_instant(since)}"
        return Reason(Cause.EXPIRED, detail, cells)

    def kept_for(self, node: Node) -> str | None:
        """The first reader that is to keep something of a model's old rows and lacks it yet."""
        lost = {node.name: retained_since(self.project, node, self.observed.as_of)}
        # Who asked to be erased is to be in no total, either.
        own = self.observed.models[node.name]
        behind = {node.name} if any(entry_reasons(own)) else set[str]()
        for reader in self.project:
            model = self.observed.models.get(reader.name)
            reach = MIN if model is None else _reach(reader, model, lost)
            if model is None or reach <= self._own_start(reader):
                continue
            if behind & {entry.name for entry in reader.inputs} or self._is_behind(
                reader, model, reach, lost
            ):
                behind.add(reader.name)
            if not keeps_frozen_cells(reader):
                lost[reader.name] = reach
            elif reader.name in behind:
                return reader.name
        return None

    def _is_behind(
        self, node: Node, model: ModelObservation, reach: int, lost: Mapping[str, int]
    ) -> bool:
        """Whether a model has yet to read rows that are to go, and not only that others went."""
        trace, before = model.trace, Ranges((Interval(MIN, reach),))
        if trace is None or trace.fingerprint != node.fingerprint or trace.pending_ranges & before:
            return True
        looked_up = (diff for diff in model.inputs if node.is_lookup(diff.name))
        if any(entry_reasons(model)) or any(diff.changes for diff in looked_up):
            return True
        return any(
            self.of(diff.name).lost_until <= change.cell.start < lost[diff.name]
            and _reach(node, model, {diff.name: change.cell.end}) > self._own_start(node)
            for diff in model.inputs
            if diff.name in lost
            for change in diff.changes
        )

    def _own_start(self, node: Node) -> int:
        """The instant before which a model keeps nothing anyway."""
        since = retained_since(self.project, node, self.observed.as_of)
        return max(node.start or MIN, since, self.of(node.name).start)


def expiring(step: Step, model: ModelObservation, retention: Retention) -> Step:
    """A step that only takes out its cells, of a table that is else as it was."""
    assert model.trace is not None, "what has rows was built"
    left = ((entry.cause, entry.ranges - step.cells) for entry in model.trace.pending)
    pending = tuple(Pending(cause, ranges) for cause, ranges in left if ranges)
    return replace(
        step,
        action=Action.EXPIRE,
        inputs={name: (version, version) for name, version in model.trace.inputs.items()},
        files=None,
        trace=replace(model.trace, pending=pending, retention=retention),
        expected=False,
        scanned=0,
        changed_key_rows=(),
    )


def _reach(node: Node, model: ModelObservation, lost: Mapping[str, int]) -> int:
    """
    The instant before which rows of a model may not be what they were; MIN: all are.

    ``lost`` are such instants of inputs. What is left of a session that reaches over it is a
    session of its own, which begins no later than the whole one ended.
    """
    granularity, reach = node.model.granularity, MIN
    for entry in node.stored_inputs:
        until = lost.get(entry.name, MIN)
        if until <= MIN or entry.time_column is None or granularity is None:
            continue
        if node.model.kind is Kind.SESSIONS:
            over = (state for state in model.expired if state.cell.start < until)
            ends = (1 + state.last for state in over if state.last is not None)
            reach = max(reach, until, *ends)
        else:
            affected = granularity.cover(entry.times_affected(Ranges((Interval(MIN, until),))))
            reach = max(reach, *(part.end for part in affected))
    return reach
