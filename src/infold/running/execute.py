"""
Executes a plan: the order of writing, and what happens after a crash.

For each step: intent in the ledger → expected outcome in the ledger → one commit of the table, with
the step's id → done in the ledger. A run that finds an unfinished step of an earlier run looks for
its id in the table's history. If it is there and the outcome was recorded, the step is finished
(``recover`` says how where only its cells were recorded); else it never happened. Steps that
replace a whole table are simply done again. Nothing here decides what to build; that is
``planning``. A failure belongs to one model, and stops only its readers; ``run_progress`` keeps
count of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property

from infold.core.audits import audits_of
from infold.core.definition import Definition, Redefinition
from infold.core.plan import Observations, Plan, PlanOptions, Step
from infold.core.ports import Engine, Lake, Ledger
from infold.core.progress import Progress
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.report import RunFailed, RunResult
from infold.messages import errors, run_errors
from infold.planning.definition_notes import definition_notes, refuse_nothing_applied
from infold.planning.model_states import model_states
from infold.planning.planner import plan
from infold.planning.protection import refused_rebuilds, unrecorded_table
from infold.planning.removals import refuse_removals
from infold.running.advance_traces import advance_traces
from infold.running.changed_keys import KeyLocations, KeyQuestion
from infold.running.concurrent_batches import CommitTurn, side_by_side
from infold.running.damaged_tables import give_up_damaged
from infold.running.definitions_to_analyse import DefinitionsToAnalyse
from infold.running.destructive_changes import DestructiveChanges
from infold.running.exact_derivations import ExactDerivations, not_forward_only
from infold.running.forgotten_models import forget_lost, forget_removed_models
from infold.running.keep_definitions import (
    keep_definitions,
    refuse_not_forward_only,
    with_definitions,
)
from infold.running.ledger_consistency import refuse_other_project, warehouse_of
from infold.running.observe import Observer
from infold.running.publish import hold_back, publish, refresh_after_run
from infold.running.recover import committed_snapshot, recover
from infold.running.request import (
    Request,
    is_selected,
    new_id,
    request_detail,
    step_detail,
    still_asked,
)
from infold.running.run_progress import RunProgress, changed_cells, ends_run
from infold.running.table_locations import remember_locations
from infold.system import failures, signals


@dataclass
class Runner:
    """One run of a project, from lease to receipt."""

    project: Project
    ledger: Ledger
    lake: Lake
    observer: Observer
    engine: Callable[[str, Plan], Engine]
    progress: Progress
    definitions: Callable[[], Mapping[str, Definition]] = dict
    """The definitions of the project's models, which the ledger keeps."""
    changes: Callable[[], Sequence[Redefinition]] = tuple
    """All definitions that changed since they were applied."""
    at_begin: Callable[[], Iterable[str]] = tuple
    """What is done before anything is observed, with the lease; yields notes, or raises."""
    record: Callable[[], Mapping[str, str]] | None = None
    """Records an environment, in place of definitions of the target; their digests by model."""
    at_end: Callable[[str], Iterable[str]] = lambda _: ()
    """What is done last, still with the lease, if nothing failed; yields notes. Gets the run."""
    writer_lock: Callable[[], AbstractContextManager[None]] = nullcontext
    """Excludes processes of a dead run that may still write; entered once the lease is held."""

    def run(self, request: Request) -> RunResult:
        """
        Observe, plan and execute until nothing that was asked for is stale.

        Raises InfoldError: ``locked``, ``over_budget`` and the like before anything is written.
        Raises RunFailed when a model could not be brought up to date, after all others were: its
        ``result`` says what was done nevertheless.
        """
        course = RunProgress(new_id(), self.project, request.options, fail_fast=request.fail_fast)
        started = time.monotonic()
        refuse_other_project(self.project, self.ledger)
        refuse_nothing_applied(self.project)
        self.ledger.acquire(course.run, wait=request.wait)
        try:
            with self.writer_lock():
                self._begin_run(course, request, started)
                with self._record_failures(course, started):
                    self._plan_and_execute(course, request)
                    if not course.failures:
                        course.notes = (*course.notes, *self.at_end(course.run))
                    refresh_after_run(course, self.ledger, self.lake)
                    result = course.result(changed_cells(self.ledger, course.done))
                self.ledger.finish_run(
                    course.run, result.state, result.receipt, result.error or None
                )
        finally:
            self.ledger.release()
        result = replace(result, seconds=time.monotonic() - started)
        if result.failures:
            raise RunFailed(result) from result.failures[0].error
        return result

    def _begin_run(self, course: RunProgress, request: Request, started: float) -> None:
        """Record that the run begins, and finish or undo what earlier runs left."""
        self.ledger.begin_run(
            course.run, request.command, self.observer.as_of, request_detail(request)
        )
        with self._record_failures(course, started):
            self.observer.check_ledger()
        if self.ledger.owner() is None:
            self.ledger.set_owner(self.project.name, warehouse_of(self.project))
        with self._record_failures(course, started):
            recovered = recover(self.ledger, self.lake)
        self.observer.unrecovered = recovered.open
        with self._record_failures(course, started):
            hold_back(self.project, self.ledger, self.lake)
        with self._record_failures(course, started):
            begun = tuple(self.at_begin())
        lost = tuple(forget_lost(self.observer, course.run))
        with self._record_failures(course, started):
            changes = self.observer.redefinitions(self.ledger.traces())
            refuse_not_forward_only(self.project, changes, request.options)
            self._refuse_changes(course, request)
            course.digests = (
                self.record() if self.record else self._keep_definitions(request, changes)
            )
        # Whoever is killed before the definitions are kept has applied nothing: a removed model
        # of theirs is still to be built.
        removed = tuple(forget_removed_models(self.project, self.ledger))
        notes = (*recovered.notes, *begun, *removed, *lost, *definition_notes(self.project))
        course.notes = (*notes, *course.notes)

    def _keep_definitions(
        self, request: Request, changes: Mapping[str, Redefinition]
    ) -> Mapping[str, str]:
        return keep_definitions(
            *(self.project, self.ledger, self.definitions()),
            changes=changes,
            rebuilds_allowed=request.allow_refresh,
            forward_only=request.options.forward_only,
        )

    @cached_property
    def _destructive(self) -> DestructiveChanges:
        return DestructiveChanges(self.project, self.lake, self.changes)

    def _refuse_changes(self, course: RunProgress, request: Request) -> None:
        """Raise what changed definitions destroy, or what is wrong with them: before they apply."""
        if not (self.project.applies or self._destructive.are_declared):
            return
        self.observer.removals_allowed = request.allow_removals
        observed = self.observer.observe_all()
        now = plan(self.project, observed, request.options)
        self._destructive.refuse(now, request.options)
        definitions = DefinitionsToAnalyse(self.project, course.analysed)
        if self.project.applies and (new := definitions.not_analysed(observed, now)):
            engine = self.engine(course.run, now)
            if found := definitions.analyse(engine, new):
                raise errors.InfoldErrors(found.values())
            course.notes = self._destructive.refuse_types(engine, new, request.options)

    def _plan_and_execute(self, course: RunProgress, request: Request) -> None:
        engine: Engine | None = None
        key_locations = KeyLocations(self.project)
        definitions = DefinitionsToAnalyse(self.project, course.analysed)
        derivations = ExactDerivations()
        while True:
            asked = derivations.limit(still_asked(request.options, course.done))
            self.observer.restated = frozenset(asked.restated)
            self.observer.removals_allowed = request.allow_removals
            observed = key_locations.add_to(self.observer.observe_all())
            advance_traces(self.ledger, observed, self.project.shared)
            now = with_definitions(plan(self.project, observed, asked), course.digests)
            if missing := key_locations.unanswered(observed, course.runnable(now)):
                engine = engine or self.engine(course.run, now)
                self._locate_keys(course, key_locations, engine, missing)
                continue
            known, allowed = unrecorded_table(self.ledger, self.lake), request.allow_refresh
            refused = refused_rebuilds(self.project, now, asked, known, allowed=allowed)
            possible = (step for step in course.runnable(now).steps if step.model not in refused)
            if unchecked := derivations.unchecked(possible):
                engine = engine or self.engine(course.run, now)
                if inexact := derivations.refuse(engine, unchecked):
                    course.note_failed_models(not_forward_only(now, inexact))
                    continue
            if not course.plans:
                self._begin_work(course, request, observed, now)
            course.plans.append(now)
            course.note_refused(observed.refused, now)
            course.note_refused(refused, now)
            if not self._steps_ready(course, now, asked):
                break
            engine = engine or self.engine(course.run, now)
            if new := definitions.not_analysed(observed, course.runnable(now)):
                self._analyse(course, definitions, engine, new)
            ready = self._steps_ready(course, now, asked, engine.models_at_once)
            if not ready:
                break
            total = len(course.done) + max(len(now.steps), len(ready))
            self._execute_steps(course, total, ready, engine)
        published = publish(course, self.lake)
        if engine is not None and course.done and published:
            built = tuple(step.model for step, _ in course.done)
            course.notes = (*course.notes, *engine.maintain(built))
        self._remember_locations(course)

    def _analyse(
        self,
        course: RunProgress,
        definitions: DefinitionsToAnalyse,
        engine: Engine,
        models: frozenset[str],
    ) -> None:
        """Analyse definitions, and their types before anything is written."""
        found = definitions.analyse(engine, models)
        course.note_failed_models(found)
        if not course.done:
            lost = self._destructive.refuse_types(engine, models, course.asked)
            course.notes = (*course.notes, *lost)

    def _begin_work(
        self, course: RunProgress, request: Request, observed: Observations, now: Plan
    ) -> None:
        """Refuse a first plan that does more than was allowed; note the states before it."""
        if request.max_rows is not None and now.rows_to_read > request.max_rows:
            raise run_errors.over_budget(rows=now.rows_to_read, max_rows=request.max_rows)
        refuse_removals(self.project, now, allowed=request.allow_removals)
        lost = self._destructive.refuse(now, request.options)
        course.notes = (*course.notes, *self.observer.empty.values(), *lost)
        course.model_states = tuple(
            entry
            for entry in model_states(self.project, observed, now)
            if is_selected(request, entry)
        )

    def _locate_keys(
        self,
        course: RunProgress,
        located: KeyLocations,
        engine: Engine,
        missing: Sequence[KeyQuestion],
    ) -> None:
        """
        Find where changed keys of lookups are; a failure belongs to the model that
        reads them.
        """
        for sought in missing:
            try:
                located.locate(engine, sought)
            except Exception as error:  # noqa: BLE001 - one model's failure, whatever it is
                course.note_failed_models({sought[0]: self._as_model_error(error, sought[0])})

    def _steps_ready(
        self, course: RunProgress, now: Plan, asked: PlanOptions, at_once: int = 1
    ) -> list[tuple[Step, CommitTurn]]:
        """The steps that can be executed now; a model that stays stale again and again fails."""
        ready = side_by_side(self.project, self.lake, course.runnable(now), asked.jobs, at_once)
        stale = [step for step, _ in ready if course.repeats(step)]
        for step in stale:
            course.note_failed(step, run_errors.still_stale(model=step.model))
        return self._steps_ready(course, now, asked, at_once) if stale else ready

    def _execute_steps(
        self,
        course: RunProgress,
        total: int,
        ready: Sequence[tuple[Step, CommitTurn]],
        engine: Engine,
    ) -> None:
        """Execute steps side by side; all of them end, even if others fail."""
        numbered = list(enumerate(ready, course.steps_begun + 1))
        course.steps_begun += len(numbered)
        for seq, (step, _) in numbered:
            self.progress.step(seq, total, step)
        if len(numbered) == 1:
            [(seq, (step, turn))] = numbered
            self._report(course, step, self._try_step(course.run, seq, step, engine, turn))
            return
        engines = [engine, *(engine.concurrent(at) for at in range(len(numbered) - 1))]
        with ThreadPoolExecutor(len(numbered)) as pool:
            begun = [
                pool.submit(self._try_step, course.run, seq, step, own, turn)
                for (seq, (step, turn)), own in zip(numbered, engines, strict=True)
            ]
        for (seq, (step, _)), made in zip(numbered, begun, strict=True):
            if made.exception() is None:
                self.progress.step(seq, total, step)
                self._report(course, step, made.result())
        for made in begun:
            made.result()  # raises what ends the run

    def _report(self, course: RunProgress, step: Step, made: Receipt | errors.InfoldError) -> None:
        """Report the end of a step, and record it."""
        if isinstance(made, Receipt):
            self.progress.done(step, made)
            course.done.append((step, made))
        else:
            self.progress.failed(step, made)
            if not give_up_damaged(self.project, self.ledger, course, step, made):
                course.note_failed(step, made)

    def _try_step(
        self, run: str, seq: int, step: Step, engine: Engine, turn: CommitTurn
    ) -> Receipt | errors.InfoldError:
        """Execute a step; returns its model's error. Raises errors that end the run."""
        try:
            return self._execute_step(run, seq, step, engine, turn)
        except Exception as error:  # noqa: BLE001 - one model's failure, whatever it is
            return self._as_model_error(error, step.model)

    def _as_model_error(self, error: Exception, model: str) -> errors.InfoldError:
        """An error under its name, as its model's. Raises errors that end the run."""
        known = failures.as_user_error(error, self.project.root)
        if known.slug in failures.NAMELESS:
            known = known.with_facts(("model", model))
        if known is not error:
            known.__cause__ = error
        if ends_run(known):
            raise known from known.__cause__
        return known

    def _execute_step(
        self, run: str, seq: int, step: Step, engine: Engine, turn: CommitTurn
    ) -> Receipt:
        step_id = f"{run}-{seq}"
        self.ledger.begin_step(run, step_id, seq, step.model, step.action.value, step_detail(step))
        started = time.monotonic()

        def prepared(early: Outcome) -> Outcome:
            expected = turn.take(early)
            self.ledger.prepare_step(step_id, expected)
            return expected

        with turn.released_after_error():
            try:
                outcome = engine.carry_out(step, step_id, prepared)
            except Exception as error:
                # A commit without an answer may come yet: the next run finds the step open.
                if not (
                    failures.is_answer_lost(error)
                    or committed_snapshot(self.lake, step.model, step_id)
                ):
                    self.ledger.close_step(step_id, "failed", str(error), audits_of(error))
                    turn.release(None)
                raise
            receipt = replace(outcome.receipt, seconds=time.monotonic() - started)
            self.ledger.finish_step(step_id, replace(outcome, receipt=receipt))
            turn.release(outcome)
        return receipt

    def _remember_locations(self, course: RunProgress) -> None:
        if self.observer.compared:
            self.ledger.remember_locations(self.observer.compared)
        if course.done or self.observer.damage.checked_closely:
            remember_locations(self.project, self.ledger, self.lake, self.observer.damage.tables)

    @contextmanager
    def _record_failures(self, course: RunProgress, started: float) -> Iterator[None]:
        """When something ends the run, record it as failed, with all that it did before."""
        try:
            yield
        except Exception as error:
            known = failures.as_user_error(error, self.project.root)
            result = course.result_after_error(known)
            result = replace(result, seconds=time.monotonic() - started)
            with suppress(errors.InfoldError):  # the ledger itself may be what failed
                self.ledger.finish_run(course.run, result.state, result.receipt, known.what)
            if course.done or len(result.failures) > 1:
                raise RunFailed(result) from error
            if known is error:
                raise
            raise known from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | signals.Stopped):
                # Before the lease is given back: a JVM left alone would go on to commit.
                signals.end_children()
            with suppress(errors.InfoldError):
                self.ledger.finish_run(
                    course.run, "failed", course.receipt, f"stopped by {type(error).__name__}"
                )
            raise
