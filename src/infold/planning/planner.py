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

from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import (
    READS_NO_CHANGE,
    UP_TO_DATE,
    Action,
    FileDiff,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Skipped,
    Step,
)
from infold.core.project import Node, Project
from infold.core.trace import Cause
from infold.planning.derivations import (
    derive_events,
    derive_table,
    evolvable,
    evolve_table,
    in_order,
    rebucket_table,
    step_from_stored,
)
from infold.planning.file_reasons import file_reasons, files_to_reingest, read_again
from infold.planning.forward_only import forward_sessions
from infold.planning.incremental_tables import incremental_table
from infold.planning.plan_draft import PlanDraft, changes_rows
from infold.planning.plan_notes import plan_notes
from infold.planning.staleness import (
    entry_reasons,
    newest_version,
    whole_table_reason,
)
from infold.planning.stretches import earlier_after

_EVERYTHING = PlanOptions()


def plan(project: Project, observed: Observations, asked: PlanOptions = _EVERYTHING) -> Plan:
    """
    The steps that bring every selected model up to date, inputs before their readers.

    A window bounds the cells of models that are recomputed cell by cell. Ingests and folds process
    all that arrived: their cost is proportional to it, and a table with half a fold would be wrong.
    The result depends on the arguments alone.
    """
    draft = _Planner(observed, asked)
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
    return Plan(in_order(draft.steps.values()), tuple(draft.skipped), observed.as_of, tuple(notes))


class _Planner(PlanDraft):
    """Makes the step of each model by its kind."""

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
        renames = evolvable(self, node, model)
        step = rebucket_table(self, node, model)
        if renames is not None:
            step = evolve_table(self, node, model, renames)
        elif step is None:
            step = _STEP_OF_KIND[node.model.kind](self, node, model)
        if step is not None:
            self.steps[node.name] = step
        elif len(self.skipped) == before:  # nobody has said why
            kept = sorted(self.observed.models[node.name].inputs_kept & self.steps.keys())
            why = READS_NO_CHANGE.format(", ".join(kept)) if kept else UP_TO_DATE
            self.skipped.append(Skipped(node.name, why))

    def events(self, node: Node, model: ModelObservation) -> Step | None:
        """
        New files in, removed files out; everything when there is no table yet or another
        definition.
        """
        files = model.files if model.files is not None else FileDiff(node.source or "")
        redefined = whole_table_reason(node, model)
        change = model.redefined
        if redefined is not None and change is not None and change.effective_from is not None:
            return derive_table(self, node, model, change)
        asked = self.restate_reasons(node)
        first = redefined or (None if model.earlier else next(iter(asked), None))
        if first is not None:
            rows = sum(cell.rows for cell in files.estimate or ())
            build = self.make_step(node, Action.BUILD, [replace(first, rows=rows)])
            return derive_events(self, node, model, files) or build
        again = files_to_reingest(files, model, every=bool(asked))
        # Where rows of files with changed keys are, as they were and as they will be, is not known.
        stale = [
            replace(reason, cells=Ranges())
            for reason in (*self.stale_reasons(node, model, 0), *asked)
        ]
        reasons = [*file_reasons(files, model), *read_again(stale, again)]
        if not reasons:
            return None
        step = self.make_step(node, Action.INGEST, reasons)
        assert step.trace is not None, "a planned step has a trace"
        trace = replace(step.trace, earlier=earlier_after(node, model, Ranges()))
        return replace(step, files=replace(files, reingest=again), trace=trace)

    def fold(self, node: Node, model: ModelObservation) -> Step | None:
        """A fold of what changed; a build where most of the input is new to the table."""
        fed = [diff for diff in model.inputs if not node.is_lookup(diff.name)]
        rows = sum(cell.rows for diff in fed for cell in diff.cells)
        first = whole_table_reason(node, model) or next(iter(self.restate_reasons(node)), None)
        mostly_new = self._mostly_new(model, fed, rows)
        gap = (node.query.gap or 0) if node.query else 0
        reasons = [*self.stale_reasons(node, model, gap), *entry_reasons(model)]
        if first is not None:
            again = mostly_new or node.name in self.options.restated
            forward = forward_sessions(self, node, model, reasons, build=again)
            stored = None if mostly_new or forward else step_from_stored(self, node, model)
            step = forward or stored
            step = step or self.make_step(node, Action.BUILD, [replace(first, rows=rows)])
            return self._by_definitions_in_force(node, model, step)
        if not reasons:
            return None
        step = self.make_step(node, Action.BUILD if mostly_new else Action.FOLD, reasons)
        return self._by_definitions_in_force(node, model, step)

    @staticmethod
    def _by_definitions_in_force(node: Node, model: ModelObservation, step: Step) -> Step:
        """The step, which leaves cells of earlier definitions to them."""
        assert step.trace is not None, "a planned step has a trace"
        earlier = step.trace.earlier or earlier_after(node, model, Ranges())
        return replace(step, trace=replace(step.trace, earlier=earlier))

    def _mostly_new(self, model: ModelObservation, fed: Sequence[InputDiff], rows: int) -> bool:
        """Whether most of the ``rows`` that feed a model are to be read since its trace."""
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
        return replaced or changed * 2 > rows > 0

    def _expected_changes(self, name: str) -> tuple[int, int]:
        """About how many rows of an input the plan changes, and how many it has then."""
        step, observed = self.steps.get(name), self.observed.models.get(name)
        if step is None or observed is None or not observed.rows or not changes_rows(step):
            return 0, 0
        if step.action in (Action.BUILD, Action.DERIVE):
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
