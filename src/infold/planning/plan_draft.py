"""A plan while it is made: the steps so far, and what planning every kind of model shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from infold.core.interval import Ranges
from infold.core.plan import (
    Action,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Reason,
    Skipped,
    Step,
)
from infold.core.project import Node, Project
from infold.core.trace import Cause, Pending, Retention, Trace
from infold.messages.errors import InfoldError
from infold.planning.buildable_cells import retained_range
from infold.planning.forward_only import definitions_in_force
from infold.planning.retention import PlannedRetention
from infold.planning.staleness import (
    affected_cells,
    changed_input_reason,
    changes_by_cause,
    merge_reasons,
    only_redefined,
)


def changes_rows(step: Step) -> bool:
    """Whether rows, or types of their values, may be others after a step."""
    return step.action is not Action.REBUCKET and (
        step.action is not Action.EVOLVE
        or (step.derivation is None or bool(step.derivation.retyped))
    )


class PlanDraft:
    """A plan while it is made: the steps so far, by model, and the skipped models."""

    def __init__(self, project: Project, observed: Observations, options: PlanOptions) -> None:
        self.observed, self.options = observed, options
        self.window = Ranges((options.window,)) if options.window else Ranges.ever()
        self.steps: dict[str, Step] = {}
        self.skipped: list[Skipped] = []
        self.held_back: set[str] = set()
        """Models whose table stays of its old definition, as a part of it was asked for."""
        self.notes: list[str] = []
        self.retention = PlannedRetention(project, observed, self.steps)
        self.kept: dict[str, Retention] = {}
        """What tables lack after their steps."""

    def restate_reasons(self, node: Node) -> list[Reason]:
        """What a person asked to have built again."""
        ranges = self.options.restated.get(node.name)
        granularity = node.model.granularity
        if ranges is None:
            return []
        if granularity is None or not node.model.kind.is_by_cell:
            return [Reason(Cause.RESTATED, "asked for", Ranges.ever())]
        return [Reason(Cause.RESTATED, "asked for", granularity.cover(ranges))]

    def stale_reasons(self, node: Node, model: ModelObservation, reach: int) -> list[Reason]:
        """Why cells of a built model are stale; changes reach ``reach`` beyond their cells."""
        reasons = [
            Reason(entry.cause, _why_pending(entry), entry.ranges)
            for entry in (model.trace.pending if model.trace else ())
        ]
        for cells, definition in definitions_in_force(node, model):
            stale = [
                *_changed_inputs(definition, model, reach, newest=definition is node),
                *self._built_inputs(definition, model, reach),
            ]
            reasons += [replace(reason, cells=reason.cells & cells) for reason in stale]
        return merge_reasons(reasons) if model.earlier else reasons

    def _built_inputs(self, node: Node, model: ModelObservation, reach: int) -> Iterator[Reason]:
        """The inputs that are built before a model in this plan, as reasons."""
        for entry in node.stored_inputs:
            step = self.steps.get(entry.name)
            if step is not None and changes_rows(step) and not self.leaves_inputs(model, step):
                # Which keys change is not known yet, so rows of them may be anywhere.
                anywhere = node.is_lookup(entry.name)
                known = _cells_touched(step) or anywhere
                cells = (
                    affected_cells(node, entry.name, _cells_touched(step), reach)
                    if known
                    else Ranges()
                )
                cause = Cause.LOOKUP if anywhere else step.reasons[0].cause
                rows = step.rows_to_read
                if step.action is Action.DERIVE:
                    rows = self.observed.models[entry.name].rows
                yield Reason(cause, f"because {entry.name} is built", cells, rows)

    def leaves_inputs(self, model: ModelObservation, step: Step) -> bool:
        """Whether a step changes nothing that a model reads: only its definition has changed."""
        built = self.observed.models[step.model]
        before = [self.steps[diff.name] for diff in built.inputs if diff.name in self.steps]
        is_kept = step.model in model.inputs_kept and only_redefined(step, built)
        change = built.redefined
        if change is not None and not change.columns_kept:  # see ``kept_if_followed``
            is_kept &= step.derivation is not None and not step.derivation.contested
        return is_kept and all(self.leaves_inputs(built, one) for one in before)

    def is_mostly_new(self, node: Node, model: ModelObservation) -> bool:
        """Whether most of the rows that feed a model are to be read since its trace."""
        fed = [diff for diff in model.inputs if not node.is_lookup(diff.name)]
        rows = sum(cell.rows for diff in fed for cell in diff.cells)
        changed = sum(c.added + c.removed for diff in fed for c in diff.changes)
        changed += 2 * sum(
            diff.changed_keys.rows for diff in model.inputs if diff.changed_keys
        )  # as they were
        replaced = any(
            diff.dropped_since or (diff.changed_keys and diff.changed_keys.everywhere)
            for diff in model.inputs
        )
        for diff in fed:  # as it will be once the steps before this one are done
            coming, unchanged = self._expected_changes(diff.name)
            changed, rows = changed + coming, max(rows, unchanged)
        return replaced or changed * 2 > rows > 0

    def _expected_changes(self, name: str) -> tuple[int, int]:
        """About how many rows of an input the plan changes, and how many it has then."""
        step, observed = self.steps.get(name), self.observed.models.get(name)
        if step is None or observed is None or not observed.rows or not changes_rows(step):
            return 0, 0
        if step.action in (Action.BUILD, Action.DERIVE):
            return 2 * observed.rows, observed.rows  # all go, all come
        removed, stays = (
            sum(reason.rows for reason in step.reasons if reason.cause is cause)
            for cause in (Cause.REMOVED, Cause.LOOKUP)
        )
        stays = stays if step.files is not None else 0  # these rows are there before and after
        added = step.rows_to_read - removed - stays
        return added + removed + 2 * stays, observed.rows + (added - removed if step.files else 0)

    def make_step(
        self,
        node: Node,
        action: Action,
        reasons: Sequence[Reason],
        pending: tuple[Pending, ...] = (),
    ) -> Step:
        """A step of a model that reads its inputs as they are now."""
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
            snapshots=model.snapshots,
            version=model.version + 1,
            trace=Trace(
                *(node.name, node.fingerprint, heads, pending, model.newest_entry),
                retention=self.kept[node.name],
            ),
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


def _why_pending(entry: Pending) -> str:
    forward = entry.cause is Cause.DEFINITION  # else all of the table would be built
    return "its definition is in force from there on" if forward else "left out before"


def _changed_inputs(
    node: Node, model: ModelObservation, reach: int, *, newest: bool
) -> Iterator[Reason]:
    """
    The inputs with changes that a definition of a model reads, as reasons.

    Where the keys of lookups are that changed is known for the newest definition only.
    """
    for diff in model.inputs:
        if any(entry.name == diff.name for entry in node.inputs):
            of_definition = diff if newest else replace(diff, changed_keys=None)
            for cause, changes in changes_by_cause(node, of_definition).items():
                yield changed_input_reason(node, of_definition, cause, changes, reach)


def _cells_touched(step: Step) -> Ranges:
    """The cells that may have other rows once a step is done, or those after it."""
    derived, trace = step.derivation, step.trace
    if derived is not None and derived.changes_nothing and trace is not None and trace.earlier:
        return trace.pending_ranges  # a forward-only change
    return step.stale_cells


# A run skips the same models (see `run_progress`), and builds the others.


def without_refused(
    project: Project,
    plan: Plan,
    refused: Mapping[str, InfoldError],
    selected: frozenset[str] | None,
) -> Plan:
    """A plan without the refused models, as far as they were selected or are read."""
    needed = project.upstream(step.model for step in plan.steps)
    refusals = {
        name: error
        for name, error in refused.items()
        if selected is None or name in selected or name in needed
    }
    if not refusals:
        return plan
    steps = {step.model: step for step in plan.steps}
    withheld = {
        name: behind
        for name in steps
        if (behind := refused_inputs(project, name, refusals)) or name in refusals
    }
    skipped = {entry.model: entry for entry in plan.skipped if entry.model not in refusals}
    for name in {**refusals, **withheld}:
        step = steps.get(name)
        by_cell = step is not None and project[name].model.kind.is_by_cell
        why = f"refused: {refusals[name].what}" if name in refusals else _waits_text(withheld[name])
        skipped[name] = Skipped(
            name, why, step.stale_cells if step is not None and by_cell else Ranges()
        )
    return replace(
        plan,
        steps=tuple(step for step in plan.steps if step.model not in withheld),
        skipped=tuple(skipped[node.name] for node in project if node.name in skipped),
        refused=refusals,
    )


def refused_inputs(
    project: Project, model: str, refused: Mapping[str, InfoldError]
) -> tuple[str, ...]:
    """The refused models that a model reads, directly or not."""
    if not refused:
        return ()
    reads = project.upstream((model,))
    return tuple(name for name in refused if name in reads)


def _waits_text(behind: tuple[str, ...]) -> str:
    return f"waits for {', '.join(behind)}, which {'is' if len(behind) == 1 else 'are'} refused"
