"""
Which of four states each model is in, and which event times a run processes.

The names are those of Snowplow's packages; each model has its own state. It follows from traces,
versions and coverage: a pure function of what was observed. So a model that is new, or out of sync,
delays only its readers, and one that nobody ever selects delays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from infold.core.interval import MAX, MIN, Interval, Ranges, show_instant
from infold.core.model import Kind
from infold.core.plan import ModelObservation, Observations, Plan, Step
from infold.core.project import Node, Project
from infold.core.record import Receipt
from infold.core.report import ModelState, State
from infold.core.trace import UNKNOWN, Cause, Trace
from infold.planning.buildable_cells import cells_with_rows, retained_range
from infold.planning.forward_only import definitions_in_force
from infold.planning.staleness import affected_cells, left_by_run


def model_states(project: Project, observed: Observations, plan: Plan) -> tuple[ModelState, ...]:
    """The state of every stored model before ``plan`` is executed, inputs before their readers."""
    steps = {step.model: step for step in plan.steps}
    built = any(model.trace is not None for model in observed.models.values())
    return tuple(
        _state_of(project, node, observed, steps.get(node.name), some_are_built=built)
        for node in project
        if node.model.kind.is_stored
    )


def _state_of(
    project: Project,
    node: Node,
    observed: Observations,
    step: Step | None,
    *,
    some_are_built: bool,
) -> ModelState:
    model = observed.models[node.name]
    state, why = _state_and_reason(project, node, observed, some_are_built=some_are_built)
    cells = _cells_of_step(node, model, step)
    lower, upper = _limits_of_next_run(node, model, step)
    late = _starts_late(node, model) if step is not None else ""
    return ModelState(
        model=node.name,
        state=state,
        why="; ".join(part for part in (why, late) if part),
        lower=lower,
        upper=upper,
        work=step is not None,
        empty=step is not None
        and not step.expected
        and _known_before_reading(step)
        and reads_nothing(step),
        reads=tuple(entry.name for entry in node.inputs),
        cells=cells,
        granularity=node.model.granularity,
    )


def _state_and_reason(
    project: Project, node: Node, observed: Observations, *, some_are_built: bool
) -> tuple[State, str]:
    model = observed.models[node.name]
    if model.trace is None:
        return (State.NEW_MODEL if some_are_built else State.FIRST_RUN), ""
    behind = next(_reasons_out_of_sync(project, node, model, observed), None)
    return (State.STANDARD_RUN, "") if behind is None else (State.OUT_OF_SYNC, behind)


def _reasons_out_of_sync(
    project: Project, node: Node, model: ModelObservation, observed: Observations
) -> Iterator[str]:
    """Why a built model lags behind its inputs, although nothing new may have arrived."""
    trace = model.trace
    assert trace is not None, "only what was built can be behind"
    yield from _definition_reasons(node, trace)
    waits = node.model.incremental is not None and node.model.incremental.cron is not None
    unbuilt = left_by_run(node, model) if waits else trace.pending_ranges & retained_range(node)
    if unbuilt:
        yield "an earlier run left a part of it unbuilt"
    if waits:
        return  # behind by intention until its next tick
    reach = (node.query.gap or 0) if node.query is not None else 0
    for diff in model.inputs:
        times = Ranges.of(change.cell for change in diff.changes)
        affected = Ranges.of(
            part
            for cells, by in definitions_in_force(node, model)
            if any(entry.name == diff.name for entry in by.inputs)
            for part in affected_cells(by, diff.name, times, reach) & cells
        )
        if times and affected & retained_range(node):
            yield f"{diff.name} has changes that it has not read"
    if model.files is not None and model.files.new:
        new_files = {(file.path, file.fingerprint) for file in model.files.new}
        for name, others in _files_left_by_siblings(project, node, observed).items():
            if new_files - others:
                yield f"{name} has ingested files that it has not"


def _definition_reasons(node: Node, trace: Trace) -> Iterator[str]:
    """Why the rows of a table are not those of the present definition."""
    if trace.fingerprint == UNKNOWN:
        yield "a run died while it was replaced"
    elif trace.fingerprint != node.fingerprint:
        yield "its definition changed, and it still has the rows of the old one"
    elif trace.mixed:
        yield "it has rows of two definitions, left by an earlier version of infold"
    elif any(entry.cause is Cause.REDEFINED for entry in trace.pending):
        yield "its definition changed, and it has only the cells that were built since"


def _files_left_by_siblings(
    project: Project, node: Node, observed: Observations
) -> Mapping[str, frozenset[tuple[str, str]]]:
    """The files that built models of the same source have yet to ingest."""
    return {
        other.name: frozenset((file.path, file.fingerprint) for file in files.new)
        for other in project
        if other.name != node.name and other.source is not None and other.source == node.source
        for model in (observed.models[other.name],)
        for files in (model.files,)
        if files is not None
        and model.trace is not None
        and model.trace.fingerprint == other.fingerprint
    }


def _cells_of_step(node: Node, model: ModelObservation, step: Step | None) -> Ranges:
    """
    The cells that a step builds; of an endless range those with rows, as far as they
    are known.
    """
    if step is None or node.model.granularity is None:
        return Ranges()
    cells = processed_cells(step) & retained_range(node)
    if _is_bounded(cells):
        return cells
    known = cells & node.model.granularity.cover(Ranges.of(_known_rows(node, model)))
    return known if _is_bounded(known) else Ranges()


def _is_bounded(cells: Ranges) -> bool:
    return None not in _bounds_of(cells)


def _limits_of_next_run(
    node: Node, model: ModelObservation, step: Step | None
) -> tuple[int | None, int | None]:
    """
    The event times that a step builds, ``[lower, upper)``, as far as they are known beforehand.

    Where a step builds all there is, it is from the model's start, or the first row, to the last.
    """
    if step is None or node.model.granularity is None:
        return None, None
    cells = processed_cells(step) & retained_range(node)
    lower, upper = _bounds_of(cells)
    if cells and (lower is None or upper is None):
        known = (Ranges.of(_known_rows(node, model)) & cells).span
        if known is not None:
            lower = known.start if lower is None else lower
            upper = known.end if upper is None else upper
    return lower, upper


def state_after_run(
    node: Node, entry: ModelState, done: Sequence[tuple[Step, Receipt]], touched: Ranges
) -> ModelState:
    """
    The state of a model, with what its steps processed; ``touched`` are the cells
    they changed.
    """
    if not done:
        return replace(entry, work=False, empty=False, lower=None, upper=None)
    timed = all(source.time_column is not None for source in node.inputs)
    empty = all(reads_nothing(step, receipt, timed=timed) for step, receipt in done)
    entry = replace(entry, work=True, empty=empty)
    if node.model.granularity is None:
        return entry
    known = node.model.kind.is_by_cell
    cells = Ranges.of(part for step, _ in done if known for part in processed_cells(step))
    lower, upper = _bounds_of(cells)
    first, last = _bounds_of(touched)
    shown = next((some for some in (cells, touched, entry.cells) if _is_bounded(some)), Ranges())
    return replace(
        entry,
        cells=shown,
        lower=next((at for at in (lower, first, entry.lower) if at is not None), None),
        upper=next((at for at in (upper, last, entry.upper) if at is not None), None),
    )


def _bounds_of(cells: Ranges) -> tuple[int | None, int | None]:
    """The start and the end of some cells, None where it is open."""
    hull = cells.span
    if hull is None:
        return None, None
    return (
        None if hull.start <= MIN else hull.start,
        None if hull.end >= MAX else hull.end,
    )


def processed_cells(step: Step) -> Ranges:
    """The cells of a step; under a backfill_limit those of the backfill, if any."""
    if step.backfill_end is None:
        return step.stale_cells
    return step.stale_cells & Ranges((Interval(MIN, step.backfill_end),)) or step.stale_cells


def reads_nothing(step: Step, receipt: Receipt | None = None, *, timed: bool = True) -> bool:
    """
    Whether there are no rows for a step, and not because some were removed.

    Rows that a WHERE leaves out exist, and so do those that are set aside: so the expected number
    counts, and the number that was read. Only where lookups are expected too (not ``timed``), which
    have rows at no time, does the number that was read count alone.
    """
    if step.action.of_own_rows:
        return False
    if any(reason.cause in _CAUSES_WITHOUT_ROWS for reason in step.reasons):
        return False
    if receipt is None:
        return not step.rows_to_read
    return not (receipt.read or receipt.arrived or (timed and step.rows_to_read))


# Of these a step may read no row although there is work.
_CAUSES_WITHOUT_ROWS = frozenset(
    {Cause.REMOVED, Cause.LOOKUP, Cause.DUE, Cause.QUARANTINE, Cause.ERASED}
)


def _known_rows(node: Node, model: ModelObservation) -> list[Interval]:
    if node.model.kind is Kind.EVENTS:
        estimate = model.files.estimate if model.files is not None else None
        return [state.cell for state in estimate or ()]
    if node.model.kind is Kind.SESSIONS:
        return [state.cell for diff in model.inputs for state in diff.cells if state.rows]
    return cells_with_rows(node, model)


def _known_before_reading(step: Step) -> bool:
    """Whether it is known, before anything is read, what a step reads."""
    return step.files is None or (step.files.estimate is not None and not step.files.future_rows)


def _starts_late(node: Node, model: ModelObservation) -> str:
    """A note on a model that starts after all that it reads."""
    rows = _known_rows(node, model)
    if node.start is None or not rows or max(rows).end > node.start:
        return ""
    return f"it starts on {show_instant(node.start)}, after all that it reads"
