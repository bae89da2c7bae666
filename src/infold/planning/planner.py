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

from infold.core.interval import Ranges, show_duration, show_instant
from infold.core.model import Kind
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
from infold.core.trace import Cause, Pending, Trace, merge_pending
from infold.planning.buildable_cells import (
    BACKLOG,
    cells_with_rows,
    completed_range,
    continued_build,
    most_concurrent_batches,
    replaced_whole,
    retained_range,
    split_into_batches,
    split_pending,
)
from infold.planning.file_reasons import file_reasons, files_to_reingest
from infold.planning.plan_notes import plan_notes
from infold.planning.staleness import (
    affected_cells,
    changed_input_reason,
    changes_by_cause,
    entry_reasons,
    newest_version,
    next_due,
    only_redefined,
    rows_to_read,
    whole_table_reason,
)

_EVERYTHING = PlanOptions()


def plan(project: Project, observed: Observations, asked: PlanOptions = _EVERYTHING) -> Plan:
    """
    The steps that bring every selected model up to date, inputs before their readers.

    A window bounds the cells of models that are recomputed cell by cell. Ingests and folds process
    all that arrived: their cost is proportional to it, and a table with half a fold would be wrong.
    The result depends on the arguments alone.
    """
    draft = _PlanDraft(observed, asked)
    notes = list(observed.notes)
    for node in project:
        if node.model.kind is Kind.VIEW:
            continue
        if asked.selected is not None and node.name not in asked.selected:
            draft.skipped.append(Skipped(node.name, "not selected"))
            continue
        draft.add(node)
        if node.name in draft.steps:
            notes.extend(plan_notes(node, observed.models[node.name], draft.steps))
    return Plan(tuple(draft.steps.values()), tuple(draft.skipped), observed.as_of, tuple(notes))


class _PlanDraft:
    """A plan while it is made: the steps so far, by model, and the skipped models."""

    def __init__(self, observed: Observations, asked: PlanOptions) -> None:
        self.observed, self.options = observed, asked
        self.window = Ranges((asked.window,)) if asked.window else Ranges.ever()
        self.steps: dict[str, Step] = {}
        self.skipped: list[Skipped] = []
        self.held_back: set[str] = set()
        """Models whose table stays of its old definition, as a part of it was asked for."""

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
        step = _STEP_OF_KIND[node.model.kind](self, node, self.observed.models[node.name])
        if step is not None:
            self.steps[node.name] = step
        elif not any(entry.model == node.name for entry in self.skipped):
            kept = sorted(self.observed.models[node.name].inputs_kept & self.steps.keys())
            why = READS_NO_CHANGE.format(", ".join(kept)) if kept else UP_TO_DATE
            self.skipped.append(Skipped(node.name, why))

    def events(self, node: Node, model: ModelObservation) -> Step | None:
        """
        New files in, removed files out; everything when there is no table yet or another
        definition.
        """
        files = model.files if model.files is not None else FileDiff(node.source or "")
        first = next(iter(self._restate_reasons(node)), None) or whole_table_reason(node, model)
        if first is not None:
            rows = sum(cell.rows for cell in files.estimate or ())
            return self._make_step(node, Action.BUILD, [replace(first, rows=rows)])
        # Where rows of files with changed keys are, as they were and as they will be, is not known.
        looked_up = [
            replace(reason, cells=Ranges()) for reason in self._stale_reasons(node, model, 0)
        ]
        reasons = [*file_reasons(files, model), *looked_up]
        if not reasons:
            return None
        step = self._make_step(node, Action.INGEST, reasons)
        return replace(step, files=replace(files, reingest=files_to_reingest(files, model)))

    def fold(self, node: Node, model: ModelObservation) -> Step | None:
        """A fold of what changed; a build where most of the input is new to the table."""
        fed = [diff for diff in model.inputs if not node.is_lookup(diff.name)]
        rows = sum(cell.rows for diff in fed for cell in diff.cells)
        first = whole_table_reason(node, model) or next(iter(self._restate_reasons(node)), None)
        if first is not None:
            return self._make_step(node, Action.BUILD, [replace(first, rows=rows)])
        gap = (node.query.gap or 0) if node.query else 0
        reasons = [*self._stale_reasons(node, model, gap), *entry_reasons(model)]
        changed = sum(c.added + c.removed for diff in fed for c in diff.changes)
        changed += 2 * sum(
            diff.changed_keys.rows for diff in model.inputs if diff.changed_keys
        )  # as they were
        replaced = any(
            diff.dropped_since or (diff.changed_keys and diff.changed_keys.everywhere)
            for diff in model.inputs
        )
        for diff in fed:  # as it will be once the steps before this one are done
            coming, there = self._expected_changes(diff.name)
            changed, rows = changed + coming, max(rows, there)
        if reasons and (replaced or changed * 2 > rows > 0):
            return self._make_step(node, Action.BUILD, reasons)
        return self._make_step(node, Action.FOLD, reasons) if reasons else None

    def _expected_changes(self, name: str) -> tuple[int, int]:
        """About how many rows of an input the plan changes, and how many it has then."""
        step, observed = self.steps.get(name), self.observed.models.get(name)
        if step is None or observed is None or not observed.rows:
            return 0, 0
        if step.action is Action.BUILD:
            return 2 * observed.rows, observed.rows  # all go, all come
        removed, other = (
            sum(reason.rows for reason in step.reasons if reason.cause is cause)
            for cause in (Cause.REMOVED, Cause.LOOKUP)
        )
        other = other if step.files is not None else 0  # these rows are there before and after
        added = step.rows_to_read - removed - other
        return added + removed + 2 * other, observed.rows + (added - removed if step.files else 0)

    def whole_table(self, node: Node, model: ModelObservation) -> Step | None:
        """One cell: all of it when anything it reads changed."""
        rows = sum(cell.rows for diff in model.inputs for cell in diff.cells)
        first = whole_table_reason(node, model)
        reasons = (
            [first]
            if first
            else [*self._stale_reasons(node, model, 0), *self._restate_reasons(node)]
        )
        if not reasons:
            return None
        reasons = [replace(reason, cells=Ranges.ever(), rows=0) for reason in reasons]
        reasons[0] = replace(reasons[0], rows=rows)
        return self._make_step(node, Action.BUILD, reasons)

    def incremental_table(self, node: Node, model: ModelObservation) -> Step | None:
        """The stale cells inside the window that are due; the others stay pending in the trace."""
        first = whole_table_reason(node, model)
        if first is not None and first.cause is Cause.DEFINITION:
            return self._replace_table(node, model, first)
        reasons = [first] if first else self._stale_reasons(node, model, 0)
        reasons += self._restate_reasons(node)
        if first is None and self._waits_for_cron(node, model, reasons):
            return None
        retained, over = (
            retained_range(node),
            completed_range(node, self.observed.as_of, self.options.ignore_cron),
        )
        pending, build = [], []
        matters = Ranges.ever()
        if first is None and over != Ranges.ever() and not node.fills_cells:
            # Each tick ends a cell that was waited for; one without rows is right as it is.
            matters = Ranges.of((*cells_with_rows(node, model), *(s.cell for s in model.cells)))
        now = self.window & over & matters
        taken, upto = continued_build(node, model, reasons, retained & now, self.options)
        build_missing = self._build_missing_in(node)
        for reason in reasons:
            within = reason.cells & retained
            inside = within & now & taken & (build_missing if reason.cause in BACKLOG else within)
            if within - inside:
                pending.append(Pending(reason.cause, within - inside))
            if inside or not reason.cells:
                build.append(replace(reason, cells=inside, rows=rows_to_read(node, model, inside)))
        cells = Ranges.of(part for reason in build for part in reason.cells)
        replaces = first is not None and first.cause is Cause.REDEFINED
        if replaces and self._would_empty(node, model, retained & over, cells):
            return None
        self._note_skipped(node, model, pending, over, taken, build_missing)
        if not build:
            return None
        # What makes the table does so before other batches come.
        together = 1 if first else most_concurrent_batches(node, self.options)
        parts = split_into_batches(node, model, cells, self.options)
        batch, beside = parts[0], tuple(parts[1:together])
        pending.extend(
            Pending(reason.cause, reason.cells - batch) for reason in build if reason.cells - batch
        )
        if replaces:
            pending = split_pending(node, model, pending)
        anything = Action.BUILD if not pending and cells == retained else Action.RECOMPUTE
        action = Action.BUILD if replaces else anything
        step = self._make_step(node, action, build, merge_pending(pending))
        return replace(
            step, cells=batch, batches=len(parts), concurrent_batches=beside, backfill_end=upto
        )

    def _waits_for_cron(
        self, node: Node, model: ModelObservation, reasons: Sequence[Reason]
    ) -> bool:
        """Whether a built model is skipped until the next tick of its cron."""
        if self.options.ignore_cron or node.name in self.options.restated:
            return False
        due = next_due(node, model, self.observed.as_of)
        if due is not None and reasons:
            self.skipped.append(Skipped(node.name, f"not due before {show_instant(due)}"))
        return due is not None

    def _replace_table(self, node: Node, model: ModelObservation, first: Reason) -> Step | None:
        """
        Replace the table of a changed definition: one step, one commit.

        A window would build a part of it, and the table would mix rows of two definitions or lose
        days that nobody asked about. So the old table stays until the new one is built whole.
        """
        retained = retained_range(node)
        stored = Ranges.of((*cells_with_rows(node, model), *(state.cell for state in model.cells)))
        if (stored & retained) - self.window:
            self.held_back.add(node.name)
            self.skipped.append(Skipped(node.name, HELD_BACK, stored & retained))
            return None
        over = completed_range(node, self.observed.as_of, self.options.ignore_cron)
        cells = retained & over & replaced_whole(node, model, self.options)
        later = retained - cells
        pending = (Pending(Cause.MISSING, later),) if later else ()
        self._note_skipped(node, model, pending, over, Ranges.ever() - later, Ranges.ever())
        reason = replace(first, cells=cells, rows=rows_to_read(node, model, cells))
        step = self._make_step(node, Action.BUILD, [reason], pending)
        pieces = tuple(split_into_batches(node, model, cells, self.options))
        return replace(step, cells=cells, pieces=pieces if len(pieces) > 1 else ())

    def _would_empty(self, node: Node, model: ModelObservation, may: Ranges, cells: Ranges) -> bool:
        """Whether cells without rows would replace a table that has some."""
        there = Ranges.of(cells_with_rows(node, model)) & may
        if not there or there & cells:
            return False
        self.held_back.add(node.name)
        self.skipped.append(Skipped(node.name, NOT_EMPTIED, there))
        return True

    def _restate_reasons(self, node: Node) -> list[Reason]:
        """What a person asked to have built again."""
        ranges = self.options.restated.get(node.name)
        granularity = node.model.granularity
        if ranges is None:
            return []
        if granularity is None or node.model.kind is not Kind.INCREMENTAL_TABLE:
            return [Reason(Cause.RESTATED, "asked for", Ranges.ever())]
        return [Reason(Cause.RESTATED, "asked for", granularity.cover(ranges))]

    def _build_missing_in(self, node: Node) -> Ranges:
        """Where cells of a model that were never built are built."""
        ranges, granularity = self.options.build_missing_in.get(node.name), node.model.granularity
        return Ranges.ever() if ranges is None or granularity is None else granularity.cover(ranges)

    def _note_skipped(
        self,
        node: Node,
        model: ModelObservation,
        pending: Sequence[Pending],
        over: Ranges,
        taken: Ranges,
        build_missing: Ranges,
    ) -> None:
        """Note what is stale and not built: by window or limit, or because it is not over yet."""
        stale = Ranges.of(part for entry in pending for part in entry.ranges)
        outside = (stale & over) - (self.window & build_missing)
        if outside:
            self.skipped.append(Skipped(node.name, "outside the window", outside))
        beyond = ((stale & over & self.window & build_missing) - taken) & Ranges.of(
            cells_with_rows(node, model)
        )
        if beyond and node.backfill_limit is not None:
            limit = show_duration(node.backfill_limit)
            self.skipped.append(Skipped(node.name, f"beyond its backfill_limit of {limit}", beyond))
        early = (stale - over) & self.window
        if early:
            early &= Ranges.of(cells_with_rows(node, model))
        if early:
            self.skipped.append(Skipped(node.name, "not over by the last tick of its cron", early))

    def _stale_reasons(self, node: Node, model: ModelObservation, reach: int) -> list[Reason]:
        """Why cells of a built model are stale; changes reach ``reach`` beyond their cells."""
        reasons = [
            Reason(entry.cause, "left out before", entry.ranges)
            for entry in (model.trace.pending if model.trace else ())
        ]
        for diff in model.inputs:
            for cause, changes in changes_by_cause(node, diff).items():
                reasons.append(changed_input_reason(node, diff, cause, changes, reach))
        for entry in node.stored_inputs:
            step = self.steps.get(entry.name)
            if step is not None and not self._kept(model, step):
                # Which keys change is not known yet, so rows of them may be anywhere.
                anywhere = node.is_lookup(entry.name)
                known = step.stale_cells or anywhere
                cells = (
                    affected_cells(node, entry.name, step.stale_cells, reach) if known else Ranges()
                )
                cause = Cause.LOOKUP if anywhere else step.reasons[0].cause
                reasons.append(
                    Reason(cause, f"because {entry.name} is built", cells, step.rows_to_read)
                )
        return reasons

    def _kept(self, model: ModelObservation, step: Step) -> bool:
        """Whether a step changes nothing that a model reads: only its definition has changed."""
        built = self.observed.models[step.model]
        before = [self.steps[diff.name] for diff in built.inputs if diff.name in self.steps]
        kept = step.model in model.inputs_kept and only_redefined(step, built)
        return kept and all(self._kept(built, one) for one in before)

    def _make_step(
        self,
        node: Node,
        action: Action,
        reasons: Sequence[Reason],
        pending: tuple[Pending, ...] = (),
    ) -> Step:
        model = self.observed.models[node.name]
        heads = {diff.name: diff.newest_version for diff in model.inputs}
        cells = Ranges.of(part for reason in reasons for part in reason.cells)
        return Step(
            model=node.name,
            action=action,
            cells=retained_range(node) if action is Action.BUILD else cells,
            reasons=tuple(reasons),
            inputs={diff.name: (diff.read_version, diff.newest_version) for diff in model.inputs},
            files=model.files,
            version=model.version + 1,
            trace=Trace(node.name, node.fingerprint, heads, pending, model.newest_entry),
            previous_trace=model.trace,
            expected=any(entry.name in self.steps for entry in node.stored_inputs),
            scanned=sum(diff.changed_keys.scanned for diff in model.inputs if diff.changed_keys),
            changed_key_rows=tuple(
                one
                for diff in model.inputs
                if diff.changed_keys
                for one in diff.changed_keys.by_input
            ),
        )


_STEP_OF_KIND = {
    Kind.EVENTS: _PlanDraft.events,
    Kind.SESSIONS: _PlanDraft.fold,
    Kind.CUMULATIVE_AGGREGATE: _PlanDraft.fold,
    Kind.TABLE: _PlanDraft.whole_table,
    Kind.INCREMENTAL_TABLE: _PlanDraft.incremental_table,
}
