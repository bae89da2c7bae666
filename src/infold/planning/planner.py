"""
Observations + project → steps with their reasons.

:func:`plan` is a pure function: it never sees a clock, a session, a path or a ledger. So a plan can
be shown, stored, compared and tested without Spark, and ``infold run`` executes what ``infold
plan`` prints. A run is a loop: which cells a file touches may be known only after it was read. So
steps that depend on another step are *expected*, and the run plans again before it executes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.core.interval import MIN, Interval, Ranges, show_duration, show_instant
from infold.core.model import Deduplicate, Kind
from infold.core.plan import (
    HELD_BACK,
    NOT_EMPTIED,
    READS_NO_CHANGE,
    UP_TO_DATE,
    Action,
    FileDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Reason,
    Skipped,
    Step,
)
from infold.core.project import Node, Project
from infold.core.trace import Cause, Pending, merge_pending
from infold.planning.buildable_cells import (
    BACKLOG,
    cells_to_replace,
    cells_with_rows,
    completed_range,
    continued_build,
    filled_cells,
    most_concurrent_batches,
    replaced_whole,
    retained_range,
    split_into_batches,
    split_pending,
)
from infold.planning.derivations import in_order, step_over_stored_rows
from infold.planning.forward_only import earlier_after, forward_from
from infold.planning.plan_draft import PlanDraft
from infold.planning.plan_notes import plan_notes
from infold.planning.retention import FROZEN, IRREPLACEABLE, KEPT_FOR, expiring, retained_since
from infold.planning.staleness import (
    count_of,
    entry_reasons,
    file_reasons,
    files_to_reingest,
    newest_version,
    next_due,
    read_again,
    rows_to_read,
    snapshot_reasons,
    whole_table_reason,
)


def incremental_table(draft: PlanDraft, node: Node, model: ModelObservation) -> Step | None:
    """
    The stale cells inside the window that are due; the others stay pending in the trace.

    A changed definition replaces the table.
    """
    first, frozen = whole_table_reason(node, model), _frozen_cells(draft, node, model)
    stored = sum(bool(state.rows) and frozen.overlaps(state.cell) for state in model.cells)
    if first is not None and stored:
        draft.held_back.add(node.name)
        why = IRREPLACEABLE.format(count_of(stored, "frozen cell"))
        draft.skipped.append(Skipped(node.name, why, frozen))
        return None
    if first is not None and first.cause is Cause.DEFINITION:
        return _replace_table(draft, node, model, first)
    return _recompute(draft, node, model, first, frozen)


def _frozen_cells(draft: PlanDraft, node: Node, model: ModelObservation) -> Ranges:
    """The cells of a table that keep their rows, whatever becomes of what they were made from."""
    if model.trace is None:
        return Ranges()
    return replace(model.trace, retention=draft.kept[node.name]).frozen_ranges


def _recompute(
    draft: PlanDraft, node: Node, model: ModelObservation, first: Reason | None, frozen: Ranges
) -> Step | None:
    """Build stale cells, or the first cells of a table (``first`` is why)."""
    reasons = [first] if first else draft.stale_reasons(node, model, 0)
    reasons += draft.restate_reasons(node)
    if first is None and _waits_for_cron(draft, node, model, reasons):
        return None
    retained, over = (
        retained_range(node),
        completed_range(node, draft.observed.as_of, draft.options.ignore_cron),
    )
    pending, build = [], []
    filled = Ranges.ever()
    if first is None and over != Ranges.ever() and not node.fills_cells:
        # Each tick ends a cell that was waited for; one without rows is right as it is.
        filled = filled_cells(node, model)
    buildable = draft.window & over & filled
    taken, backfill_end = continued_build(node, model, reasons, retained & buildable, draft.options)
    build_missing = _build_missing_in(draft, node)
    start = draft.kept[node.name].start
    gone = Ranges((Interval(MIN, start),)) if start > MIN else Ranges()
    for reason in reasons:
        within = (reason.cells & retained) - frozen
        inside = within & buildable & taken & (build_missing if reason.cause in BACKLOG else within)
        if within - inside:
            pending.append(Pending(reason.cause, within - inside))
        # Where it has nothing to read, it is as of the newest versions of its inputs all the same.
        if inside or not reason.cells or reason.cells & (frozen | gone):
            build.append(replace(reason, cells=inside, rows=rows_to_read(node, model, inside)))
    cells = Ranges.of(part for reason in build for part in reason.cells)
    if stale := Ranges.of(part for reason in reasons for part in reason.cells & frozen):
        draft.skipped.append(Skipped(node.name, FROZEN, stale))
    replaces = first is not None and first.cause is Cause.REDEFINED
    if replaces and _would_empty(draft, node, model, retained & over, cells):
        return None
    _note_skipped(draft, node, model, pending, over, taken, build_missing)
    if not build:
        return None
    # What makes the table does so before other batches come.
    together = 1 if first or model.earlier else most_concurrent_batches(node, draft.options)
    parts = split_into_batches(node, model, cells, draft.options)
    batch, beside = parts[0], tuple(parts[1:together])
    pending.extend(
        Pending(reason.cause, reason.cells - batch) for reason in build if reason.cells - batch
    )
    if replaces:
        pending = split_pending(node, model, pending)
    whole = not pending and cells == retained and not (model.earlier or frozen)
    anything = Action.BUILD if whole else Action.RECOMPUTE
    action = Action.BUILD if replaces else anything
    step = draft.make_step(node, action, build, merge_pending(pending))
    assert step.trace is not None, "a planned step has a trace"
    return replace(
        step,
        cells=batch,
        batches=len(parts),
        concurrent_batches=beside,
        backfill_end=backfill_end,
        trace=replace(step.trace, earlier=earlier_after(node, model, batch)),
    )


def _waits_for_cron(
    draft: PlanDraft, node: Node, model: ModelObservation, reasons: Sequence[Reason]
) -> bool:
    """Whether a built model is skipped until the next tick of its cron."""
    if draft.options.ignore_cron or node.name in draft.options.restated:
        return False
    due = next_due(node, model, draft.observed.as_of)
    if due is not None and reasons:
        draft.skipped.append(Skipped(node.name, f"not due before {show_instant(due)}"))
    return due is not None


def _replace_table(
    draft: PlanDraft, node: Node, model: ModelObservation, first: Reason
) -> Step | None:
    """
    Replace the table of a changed definition: one step, one commit.

    A window would build a part of it, and the table would mix rows of two definitions or lose
    days that nobody asked about. So the old table stays until the new one is built whole.
    """
    retained = retained_range(node)
    stored = cells_to_replace(node, model)
    if stored - draft.window:
        draft.held_back.add(node.name)
        draft.skipped.append(Skipped(node.name, HELD_BACK, stored))
        return None
    over = completed_range(node, draft.observed.as_of, draft.options.ignore_cron)
    cells = retained & over & replaced_whole(node, model, draft.options)
    later = retained - cells
    pending = (Pending(Cause.MISSING, later),) if later else ()
    _note_skipped(draft, node, model, pending, over, Ranges.ever() - later, Ranges.ever())
    reason = replace(first, cells=cells, rows=rows_to_read(node, model, cells))
    step = draft.make_step(node, Action.BUILD, [reason], pending)
    pieces = tuple(split_into_batches(node, model, cells, draft.options))
    return replace(step, cells=cells, pieces=pieces if len(pieces) > 1 else ())


def _would_empty(
    draft: PlanDraft, node: Node, model: ModelObservation, allowed: Ranges, cells: Ranges
) -> bool:
    """Whether cells without rows would replace a table that has some."""
    filled = Ranges.of(cells_with_rows(node, model)) & allowed
    if not filled or filled & cells:
        return False
    draft.held_back.add(node.name)
    draft.skipped.append(Skipped(node.name, NOT_EMPTIED, filled))
    return True


def _build_missing_in(draft: PlanDraft, node: Node) -> Ranges:
    """Where cells of a model that were never built are built."""
    ranges, granularity = draft.options.build_missing_in.get(node.name), node.model.granularity
    return Ranges.ever() if ranges is None or granularity is None else granularity.cover(ranges)


def _note_skipped(
    draft: PlanDraft,
    node: Node,
    model: ModelObservation,
    pending: Sequence[Pending],
    over: Ranges,
    taken: Ranges,
    build_missing: Ranges,
) -> None:
    """Note what is stale and not built: by window or limit, or because it is not over yet."""
    stale = Ranges.of(part for entry in pending for part in entry.ranges)
    outside = (stale & over) - (draft.window & build_missing)
    if outside:
        draft.skipped.append(Skipped(node.name, "outside the window", outside))
    beyond = ((stale & over & draft.window & build_missing) - taken) & Ranges.of(
        cells_with_rows(node, model)
    )
    if beyond and node.backfill_limit is not None:
        limit = show_duration(node.backfill_limit)
        draft.skipped.append(Skipped(node.name, f"beyond its backfill_limit of {limit}", beyond))
    early = (stale - over) & draft.window
    if early:
        early &= Ranges.of(cells_with_rows(node, model))
    if early:
        draft.skipped.append(Skipped(node.name, "not over by the last tick of its cron", early))


_NO_OPTIONS = PlanOptions()


def plan(project: Project, observed: Observations, options: PlanOptions = _NO_OPTIONS) -> Plan:
    """
    The steps that bring every selected model up to date, inputs before their readers.

    A window bounds the cells of models that are recomputed cell by cell. Ingests and folds process
    all that arrived: their cost is proportional to it, and a table with half a fold would be wrong.
    The result depends on the arguments alone.
    """
    draft = _Planner(project, observed, options)
    notes = list(observed.notes)
    for node in project:
        if node.model.kind.is_view:
            continue
        if options.selected is not None and node.name not in options.selected:
            draft.skipped.append(Skipped(node.name, "not selected"))
            continue
        draft.add(node)
        if node.name in draft.steps:
            notes.extend(plan_notes(node, observed.models[node.name], draft.steps))
    notes += draft.notes
    return Plan(in_order(draft.steps.values()), tuple(draft.skipped), observed.as_of, tuple(notes))


def _takes_part_in_ingest(node: Node) -> bool:
    """Whether rows that go for their age may have beaten copies that are to come back then."""
    is_events = node.model.kind is Kind.EVENTS
    return is_events and node.model.deduplicate is Deduplicate.EVERYWHERE


class _Planner(PlanDraft):
    """Makes the step of each model by its kind."""

    def __init__(self, project: Project, observed: Observations, options: PlanOptions) -> None:
        super().__init__(project, observed, options)
        self.expiries: dict[str, Reason] = {}
        """Events with rows that are too old, which an ingest takes out."""

    def add(self, node: Node) -> None:
        """The step that a model needs, or the reason why it is skipped."""
        for entry in node.stored_inputs:
            known = self.observed.models.get(entry.name)
            dropped = known is not None and known.trace is None
            if entry.name not in self.steps and (
                dropped or newest_version(self.observed.models[node.name], entry.name) == 0
            ):
                self.skipped.append(Skipped(node.name, f"its input {entry.name} was never built"))
                return
            if entry.name in self.held_back and whole_table_reason(
                node, self.observed.models[node.name]
            ):
                self.skipped.append(
                    Skipped(node.name, f"its input {entry.name} is of an old definition")
                )
                return
        model, before = self.observed.models[node.name], len(self.skipped)
        step = self._expiry(node, model)
        if step is None:
            node = node.starting(self.kept[node.name].start)
            step = step_over_stored_rows(self, node, model)
        if step is None:
            step = _STEP_OF_KIND[node.model.kind](self, node, model)
        if step is not None:
            self.steps[node.name] = step
        elif len(self.skipped) == before:  # nobody has said why
            inputs = sorted(self.observed.models[node.name].inputs_kept & self.steps.keys())
            why = READS_NO_CHANGE.format(", ".join(inputs)) if inputs else UP_TO_DATE
            self.skipped.append(Skipped(node.name, why))

    def _expiry(self, node: Node, model: ModelObservation) -> Step | None:
        """The step that takes out rows for their age, if any are to go, and first."""
        expiry = self.retention.expiry(node, model)
        reader = None if expiry is None else self.retention.kept_for(node)
        if expiry is not None and reader is not None:
            since = retained_since(self.retention.project, node, self.observed.as_of)
            self.notes.append(f"{node.name}: {KEPT_FOR.format(show_instant(since), reader)}")
            expiry = None
        self.kept[node.name] = self.retention.after_step(node, expires=expiry is not None)
        if expiry is None or _takes_part_in_ingest(node):
            self.expiries |= {} if expiry is None else {node.name: expiry}
            return None
        step = self.make_step(node, Action.EXPIRE, [expiry])
        return expiring(step, model, self.kept[node.name])

    def events(self, node: Node, model: ModelObservation) -> Step | None:
        """
        New files in, removed files out; everything when there is no table yet or another
        definition.
        """
        files = model.files if model.files is not None else FileDiff(node.source or "")
        redefined = whole_table_reason(node, model)
        restated = self.restate_reasons(node)
        first = redefined or (None if model.earlier else next(iter(restated), None))
        if first is not None:
            rows = sum(cell.rows for cell in files.estimate or ())
            return self.make_step(node, Action.BUILD, [replace(first, rows=rows)])
        reingested = files_to_reingest(files, model, every=bool(restated))
        # Where rows of files with changed keys are, as they were and as they will be, is not known.
        stale = [
            replace(reason, cells=Ranges())
            for reason in (*self.stale_reasons(node, model, 0), *restated)
        ]
        reasons = [*file_reasons(files, model), *read_again(stale, reingested)]
        reasons += entry_reasons(model)
        if node.name in self.expiries:
            reasons.append(self.expiries[node.name])
        if not reasons:
            return None
        step = self.make_step(node, Action.INGEST, reasons)
        assert step.trace is not None, "a planned step has a trace"
        trace = replace(step.trace, earlier=earlier_after(node, model, Ranges()))
        return replace(step, files=replace(files, reingest=reingested), trace=trace)

    def fold(self, node: Node, model: ModelObservation) -> Step | None:
        """A fold of what changed; a build where most of the input is new to the table."""
        fed = (diff for diff in model.inputs if not node.is_lookup(diff.name))
        rows = sum(cell.rows for diff in fed for cell in diff.cells)
        first = whole_table_reason(node, model) or next(iter(self.restate_reasons(node)), None)
        gap = (node.query.gap or 0) if node.query else 0
        reasons = [*self.stale_reasons(node, model, gap), *entry_reasons(model)]
        reasons += [*snapshot_reasons(model)]
        action = Action.BUILD if self.is_mostly_new(node, model) else Action.FOLD
        if since := forward_from(model):
            reasons.insert(0, since)
            action = Action.BUILD if node.name in self.options.restated else action
        elif first is not None:
            action, reasons = Action.BUILD, [replace(first, rows=rows)]
        if not reasons:
            return None
        step = self.make_step(node, action, reasons)
        assert step.trace is not None, "a planned step has a trace"
        earlier = earlier_after(node, model, Ranges())
        return replace(step, trace=replace(step.trace, earlier=earlier))

    def whole_table(self, node: Node, model: ModelObservation) -> Step | None:
        """One cell: all of it when anything it reads changed."""
        rows = sum(cell.rows for diff in model.inputs for cell in diff.cells)
        first = whole_table_reason(node, model)
        reasons = (
            [first] if first else [*self.stale_reasons(node, model, 0), *self.restate_reasons(node)]
        )
        if not reasons:
            return None
        reasons = [replace(reason, cells=Ranges.ever(), rows=0) for reason in reasons]
        reasons[0] = replace(reasons[0], rows=rows)
        return self.make_step(node, Action.BUILD, reasons)


_STEP_OF_KIND = {
    Kind.EVENTS: _Planner.events,
    Kind.SESSIONS: _Planner.fold,
    Kind.CUMULATIVE_AGGREGATE: _Planner.fold,
    Kind.SCD_TYPE_2: _Planner.fold,
    Kind.TABLE: _Planner.whole_table,
    Kind.INCREMENTAL_TABLE: incremental_table,
}
